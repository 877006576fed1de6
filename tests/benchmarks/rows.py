"""A step on some rows of a large table: ours beside PyTorch's sparse gradients and rows in JAX."""

from __future__ import annotations

import importlib.util
import resource
import statistics
import time

import numpy as np

from tests.benchmarks.timing import in_units

ROWS, WIDTH, IDS = 1_000_000, 16, 4_096
ROUNDS, CALLS = 9, 20
RATE = 0.01


def batches():
    """Ids of [IDS / 8, 8], and what is to be predicted."""
    rng = np.random.default_rng(0)
    for _ in range(CALLS):
        ids = rng.integers(0, ROWS, (IDS // 8, 8))
        yield ids, rng.standard_normal((len(ids), 1)).astype("float32")


def ours(rule: str, capture: bool):
    import minipaddle as paddle

    table, out = paddle.nn.Embedding(ROWS, WIDTH, sparse=True), paddle.nn.Linear(WIDTH, 1)
    parameters = [*table.parameters(), *out.parameters()]
    how = {"lazy_mode": True} if rule == "Adam" else {}
    optimizer = getattr(paddle.optimizer, rule)(RATE, parameters=parameters, **how)

    def step(ids, y):
        ((out(table(ids).sum(1)) - y) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()

    data = [[*map(paddle.to_tensor, batch)] for batch in batches()]
    return paddle.jit.to_static(step, backend="native") if capture else step, data


def of_torch(rule: str):
    import torch

    table, out = torch.nn.Embedding(ROWS, WIDTH, sparse=True), torch.nn.Linear(WIDTH, 1)
    sparse = torch.optim.SparseAdam if rule == "Adam" else torch.optim.SGD
    optimizers = [
        sparse(table.parameters(), lr=RATE),
        getattr(torch.optim, rule)(out.parameters(), lr=RATE),
    ]

    def step(ids, y):
        ((out(table(ids).sum(1)) - y) ** 2).mean().backward()
        for each in optimizers:
            each.step()
            each.zero_grad()

    return step, [[*map(torch.tensor, batch)] for batch in batches()]


def of_jax(rule: str):
    """Rows written by hand: the gradient of the rows that were taken is added to the table. For
    Adam duplicates are summed first, and the rows of both averages are taken and put.
    """
    import jax
    import jax.numpy as jnp

    def loss(rows, w, b, y):
        return ((rows.sum(1) @ w + b - y) ** 2).mean()

    def descend(state, ids, y):
        table, w, b = state
        g, gw, gb = jax.grad(loss, (0, 1, 2))(table[ids], w, b, y)
        return table.at[ids].add(-RATE * g), w - RATE * gw, b - RATE * gb

    def adam(state, ids, y):
        table, first, second, t, *rest = state
        (w, b), (mw, mb), (vw, vb) = rest
        g, *others = jax.grad(loss, (0, 1, 2))(table[ids], w, b, y)
        flat = ids.reshape(-1)
        rows, where = jnp.unique(flat, return_inverse=True, size=flat.size, fill_value=ROWS)
        g = jnp.zeros((flat.size, WIDTH)).at[where].add(g.reshape(-1, WIDTH))
        t = t + 1

        def moved(p, m, v, g):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            return p - RATE * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v

        p, m, v = moved(table[rows], first[rows], second[rows], g)
        whole = [x.at[rows].set(y, mode="drop") for x, y in ((table, p), (first, m), (second, v))]
        rest = zip(*(moved(*x) for x in zip((w, b), (mw, mb), (vw, vb), others)))
        return *whole, t, *rest

    zeros = [jnp.zeros((WIDTH, 1)), jnp.zeros(1)]
    table = jnp.zeros((ROWS, WIDTH))
    if rule == "SGD":
        state, function = (table, *zeros), descend
    else:
        more = [tuple(z.copy() for z in zeros) for _ in range(3)]
        state, function = (table, table.copy(), table.copy(), jnp.zeros(()), *more), adam
    compiled = jax.jit(function, donate_argnums=0)

    def step(ids, y):
        nonlocal state
        state = compiled(state, ids, y)
        jax.block_until_ready(state)

    return step, [[*map(jnp.asarray, batch)] for batch in batches()]


def makers(rule: str) -> dict:
    """{name: what makes a step and its data}."""
    made = {"ours": lambda: ours(rule, True), "ours, eager": lambda: ours(rule, False)}
    if importlib.util.find_spec("torch"):
        made["PyTorch"] = lambda: of_torch(rule)
    if importlib.util.find_spec("jax"):
        made["JAX, by hand"] = lambda: of_jax(rule)
    return made


def run(threads: int, arguments=()) -> None:
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
    for rule in ("SGD", "Adam"):
        steps, times = {name: make() for name, make in makers(rule).items()}, {}
        for _ in range(ROUNDS + 1):  # the first one compiles
            for name, (step, data) in steps.items():
                began = time.process_time()
                for batch in data:
                    step(*batch)
                times.setdefault(name, []).append((time.process_time() - began) / CALLS)
        medians = {name: statistics.median(each[1:]) for name, each in times.items()}
        told = ", ".join(f"{name} {in_units(t)}" for name, t in medians.items())
        print(f"{rule}, {IDS:,} rows of {ROWS:,} × {WIDTH}, processor time of a step: {told}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"The most memory of the process: {peak:,.0f} MiB")
