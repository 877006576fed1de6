"""Models with example inputs: run eagerly and converted, they give the same and learn the same.

Only Paddle's public API is used here and in models_*.py, so that real Paddle can run them too
(tests/data/make_to_static_paddle.py).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import numpy as np

import minipaddle as paddle


@dataclass(frozen=True)
class Given:
    """A tensor among the example inputs: normal floats, or integers below `high`."""

    shape: tuple
    high: int = 0
    scale: float = 1.0

    def tensor(self, rng):
        if self.high:
            return paddle.to_tensor(rng.integers(0, self.high, self.shape))
        x = rng.standard_normal(self.shape) * self.scale
        x = paddle.to_tensor(x.astype(paddle.get_default_dtype()))
        x.stop_gradient = False
        return x


def N(*shape, scale=1.0):
    """Normal floats, with a gradient."""
    return Given(shape, scale=scale)


def I(high, *shape):  # noqa: E743
    """Integers from 0 below `high`."""
    return Given(shape, high)


@dataclass
class Model:
    """What makes a layer or a function, and tuples of inputs for it: of several shapes.

    `learns`: it may be trained for many steps. `hooks`: a hook on an input sees what it sees in
    eager mode (it does not where the model itself walks back to its input). `dtype` is that of its
    training: float64 where weights follow rounding, as Adam does when a gradient is otherwise zero.
    """

    make: Callable
    calls: tuple
    learns: bool = True
    hooks: bool = True
    dtype: str = "float32"

    @property
    def name(self) -> str:
        return f"{self.make.__module__.rpartition('.')[2]}.{self.make.__name__}"

    def net(self):
        """The model, with weights that depend on their shapes and order alone."""
        paddle.seed(7)
        net = self.make() if isinstance(self.make, type) else self.make
        fill(parameters(net))
        return net


@dataclass
class Training:
    """What makes a training step and the layers it trains: `make() -> (step, layers)`."""

    make: Callable
    inputs: tuple
    steps: int = 20

    @property
    def name(self) -> str:
        return f"{self.make.__module__.rpartition('.')[2]}.{self.make.__name__}"

    def made(self):
        paddle.seed(7)
        return self.make()


MODELS: list[Model] = []
TRAININGS: list[Training] = []


def model(*calls: tuple, **options):
    """Decorator: register a class of layers, or a function, with inputs for it."""

    def register(make):
        MODELS.append(Model(make, calls, **options))
        return make

    return register


def training(*inputs, **options):
    """Decorator: register what makes a training step, with inputs for it."""

    def register(make):
        TRAININGS.append(Training(make, inputs, **options))
        return make

    return register


def collect() -> None:
    """Import all models."""
    for path in sorted(Path(__file__).parent.glob("models_*.py")):
        importlib.import_module(f"tests.jit.{path.stem}")


def mapped(value, function):
    """A value with `function` applied to the leaves of its containers."""
    if isinstance(value, dict):
        return type(value)((k, mapped(v, function)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(v, function) for v in value))
    if isinstance(value, list | tuple):
        return type(value)(mapped(v, function) for v in value)
    if is_dataclass(value) and not isinstance(value, Given):
        changed = {f.name: mapped(getattr(value, f.name), function) for f in fields(value)}
        return replace(value, **changed)
    return function(value)


def leaves(value) -> list:
    found: list = []
    mapped(value, found.append)
    return found


def inputs(call: tuple, seed: int = 0) -> tuple:
    """Fresh inputs; the same for the same seed."""
    rng = np.random.default_rng(seed)
    return mapped(call, lambda x: x.tensor(rng) if isinstance(x, Given) else x)


def tensors(value) -> list:
    return [x for x in leaves(value) if isinstance(x, paddle.Tensor)]


def floats(value) -> list:
    """The tensors that may have a gradient."""
    return [x for x in tensors(value) if not x.stop_gradient and x.is_floating_point()]


def parameters(net) -> list:
    return net.parameters() if isinstance(net, paddle.nn.Layer) else []


@contextmanager
def default_dtype(name: str):
    """A block in which models and inputs are made with this dtype."""
    before = paddle.get_default_dtype()
    paddle.set_default_dtype(name)
    try:
        yield
    finally:
        paddle.set_default_dtype(before)


def fill(weights) -> None:
    """Weights that two frameworks have alike."""
    rng, dtype = np.random.default_rng(3), paddle.get_default_dtype()
    for w in weights:
        if len(w.shape) < 2:
            w.set_value((0.5 + rng.standard_normal(w.shape) * 0.1).astype(dtype))
        else:
            spread = float(np.sqrt(w.shape[0] / np.prod(w.shape)))
            w.set_value((rng.standard_normal(w.shape) * spread).astype(dtype))


def loss_of(outputs):
    """A number to make small: the distance of all outputs from cosines."""
    total = 0.0
    for y in floats(outputs):
        size = int(np.prod(y.shape))
        wanted = paddle.cos(paddle.arange(size, dtype=y.dtype)).reshape(y.shape)
        total = total + ((y - wanted) ** 2).mean()
    return total
