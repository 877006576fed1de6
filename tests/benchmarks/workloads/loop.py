"""A loop whose end depends on a tensor: damped Newton steps on x³ + x = a, 64 equations at once."""

from __future__ import annotations

import numpy as np

from .workload import SEED, Target, Workload

COUNT, DAMPING, PRECISION = 64, 0.7, 1e-5


def residual(x, a):
    return x * x * x + x - a


def better(x, a):
    """One step of Newton's method, shortened."""
    return x - DAMPING * residual(x, a) / (3 * x * x + 1)


def apply(framework):
    def solve(net, a):
        limit, x = PRECISION * a.max(), framework.ones_like(a)
        while abs(residual(x, a)).max() > limit:
            x = better(x, a)
        return x

    return solve


def torch_compile(torch):
    """`torch.compile` keeps a loop whole that is written as an operator."""
    from torch._higher_order_ops.while_loop import while_loop

    def solve(net, a):
        limit = PRECISION * a.max()

        def wrong(x):
            return abs(residual(x, a)).max() > limit

        def step(x):
            return (better(x, a),)

        return while_loop(wrong, step, (torch.ones_like(a),))[0]

    return solve


def jax_solve(jax):
    def solve(w, a):
        limit = PRECISION * a.max()
        return jax.lax.while_loop(
            lambda x: abs(residual(x, a)).max() > limit,
            lambda x: better(x, a),
            jax.numpy.ones_like(a),
        )

    return solve


LOOP = Workload(
    title="while that a tensor ends, 64 equations",
    target=Target(0.2, "jax", 0.022e-3),
    batch=lambda: [np.random.default_rng(SEED).uniform(1, 9, COUNT).astype("float32")],
    net=lambda framework: None,
    apply=apply,
    jax=jax_solve,
    kind="predict",
    torch_compile=torch_compile,
    by_hand=("loop.c", (COUNT,)),
)
