"""Perceptrons of three layers: one where calling costs more than computing, one of MNIST's size
with Adam, two wide ones, and inference for one row, where each weight is read for one product.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from .workload import SEED, Target, Workload, classify, jax_entropy


def net(*widths):
    def build(framework):
        nn, layers = framework.nn, []
        for a, b in pairwise(widths):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    return build


def layers(jax, w, x):
    """The result of the last layer: layers 0, 2 and 4 have weights, ReLU stands between."""
    last = len(w) - 2
    for k in range(0, last, 2):
        x = jax.nn.relu(x @ w[f"{k}.weight"] + w[f"{k}.bias"])
    return x @ w[f"{last}.weight"] + w[f"{last}.bias"]


def jax_loss(jax):
    return lambda w, x, y: (jax_entropy(jax, layers(jax, w, x), y), {})


def perceptron(widths, count, **more) -> Workload:
    def batch():
        rng = np.random.default_rng(SEED)
        x = rng.normal(size=(count, widths[0])).astype("float32")
        return [x, rng.integers(0, widths[-1], count)]

    words = {"batch": batch, "net": net(*widths), "apply": classify, "jax": jax_loss}
    return Workload(**words | more)


def predicts(widths, seconds: float) -> Workload:
    """Inference for one row, which reads each weight for one product."""
    return perceptron(
        widths,
        1,
        title=f"MLP {'-'.join(map(str, widths))}, inference of one row",
        target=Target(0.8, "torch", seconds),
        batch=lambda: [np.random.default_rng(SEED).normal(size=(1, widths[0])).astype("float32")],
        apply=lambda framework: lambda net, x: net(x),
        jax=lambda jax: partial(layers, jax),
        kind="predict",
    )


def wide(width: int, seconds: float) -> Workload:
    return perceptron(
        (784, width, width, 10),
        128,
        title=f"MLP 784-{width}-{width}-10, batch 128, Adam",
        target=Target(0.95, "jax", seconds),
        optimizer=("Adam", 1e-3),
    )


TINY = perceptron(
    (64, 32, 32, 10),
    32,
    title="tiny MLP 64-32-32-10, batch 32",
    target=Target(0.2, "jax", 0.073e-3),
    by_hand=("tiny.c", ()),
)
MLP = perceptron(
    (784, 256, 256, 10),
    128,
    title="MLP 784-256-256-10, batch 128, Adam",
    target=Target(0.95, "jax", 1.93e-3),
    optimizer=("Adam", 1e-3),
)
WIDE, WIDER = wide(1024, 1e-2), wide(2048, 3e-2)
PREDICTS, WIDE_PREDICTS = predicts((784, 512, 512, 10), 5e-5), predicts((784, 1024, 1024, 10), 1e-4)
