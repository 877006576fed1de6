"""The stages of `compression_stages` in ONNX Runtime, torch and torchao, with the same weights.

Each peer is a function of an array that gives scores, and the bytes of its file.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn as tnn
from torch.ao.quantization import get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

import minipaddle as paddle
from minipaddle import nn
from minipaddle.vision.models.resnet import BasicBlock

from . import onnx_models as om


class Block(tnn.Module):
    """A residual block with the weights of ours. Each ReLU is a layer of its own, for quantizers
    look for patterns of layers.
    """

    def __init__(self, layer: BasicBlock):
        super().__init__()
        for name in ("conv1", "bn1", "conv2", "bn2"):
            setattr(self, name, as_torch(getattr(layer, name)))
        self.relu1, self.relu2 = tnn.ReLU(), tnn.ReLU()
        self.down = tnn.Identity() if layer.downsample is None else as_torch(layer.downsample)

    def forward(self, x):
        y = self.relu1(self.bn1(self.conv1(x)))
        return self.relu2(self.bn2(self.conv2(y)) + self.down(x))


def as_torch(layer: nn.Layer) -> tnn.Module:
    """A layer of ours as torch's, with the same weights."""
    tensor = lambda x: torch.from_numpy(x.numpy().copy())
    if isinstance(layer, nn.Sequential):
        return tnn.Sequential(*map(as_torch, layer.children()))
    if isinstance(layer, BasicBlock):
        return Block(layer)
    if isinstance(layer, nn.Conv2D):
        out, into, *kernel = layer.weight.shape
        made = tnn.Conv2d(into, out, kernel, layer._stride, layer._padding, bias=False)
        given = {"weight": tensor(layer.weight)}
    elif isinstance(layer, nn.BatchNorm2D):
        made = tnn.BatchNorm2d(layer.weight.shape[0], layer._epsilon)
        given = {"weight": layer.weight, "bias": layer.bias}
        given |= {"running_mean": layer._mean, "running_var": layer._variance}
        given = {name: tensor(x) for name, x in given.items()}
        given["num_batches_tracked"] = torch.tensor(0)
    elif isinstance(layer, nn.Linear):
        made = tnn.Linear(*layer.weight.shape)
        given = {"weight": tensor(layer.weight).T, "bias": tensor(layer.bias)}
    else:
        return {"ReLU": tnn.ReLU(), "MaxPool2D": tnn.MaxPool2d(2), "Flatten": tnn.Flatten(),
                "AdaptiveAvgPool2D": tnn.AdaptiveAvgPool2d(1)}[type(layer).__name__]  # fmt: skip
    made.load_state_dict(given)
    return made


def of_onnx_runtime(net: nn.Layer, images: np.ndarray, folder: Path, threads: int) -> dict:
    """Sessions in float32, and in 8 bits after `quant_pre_process`."""
    program = paddle.jit.to_static(lambda x: net(x), backend="interpreter")
    with paddle.no_grad():
        program(paddle.to_tensor(images[:2]))
    files = om.quantized(program.main_program, [images], folder, open_batch=True)
    return {
        name: (om.session(file, threads), file.stat().st_size)
        for name, file in zip(("float32", "int8"), files, strict=True)
    }


def of_torch(net: nn.Layer, images: np.ndarray, folder: Path) -> dict:
    """Networks in float32, bfloat16, and in 8 bits by torch.ao (FX, the engine for x86)."""
    full, example = as_torch(net).eval(), torch.from_numpy(images)
    half = as_torch(net).eval().to(torch.bfloat16)
    warnings.simplefilter("ignore")
    torch.backends.quantized.engine = "x86"
    observed = prepare_fx(as_torch(net).eval(), get_default_qconfig_mapping("x86"), (example,))
    with torch.inference_mode():
        observed(example)
    small = convert_fx(observed)
    found = {}
    for name, made, kind in (
        ("float32", full, torch.float32),
        ("bfloat16", half, torch.bfloat16),
        ("int8", small, torch.float32),
    ):
        torch.save(made.state_dict(), folder / name)
        found[name] = running(made, kind), (folder / name).stat().st_size
    return found


def of_torchao(net: nn.Layer, images: np.ndarray, folder: Path) -> dict:
    """The network in 8 bits by torchao (PT2E, X86InductorQuantizer), compiled by inductor."""
    import torch._inductor.config as inductor
    from torchao.quantization.pt2e import quantize_pt2e as q
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    inductor.freezing = True  # else weights are dequantized at each call
    example, batch = torch.from_numpy(images), torch.export.Dim("batch", min=1, max=4096)
    shapes = ({0: batch},)
    with torch.no_grad():
        made = torch.export.export(as_torch(net).eval(), (example,), dynamic_shapes=shapes).module()
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
        made = q.prepare_pt2e(made, quantizer)
        made(example)
        made = q.convert_pt2e(made)
        used = {node.target for node in made.graph.nodes if node.op == "get_attr"}
        left = {name: x for name, x in made.state_dict().items() if name in used}
        torch.save(
            left, file := folder / "ao"
        )  # the floats are in the state, too, and serve nothing
        return {"int8": (running(torch.compile(made, dynamic=False)), file.stat().st_size)}


def running(net, dtype=torch.float32):
    """A function of an array that gives scores."""

    def run(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return net(torch.from_numpy(x).to(dtype)).float().numpy()

    return run
