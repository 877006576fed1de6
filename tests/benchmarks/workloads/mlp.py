"""Two perceptrons of three layers: one where calling costs more than computing, one of MNIST's size
with Adam.
"""

from __future__ import annotations

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


def jax_loss(jax):
    def loss(w, x, y):
        last = len(w) - 2  # layers 0, 2, 4: ReLU stands between
        for k in range(0, last, 2):
            x = jax.nn.relu(x @ w[f"{k}.weight"] + w[f"{k}.bias"])
        return jax_entropy(jax, x @ w[f"{last}.weight"] + w[f"{last}.bias"], y), {}

    return loss


def perceptron(widths, count, **more) -> Workload:
    def batch():
        rng = np.random.default_rng(SEED)
        x = rng.normal(size=(count, widths[0])).astype("float32")
        return [x, rng.integers(0, widths[-1], count)]

    return Workload(batch=batch, net=net(*widths), apply=classify, jax=jax_loss, **more)


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
