"""tanh(xw + b) · sigmoid(x) + exp(−x²), summed over four million elements, with its gradient."""

from __future__ import annotations

import numpy as np

from .workload import SEED, Target, Workload, is_torch, module

SIZE = 1 << 22


def net(framework):
    """Three parameters: x, w and b."""

    class Chain(module(framework)):
        def __init__(self):
            super().__init__()
            for name, size in (("x", SIZE), ("w", 1), ("b", 1)):
                if is_torch(framework):
                    p = framework.nn.Parameter(framework.zeros(size))
                else:
                    p = self.create_parameter([size])
                setattr(self, name, p)

        def forward(self):
            x = self.x
            bell = framework.exp(-x * x)
            y = framework.tanh(x * self.w + self.b) * framework.nn.functional.sigmoid(x) + bell
            return y.sum()

    return Chain()


def weights():
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=SIZE).astype("float32")
    return {"x": x, "w": np.float32([0.7]), "b": np.float32([0.1])}


def jax_sum(jax):
    jnp = jax.numpy

    def total(w):
        x = w["x"]
        y = jnp.tanh(x * w["w"] + w["b"]) * jax.nn.sigmoid(x) + jnp.exp(-x * x)
        return y.sum()

    return total


CHAIN = Workload(
    title="chain over 4M elements, with its gradient",
    target=Target(0.35, "torch.compile", 14.2e-3),
    batch=lambda: [],
    net=net,
    apply=lambda framework: lambda net: net(),
    jax=jax_sum,
    kind="gradient",
    weights=weights,
    tolerance=1e-2,  # Paddle adds the four million up one after another
)
