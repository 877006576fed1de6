"""Eager execution beside PyTorch's and Paddle's: single operators, and whole training steps."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np

import minipaddle
from tests.benchmarks import models
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
        rows[title] = interleaved(candidates, title=title, rounds=9, seconds=0.3)
    return rows


def run(threads: int, arguments=()) -> None:
    frameworks = peers()
    if "torch" in frameworks:
        frameworks["torch"].set_num_threads(threads)
    report(f"Operators, recorded ({threads} thread)", operators(frameworks))
    report(f"A training step ({threads} thread)", steps(frameworks))
