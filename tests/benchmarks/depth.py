"""Deep networks: what a layer costs, in the first call and in each later one, by the depth."""

from __future__ import annotations

import statistics
import time
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

import minipaddle as paddle
from tests.benchmarks.timing import in_units

DEPTHS = (10, 100, 300, 1000)
WIDTH, ROWS = 16, 32
EXECUTORS = {"eager": None, "interpreter": "interpreter", "native": "native"}


def run(threads: int, arguments: list[str] = ()) -> None:
    table = Table(title=f"Linear({WIDTH}) and ReLU, {ROWS} rows, SGD: processor time")
    for name in ("executor", "layers", "first call", "a layer", "a step", "a layer"):
        table.add_column(name, justify="left" if name == "executor" else "right")
    for name, backend in EXECUTORS.items():
        for depth in DEPTHS:
            step = deep_step(depth, backend)
            first, later = once(step), statistics.median(once(step) for _ in range(30))
            cells = first, first / depth, later, later / depth
            table.add_row(name, f"{depth:,}", *map(in_units, cells))
        table.add_section()
    Console(width=100).print(table)


def once(step) -> float:
    began = time.process_time()
    step()
    return time.process_time() - began


def deep_step(depth: int, backend: str | None = "native"):
    """A training step of a perceptron of so many layers."""
    nn, rng = paddle.nn, np.random.default_rng(0)
    layers = [each for _ in range(depth) for each in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    net = nn.Sequential(*layers, nn.Linear(WIDTH, 10))
    sgd = paddle.optimizer.SGD(0.01, parameters=net.parameters())
    x = paddle.to_tensor(rng.normal(size=(ROWS, WIDTH)).astype("float32"))
    y = paddle.to_tensor(rng.integers(0, 10, ROWS))

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    whole = paddle.jit.to_static(step, backend=backend) if backend else step
    return partial(whole, x, y)
