"""Exported models as libraries that Python calls, and the models of the tests."""

import subprocess

import numpy as np

import minipaddle as paddle
from minipaddle import nn
from minipaddle.jit.saving import model_of
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization.observers import AbsmaxObserver
from minipaddle.static import InputSpec
from minipaddle.testing.exported import ExportedLibrary
from minipaddle.vision.models import LeNet, resnet18

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


class Built(ExportedLibrary):
    """The library in a folder, without warnings of the compiler."""

    def __init__(self, folder, *flags, level=()):
        super().__init__(folder, "-O1", *level, *flags, "-Wall", "-Werror", "-Wno-unused")

    def undefined(self) -> set:
        """The names that the object needs from elsewhere."""
        found = subprocess.run(
            ["nm", "-u", self.folder / "model.o"], capture_output=True, text=True
        )
        return {line.split()[-1] for line in found.stdout.splitlines()}


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
