"""`python -m minipaddle serve`, which serves ONNX models, too.

The folder of a version has `model.onnx` and `batch_N.onnx` for each batch that is compiled.
"""

import sys
import time
from pathlib import Path

import numpy as np

from minipaddle.engine.core.dim import symbol
from minipaddle.engine.core.record import Spec
from minipaddle.serving import repository
from minipaddle.serving.command import main


class Onnx:
    """A model in ONNX Runtime, with a session for each batch."""

    batch = "batch"

    def __init__(self, path: Path, threads: int, rounds: int | None = None):
        from . import onnx_models as om

        self.sessions = {
            int(file.stem.removeprefix("batch_")): om.load(file, threads)
            for file in path.parent.glob("batch_*.onnx")
        }
        one = self.sessions[1]
        self.inputs, self.outputs = map(self.specs, (one.get_inputs(), one.get_outputs()))

    def specs(self, values) -> dict:
        batch, kind = symbol("batch", 1000), np.dtype("float32")
        return {value.name: Spec((batch, *value.shape[1:]), kind) for value in values}

    def check(self, shapes) -> None:
        """The protocol has looked at them."""

    def binding(self, shapes, *, compiled: bool = True):
        return Binding(self.sessions[shapes[0][0]], self.inputs, shapes)


class Binding:
    """Memory for the inputs of a session."""

    def __init__(self, session, inputs, shapes):
        self.session, self.names = session, [*inputs]
        self.inputs = [np.zeros(shape, "float32") for shape in shapes]
        self.outputs: list = []

    def run(self) -> None:
        feed = dict(zip(self.names, self.inputs, strict=True))
        self.outputs = self.session.run(None, feed)


class Sleeper:
    """A model whose run takes a known time, and no processor: it sleeps."""

    batch, inputs = "batch", {"x0": Spec((symbol("batch", 1000), 4), np.dtype("float32"))}
    outputs = inputs

    def __init__(self, path: Path, threads: int, rounds: int | None = None):
        """Its files say nothing."""

    def check(self, shapes) -> None:
        """The protocol has looked at them."""

    def binding(self, shapes, *, compiled: bool = True):
        return Sleeping(shapes)


class Sleeping:
    """Memory for the input of a `Sleeper`."""

    def __init__(self, shapes):
        self.inputs = self.outputs = [np.zeros(shape, "float32") for shape in shapes]

    def run(self) -> None:
        time.sleep(seconds_asleep(len(self.inputs[0])))


def seconds_asleep(rows: int) -> float:
    """The time of a run."""
    return 0.02 + 0.002 * rows


if __name__ == "__main__":
    repository.LOADERS["model.sleep"] = Sleeper
    repository.LOADERS["model.onnx"] = Onnx
    sys.exit(main(sys.argv[1:]))
