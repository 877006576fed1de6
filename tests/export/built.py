"""Exported models as libraries that Python calls, and the models of the tests."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

import minipaddle as paddle
from minipaddle import nn
from minipaddle.jit.saving import model_of
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization.observers import AbsmaxObserver
from minipaddle.static import InputSpec
from minipaddle.vision.models import LeNet, resnet18

FLAGS = ["-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fopenmp-simd"]
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def saved(model, *inputs, **options):
    """The model as jit.save has it, for inputs like these."""
    if isinstance(model, nn.Layer):
        model.eval()
    return model_of(model, [InputSpec(x.shape, str(x.dtype)) for x in inputs], options)


def results(model, *inputs):
    """What Python computes."""
    with paddle.no_grad():
        found = model(*map(paddle.to_tensor, inputs))
    return [y.numpy() for y in (found if isinstance(found, list | tuple) else [found])]


class Built:
    """The library in a folder, compiled by gcc, with one instance."""

    def __init__(self, folder, *flags, level=()):
        self.folder = Path(folder)
        flags = ["-O1", *FLAGS, *level, *flags, "-fPIC", "-Wall", "-Werror", "-Wno-unused"]
        made, library = self.folder / "model.o", self.folder / "model.so"
        subprocess.run(["gcc", *flags, "-c", "model.c"], cwd=folder, check=True)
        subprocess.run(["gcc", "-shared", made, "-o", library], check=True)
        self.library = ctypes.CDLL(str(library))
        self.library.model_arena_size.restype = ctypes.c_size_t
        self.library.model_error.restype = ctypes.c_char_p
        self.held = []  # the weights of all instances
        self.arena = self.instance()

    def undefined(self) -> set:
        """The names that the object needs from elsewhere."""
        found = subprocess.run(
            ["nm", "-u", self.folder / "model.o"], capture_output=True, text=True
        )
        return {line.split()[-1] for line in found.stdout.splitlines()}

    def instance(self, weights: bytes | None = None, short: int = 0):
        """A new arena, after init."""
        data = (self.folder / "model.bin").read_bytes() if weights is None else weights
        size = self.library.model_arena_size()
        arena, weights = aligned(size), aligned(len(data))
        weights[:] = np.frombuffer(data, "uint8")
        self.held.append(weights)
        code = self.library.model_init(
            address(arena),
            ctypes.c_size_t(size - short),
            address(weights),
            ctypes.c_size_t(len(data)),
        )
        if code:
            raise ValueError(self.library.model_error(code).decode())
        return arena

    def array(self, name: str, like, arena=None):
        """The input or output of that name, as an array."""
        function = getattr(self.library, f"model_{name}")
        function.restype = ctypes.c_void_p
        at = function(address(self.arena if arena is None else arena))
        raw = (ctypes.c_char * like.nbytes).from_address(at)
        return np.frombuffer(raw, like.dtype).reshape(like.shape)

    def run(self, inputs: dict, outputs: list, arena=None) -> list:
        """The outputs, which are like those given, for inputs by name."""
        arena = self.arena if arena is None else arena
        for name, x in inputs.items():
            self.array(f"input_{name}", x, arena)[...] = x
        code = self.library.model_run(address(arena))
        if code:
            raise ValueError(self.library.model_error(code).decode())
        return [self.array(f"output_{k}", y, arena).copy() for k, y in enumerate(outputs)]


def aligned(size: int):
    """Memory at a multiple of 64."""
    room = np.zeros(size + 64, "uint8")
    start = -room.ctypes.data % 64
    return room[start : start + size]


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


# ---- models ------------------------------------------------------------------------------------


def random(*shape):
    return np.random.default_rng(sum(shape)).random(shape, "float32")


def quantized():
    """A LeNet of int8."""
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    net = LeNet()
    net.eval()
    made = ptq.quantize(net)
    made(paddle.to_tensor(random(4, 1, 28, 28)))
    return ptq.convert(made)


def gpt():
    return paddle.text.GPT(27, width=32, layers=2, heads=2, context=16)


TOKENS = np.arange(16)[None] * 7 % 27
MODELS = {
    "lenet": (LeNet, random(1, 1, 28, 28)),
    "gpt": (gpt, TOKENS),
    "int8": (quantized, random(1, 1, 28, 28)),
    "resnet": (resnet18, random(1, 3, 32, 32)),
}
