"""Writes tests/data/onnx: small models as PyTorch's newer exporter writes them.

    python -m tests.data.make_onnx_models

It takes ten seconds a model, so the tests read the files. (The older exporter is quick: the tests
run it.) The weights follow from a seed: `tests.onnx.torch_models.build`.
"""

from pathlib import Path

import onnx
import torch

from tests.onnx.torch_models import RECORDED, build


def write(name: str, folder: Path) -> None:
    model, x = build(name)
    sizes = ({0: torch.export.Dim("n")},)
    path = folder / f"{name}.onnx"
    torch.onnx.export(
        model, (x,), path, dynamo=True, input_names=["x"], dynamic_shapes=sizes, verbose=False,
        external_data=False,
    )  # fmt: skip
    made = onnx.load(path)
    for node in made.graph.node:  # these tell of the machine that wrote the file
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for value in (*made.graph.value_info, *made.graph.input, *made.graph.output):
        value.ClearField("metadata_props")
    for each in (made.graph, made):
        each.ClearField("metadata_props")
    onnx.save(made, path)


if __name__ == "__main__":
    for each in RECORDED:
        write(each, Path(__file__).parent / "onnx")
