"""Checks of 28_parameter_servers/geo_delta."""

import numpy as np
from hypothesis import strategies as st

from minipaddle.distributed.ps.client import Client, GeoClient
from minipaddle.distributed.ps.threads import Threads
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="GEO: what a worker sends that takes its steps alone",
    level="easy",
    minutes=10,
    slots={"ps.geo_delta": "geo_delta"},
    hints=(
        "The server adds up what comes from w workers, who all began with `base`. What must the "
        "sum be, so that base plus the sum is the mean of their rows?",
        "mean of local - base = the sum over workers of (local - base) / w.",
        "The difference, divided by the number of workers.",
    ),
    wrong={
        "the sum, not the mean": "(local - base) / workers → local - base",
        "the wrong way": "(local - base) / workers → (base - local) / workers",
        "the rows themselves": "(local - base) / workers → local / workers",
        "only the new rows are divided": "(local - base) / workers → local / workers - base",
        "the others only": "(local - base) / workers → (local - base) / max(workers - 1, 1)",
        "whole numbers": "(local - base) / workers → (local - base) // workers",
        "the worker's rows are changed": "(local - base) / workers → "
        "local.__isub__(base).__itruediv__(workers)",
        "more exact than asked": "(local - base) / workers → "
        "(local.astype('float64') - base) / workers",
    },
)


def check(yours, local, base, workers):
    before = local.copy(), base.copy()
    got = yours.geo_delta(local, base, workers)
    share = [
        [(a - b) / workers for a, b in zip(*rows)] for rows in zip(*map(np.ndarray.tolist, before))
    ]
    expected = np.array(share, local.dtype).reshape(local.shape)
    given = {"local": before[0], "base": before[1], "workers": workers}
    expect(got, expected, given=given, rtol=1e-6, atol=1e-6)
    expect(got.dtype.name, local.dtype.name, given=given, why="the dtype")
    expect((local, base), before, given=given, why="the arguments stay as they are")


@exercise.example
def in_the_task(yours):
    """[[3, 1]] from [[1, 1]] by one of four workers."""
    got = yours.geo_delta(np.array([[3.0, 1.0]]), np.array([[1.0, 1.0]]), 4)
    expect(got, np.array([[0.5, 0.0]]))


@exercise.example
def none_many_infinite_and_every_second(yours):
    """None, many, an infinite one, and every second one of a larger array."""
    check(yours, np.zeros((0, 3), "float32"), np.zeros((0, 3), "float32"), 2)
    check(yours, np.arange(300.0).reshape(100, 3), np.ones((100, 3)), 4)
    check(yours, np.array([[np.inf, 1.0]]), np.zeros((1, 2)), 2)
    rows = np.arange(24.0, dtype="float32").reshape(6, 4)
    check(yours, rows[::2], rows[::-2], 3)
    check(yours, rows[:, ::2], rows[:, 1::2].copy(), 1)


@exercise.property(
    n=st.integers(1, 4), width=st.integers(1, 3), workers=st.integers(1, 5),
    seed=st.integers(0, 99), dtype=st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def each_element(yours, n, width, workers, seed, dtype):
    """Any rows, by any number of workers, in both dtypes."""
    rng = np.random.default_rng(seed)
    local, base = (rng.standard_normal((n, width)).astype(dtype) for _ in range(2))
    check(yours, local, base, workers)


@exercise.example
def the_mean_of_three_workers(yours):
    """Three workers take two steps alone by plain descent, and exchange what changed."""
    config = {
        "rows": 9, "width": 2, "dtype": "float64", "recipe": ["constant", 4.0], "base": 0,
        "optimizer": {"kind": "SGD", "options": {}, "decay": None}, "factor": 1.0, "entry": None,
        "mode": "geo",
    }  # fmt: skip
    with exercise.plugged(yours):
        carrier = Threads(2, 3)
        clients = [GeoClient(Client(carrier, k, 3), 2) for k in range(3)]
        for client in clients:
            client.create("t", config)
            client.pull("t", [1, 2])
        for _ in range(2):
            for k, client in enumerate(clients):
                client.push(
                    "t", [1, 2] if k == 0 else [1], np.full((1 + (k == 0), 2), k + 1.0), 0.5
                )
        plain = Client(carrier, 0, 3)
        plain.create("t", config)
        got = plain.pull("t", [1, 2, 3])
    own = [4 - 2 * 0.5 * (k + 1) for k in range(3)]
    expect(got[:, 0], np.array([np.mean(own), 4 - 1.0 / 3, 4.0]), rtol=1e-12)
