"""What a run of a network costs in float32 and on few bits, beside ONNX Runtime and torch.

All run in turn, compiled, in one process. The figure is the least time of several runs: processor
time on one thread, which a busy machine disturbs least, and time by the clock on several.
"""

from __future__ import annotations

import importlib
import tempfile
import warnings
from copy import deepcopy
from functools import partial
from time import perf_counter, process_time

import numpy as np
from rich.table import Table

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn import quant

from .compression_stages import in_eight_bits
from .workloads import gpt

ROUNDS = 15


def peer(name: str):
    """A module of another framework; None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def least(runs: dict, threads: int, rounds: int = ROUNDS) -> dict[str, float]:
    """The least seconds of each run, one after the other in each round."""
    clock = process_time if threads == 1 else perf_counter
    for run in [*runs.values()] * 2:  # compiles, and warms up
        run()
    found = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            began = clock()
            run()
            found[name].append(clock() - began)
    return {name: min(times) for name, times in found.items()}


def compiled(net: nn.Layer):
    """A network for inference."""
    run = paddle.jit.to_static(lambda *xs: net(*xs), backend="native")

    def call(*xs):
        with paddle.no_grad():
            return run(*xs)

    return call


def size_of(net: nn.Layer) -> int:
    """The bytes of weights and buffers."""
    return sum(x.size * x.element_size() for x in net.state_dict().values())


# ---- networks for images ---------------------------------------------------------------------


def images() -> dict:
    models = paddle.vision.models
    return {
        "ResNet-18, 224 × 224": (models.resnet18(), [1, 3, 224, 224]),
        "MobileNetV2, 224 × 224": (models.mobilenet_v2(), [1, 3, 224, 224]),
        "LeNet, 28 × 28": (models.LeNet(), [1, 1, 28, 28]),
    }


def times_of_images(threads: int) -> Table:
    """Networks for images: ours, and the same weights in ONNX Runtime."""
    table = Table(
        "an image", "float32", "8 bits", "times faster", "ORT float32", "ORT 8 bits", "ours / ORT",
        title="Times in ms, 8 bits",
    )  # fmt: skip
    for name, (net, shape) in images().items():
        net.eval()
        x, other = paddle.randn(shape), paddle.randn(shape)
        small = in_eight_bits(net, x)
        runs = {"full": partial(compiled(net), x), "small": partial(compiled(small), x)}
        if peer("onnxruntime"):
            from . import onnx_models as om

            program = paddle.jit.to_static(lambda x, net=net: net(x), backend="interpreter")
            with paddle.no_grad():
                program(other)
            with tempfile.TemporaryDirectory() as folder:
                files = om.quantized(program.main_program, [x.numpy()], folder)
                for key, file in zip(("ort full", "ort small"), files, strict=True):
                    runs[key] = partial(om.session(file, threads), x.numpy())
        table.add_row(name, *cells(least(runs, threads)))
    return table


def cells(found: dict) -> list[str]:
    """The cells of a row for what was found."""
    shown = {name: f"{1e3 * t:.3f}" for name, t in found.items()}
    row = [shown["full"], shown["small"], f"{found['full'] / found['small']:.2f}"]
    if "ort small" not in found:
        return [*row, *["not installed"] * 3]
    ratio = f"{found['small'] / found['ort small']:.2f}"
    return [*row, shown["ort full"], shown["ort small"], ratio]


# ---- a language model ------------------------------------------------------------------------


def times_of_texts(threads: int) -> Table:
    """A GPT of 4 blocks of 128 on 64 tokens: all tokens at once."""
    table = Table("64 tokens, GPT 4 × 128", "ms", title="Times of a language model")
    net = gpt.net(paddle).eval()
    x, places, mask = (paddle.to_tensor(a) for a in gpt.one_text())
    small = in_eight_bits(net, x, places, mask)
    runs = {
        "float32": partial(compiled(net), x, places, mask),
        "8 bits": partial(compiled(small), x, places, mask),
    }
    torch = peer("torch")
    if torch:
        runs |= torch_texts(torch, threads)
    if torch and peer("onnxruntime"):
        from . import onnx_models as om

        with tempfile.TemporaryDirectory() as folder:
            given = gpt.one_text()
            for key, run in om.language_model(gpt.net(torch), given, folder, threads).items():
                runs[f"ONNX Runtime, {key}"] = run
    for name, seconds in least(runs, threads).items():
        table.add_row(name, f"{1e3 * seconds:.3f}")
    return table


def torch_texts(torch, threads: int) -> dict:
    """The same model in torch: in float32, and with whole numbers by its x86 kernels, whose scales
    are found at each run.
    """
    torch.set_num_threads(threads)
    net = gpt.net(torch).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends torchao
        small = torch.ao.quantization.quantize_dynamic(net, {torch.nn.Linear}, torch.qint8)
    given = [torch.from_numpy(a) for a in gpt.one_text()]
    return {
        "torch, float32": torch.no_grad()(partial(net, *given)),
        "torch, 8 bits, dynamic": torch.no_grad()(partial(small, *given)),
    }


class WeightOnly(nn.Layer):
    """A linear layer whose weight is in 8 or 4 bits."""

    def __init__(self, layer: nn.Linear, kind: str, group: int):
        super().__init__()
        q, scale = quant.weight_quantize(layer.weight, f"weight_only_{kind}", group_size=group)
        self.register_buffer("q", q.detach())
        self.register_buffer("scale", scale.detach())
        self.bias, self.kind, self.group = layer.bias, kind, group

    def forward(self, x):
        return quant.weight_only_linear(
            x, self.q, self.bias, self.scale, self.kind, group_size=self.group
        )


def with_small_weights(net: nn.Layer, kind: str, group: int) -> nn.Layer:
    """A copy of the network with the weights of its linear layers in few bits."""

    def replace(layer):
        for name, child in [*layer.named_children()]:
            if type(child) is nn.Linear:
                setattr(layer, name, WeightOnly(child, kind, group))
            else:
                replace(child)
        return layer

    return replace(deepcopy(net))


def times_of_a_token(threads: int) -> Table:
    """One token by a GPT of 4 blocks of 1024: every weight is read once."""
    table = Table("a token, GPT 4 × 1024", "ms", "MB", "off, %", title="Weights on few bits")
    paddle.seed(0)
    net = paddle.text.GPT(256, width=1024, layers=4, heads=8, context=64).eval()
    x = paddle.to_tensor(np.array([[7]]))
    nets = {
        "float32": net,
        "8 bits, a scale for each output": with_small_weights(net, "int8", -1),
        "4 bits, a scale for 64 inputs": with_small_weights(net, "int4", 64),
    }
    runs = {name: partial(compiled(each), x) for name, each in nets.items()}
    found, wanted = least(runs, threads), runs["float32"]().numpy()
    for name, each in nets.items():
        off = np.linalg.norm(runs[name]().numpy() - wanted) / np.linalg.norm(wanted)
        size = f"{size_of(each) / 1e6:.1f}"
        table.add_row(name, f"{1e3 * found[name]:.3f}", size, f"{100 * off:.1f}")
    return table
