"""Eager execution beside PyTorch's and Paddle's: single operators, and whole training steps."""

from __future__ import annotations

import importlib
import importlib.util
from functools import partial

import numpy as np

import minipaddle
from minipaddle.executors import hot
from tests.benchmarks import models
from tests.benchmarks.frameworks import wait_for_kernels
from tests.benchmarks.timing import interleaved, report


def peers() -> dict[str, object]:
    """The frameworks to measure: ours, and those peers that are installed."""
    found = {"minipaddle": minipaddle}
    for name in ("torch", "paddle"):
        if importlib.util.find_spec(name):
            found[name] = importlib.import_module(name)
    return found


def variable(framework, array: np.ndarray):
    """An array as a tensor of `framework` that wants a gradient."""
    if framework.__name__ == "torch":
        return framework.tensor(array, requires_grad=True)
    return framework.to_tensor(array, stop_gradient=False)


OPERATORS = {
    "add, 64 elements": lambda framework, x, y: lambda: x + y,
    "tanh, 64 elements": lambda framework, x, y: lambda: framework.tanh(x),
    "sum, 64 elements": lambda framework, x, y: lambda: x.sum(),
    "accumulate, a Linear": lambda framework, x, y: accumulation(framework),
}


def accumulation(framework):
    """A forward and `backward()` onto the gradients that are there: nothing clears them."""
    net = framework.nn.Linear(8, 8)
    x = framework.ones([4, 8])
    return lambda: net(x).sum().backward()


def operators(frameworks) -> dict[str, dict[str, float]]:
    """One operator with recording: the cost of saying what to compute."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 64)).astype("float32")
    rows = {}
    for title, make in OPERATORS.items():
        candidates = {
            name: make(f, variable(f, x), variable(f, y)) for name, f in frameworks.items()
        }
        rows[title] = interleaved(candidates, title=title, rounds=21, seconds=0.03)
    return rows


def is_torch(framework) -> bool:
    return framework.__name__ == "torch"


def norm(f, x, scale, shift):
    shape = (x.shape[-1],)
    return f.nn.functional.layer_norm(x, shape, scale, shift)


def depthwise(f, x, w, stride=1):
    return f.nn.functional.conv2d(x, w, None, stride, 1, 1, w.shape[0])


def entropy(f, x, label):
    return f.nn.functional.cross_entropy(x, label)


LARGE = {
    "layer_norm, 512 × 1,024": (norm, [(512, 1024), (1024,), (1024,)]),
    "layer_norm, 4,096 × 128": (norm, [(4096, 128), (128,), (128,)]),
    "softmax, 512 × 1,024": (lambda f, x: f.nn.functional.softmax(x, -1), [(512, 1024)]),
    "softmax, 4,096 × 64": (lambda f, x: f.nn.functional.softmax(x, -1), [(4096, 64)]),
    "cross_entropy, 512 × 1,000": (entropy, [(512, 1000), "labels"]),
    "gelu, 512 × 1,024": (lambda f, x: f.nn.functional.gelu(x), [(512, 1024)]),
    "silu, 512 × 1,024": (lambda f, x: f.nn.functional.silu(x), [(512, 1024)]),
    "sum of 1,048,576": (lambda f, x: x.sum(), [(1 << 20,)]),
    "sum of 1,024 rows": (lambda f, x: x.sum(-1), [(1024, 1024)]),
    "depthwise 3×3, 8 × 64 × 56²": (depthwise, [(8, 64, 56, 56), (64, 1, 3, 3)]),
    "the same, stride 2": (partial(depthwise, stride=2), [(8, 64, 56, 56), (64, 1, 3, 3)]),
}
"""Functions of a framework and arrays, for which NumPy walks arrays several times."""


def forward_of(f, function, arrays):
    """A call without recording."""
    inputs = [f.tensor(a) if is_torch(f) else f.to_tensor(a) for a in arrays]

    def forward():
        with f.no_grad():
            return function(f, *inputs)

    return forward


def backward_of(f, function, arrays):
    """A call, and its derivatives for a cotangent of random numbers."""
    plain = f.tensor if is_torch(f) else f.to_tensor
    inputs = [variable(f, a) if a.dtype.kind == "f" else plain(a) for a in arrays]
    moving = [x for x, a in zip(inputs, arrays, strict=True) if a.dtype.kind == "f"]
    shape = tuple(function(f, *inputs).shape)
    g = plain(np.random.default_rng(1).normal(size=shape).astype("float32"))
    grad = f.autograd.grad if is_torch(f) else f.grad
    return lambda: grad(function(f, *inputs), moving, g)


def large(frameworks) -> dict[str, dict[str, float]]:
    """Operators on large arrays, alone and with their derivatives; ours also by NumPy alone."""
    rng, rows = np.random.default_rng(0), {}
    for title, (function, shapes) in LARGE.items():
        arrays = [
            rng.integers(0, 1000, 512) if s == "labels" else rng.normal(size=s).astype("float32")
            for s in shapes
        ]
        for kind, make in (("", forward_of), (", and derivative", backward_of)):
            calls = {name: make(f, function, arrays) for name, f in frameworks.items()}
            calls["NumPy"] = by_numpy(make(minipaddle, function, arrays))
            wait_for_kernels(calls["minipaddle"])
            rows[title + kind] = interleaved(calls, title=title + kind, rounds=9, seconds=0.03)
    return rows


def by_numpy(call):
    """The call where NumPy computes all."""
    names = ["FLAGS_eager_kernels", "FLAGS_eager_programs"]

    def without():
        before = minipaddle.get_flags(names)
        minipaddle.set_flags(dict.fromkeys(names, False))
        try:
            return call()
        finally:
            minipaddle.set_flags(before)

    return without


def steps(frameworks) -> dict[str, dict[str, float]]:
    """Forward, loss, backward, optimizer: the same model and data everywhere."""
    rows = {}
    for title, workload in models.STEPS.items():
        candidates = {name: models.step_of(f, workload) for name, f in frameworks.items()}
        losses = {n: [models.numbers(step()) for _ in range(3)] for n, step in candidates.items()}
        for name, values in losses.items():
            np.testing.assert_allclose(
                values, losses["minipaddle"], rtol=2e-3, err_msg=f"{title}: losses of {name} differ"
            )
        wait_for_kernels(candidates["minipaddle"])
        candidates["NumPy"] = by_numpy(candidates["minipaddle"])
        rows[title] = interleaved(candidates, title=title, rounds=9, seconds=0.3)
    return rows


def run(threads: int, arguments=()) -> None:
    frameworks = peers()
    if "torch" in frameworks:
        frameworks["torch"].set_num_threads(threads)
    report(f"Operators, recorded ({threads} thread)", operators(frameworks))
    report(f"Large arrays ({threads} thread)", large(frameworks))
    print(hot.report())
    report(f"A training step ({threads} thread)", steps(frameworks))
