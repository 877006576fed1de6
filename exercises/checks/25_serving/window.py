"""Checks of 25_serving/window."""

import asyncio
import math
from copy import copy
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.serving.batcher import Batcher, BatchPolicy, BatchRequest
from minipaddle.serving.metrics import Metrics, ModelMetrics
from minipaddle.serving.runner import ModelRunner
from minipaddle.serving.simulator import Costs, simulate

exercise = Exercise(
    title="The window: when does a batch leave?",
    level="medium",
    minutes=30,
    slots={
        "serving.find_latest_start": "find_latest_start",
        "serving.choose_batch": "choose_batch",
    },
    hints=(
        "Three requests of 3 rows wait, and a batch has room for 8. Is there anything left to wait "
        "for?",
        "Go through the group once, and remember how many requests fit, and how many made a "
        "preferred size last. Ask for the clock only when the batch is not full.",
        "seconds = cost(all rows); latest = min over all of arrived + window and deadline - "
        "seconds\nfitting: add requests while rows ≤ room\nfull or now ≥ latest: fitting; else the "
        "part that is preferred",
    ),
    wrong={
        "the last window, not the first": "min(times) → max(times)",
        "deadlines forgotten": (
            "times += [request.arrived + policy.window, request.deadline - seconds] → "
            "times += [request.arrived + policy.window]"
        ),
        "windows forgotten": (
            "times += [request.arrived + policy.window, request.deadline - seconds] → "
            "times += [request.deadline - seconds]"
        ),
        "a run that takes no time": "request.deadline - seconds → request.deadline",
        "the cost of one row": "cost(sum(request.rows for request in group)) → cost(1)",
        "the cost of as many rows as requests": (
            "cost(sum(request.rows for request in group)) → cost(len(group))"
        ),
        "never full while more fit badly": (
            "rows == room or len(fitting) < len(group) → rows == room"
        ),
        "a batch with the room exactly waits": (
            "rows == room or len(fitting) < len(group) → len(fitting) < len(group)"
        ),
        "one more than fits": "rows + request.rows > room → rows > room",
        "smaller ones overtake": "break → continue",
        "counted in requests": "rows += request.rows → rows += 1",
        "the least preferred size": "if rows in policy.preferred: → "
        "if rows in policy.preferred and not preferred:",
        "preferred sizes counted in requests": (
            "rows in policy.preferred → len(fitting) in policy.preferred"
        ),
        "preferred sizes even after the window": (
            "if now >= find_latest_start(group, policy, cost): → "
            "if now >= find_latest_start(group, policy, cost) and not preferred:"
        ),
        "the room of the policy": "rows == room → rows == policy.largest",
        "late by a moment": (
            "now >= find_latest_start(group, policy, cost) → "
            "now > find_latest_start(group, policy, cost)"
        ),
        "all of the group": "choose_batch(): return preferred → return group if preferred else []",
    },
)

COST = {
    "none": lambda rows: 0.0,
    "one a row": float,
    "half, and an eighth a row": lambda n: 0.5 + n / 8,
}


def group_of(rows, arrived=0.0, deadline=math.inf):
    """Requests of these rows; times may be lists."""
    times = arrived if isinstance(arrived, list) else [arrived] * len(rows)
    ends = deadline if isinstance(deadline, list) else [deadline] * len(rows)
    return [BatchRequest(n, at, deadline=end, number=k) for k, (n, at, end) in
            enumerate(zip(rows, times, ends, strict=True))]  # fmt: skip


def right_start(group, policy, seconds):
    return min(r.arrived + policy.window for r in group), min(r.deadline for r in group) - seconds


def right_batch(group, now, room, policy, seconds):
    """How many start: by all beginnings of the group."""
    sums = [sum(r.rows for r in group[:k]) for k in range(len(group) + 1)]
    most = max(k for k, rows in enumerate(sums) if rows <= room)
    due = now >= min(right_start(group, policy, seconds))
    if due or sums[most] == room or most < len(group):
        return most
    return max((k for k in range(1, most + 1) if sums[k] in policy.preferred), default=0)


def check(yours, group, now, room, policy, kind="none"):
    cost = COST[kind]
    given = {"rows": [r.rows for r in group], "arrived": [r.arrived for r in group],
             "deadlines": [r.deadline for r in group], "now": now, "room": room,
             "policy": policy, "cost": kind}  # fmt: skip
    before, same = [copy(r) for r in group], list(group)
    seconds = cost(sum(r.rows for r in group))
    with exercise.plugged(yours):
        latest = yours.find_latest_start(group, policy, cost)
        got = yours.choose_batch(group, now, room, policy, cost)
    expect(latest, min(right_start(group, policy, seconds)), given=given, why="the latest start")
    expect_that(isinstance(got, list), "this is no list", given=given, got=got)
    count = right_batch(group, now, room, policy, seconds)
    places = [same.index(r) for r in got]
    expect(places, list(range(count)), given=given, why="which requests start: their places")
    unchanged = group == same and all(
        (a.rows, a.arrived, a.deadline) == (b.rows, b.arrived, b.deadline)
        for a, b in zip(same, before, strict=True)
    )
    expect_that(unchanged, "the group was changed", given=given)


@exercise.example
def the_examples(yours):
    """The three of the text."""
    policy = BatchPolicy(8, window=2.0)
    check(yours, group_of([1, 2]), 1.9, 8, policy)
    check(yours, group_of([1, 2]), 2.0, 8, policy)
    check(yours, group_of([4, 4, 1]), 0.0, 8, policy)


@exercise.example
def full_batches(yours):
    """Rows that fill the room exactly, and rows of which the next would be too many."""
    policy = BatchPolicy(8, window=2.0)
    for rows, room in (([4, 4], 8), ([8], 8), ([3, 2], 5), ([3, 3], 5), ([4, 4], 9), ([2] * 9, 6)):
        check(yours, group_of(rows), 0.0, room, policy)


@exercise.example
def deadlines(yours):
    """A deadline ends the window early, by the time that the whole batch takes."""
    policy = BatchPolicy(16, window=10.0)
    for now in (0.0, 0.9, 1.0, 5.0):
        check(yours, group_of([2, 1], deadline=[math.inf, 4.0]), now, 16, policy, "one a row")
        check(yours, group_of([2, 1], deadline=[4.0, 9.0]), now, 16, policy, "one a row")


@exercise.example
def preferred_sizes(yours):
    """The largest preferred size that the first requests make; after the window, all."""
    policy = BatchPolicy(8, window=2.0, preferred=(2, 4))
    for rows in ([1, 1, 1], [1, 1, 2], [3, 3], [2], [1], [1, 3, 1, 2], [4, 1, 1]):
        for now in (0.0, 2.0):
            check(yours, group_of(rows), now, 8, policy)
            check(yours, group_of(rows), now, 5, policy)
    check(yours, group_of([2, 2, 2]), 0.0, 8, policy._replace(preferred=(3, 2)))


TIMES = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5])


@exercise.property(
    examples=60,
    requests=st.lists(
        st.tuples(st.integers(1, 8), TIMES, st.sampled_from([math.inf, 4.0, 7.5])),
        min_size=1, max_size=9,
    ),
    now=st.sampled_from([3.5, 4.0, 5.0, 6.5]),
    room=st.integers(8, 20),
    window=st.sampled_from([0.0, 1.0, 3.0, 9.0]),
    preferred=st.lists(st.integers(1, 12), max_size=3).map(tuple),
    kind=st.sampled_from(list(COST)),
)  # fmt: skip
def any_group(yours, requests, now, room, window, preferred, kind):
    """Windows, deadlines, sizes and costs."""
    rows, arrived, ends = (list(x) for x in zip(*requests))
    policy = BatchPolicy(20, window, preferred)
    check(yours, group_of(rows, arrived, ends), now, room, policy, kind)


@exercise.example
def on_paper(yours):
    """The simulator: what many requests wait for, from three windows."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(0.5, 120)).tolist()
    with exercise.plugged(yours):
        found = [
            simulate(
                times, BatchPolicy(8, window), Costs(0, 0, 0, lambda rows: 1 + rows / 8)
            ).batches
            for window in (0.0, 2.0, 20.0)
        ]
        batcher = Batcher(BatchPolicy(8, window=2.0))
        batcher.add(BatchRequest(3, 0.0))
        due = [batcher.due(0.0), batcher.due(5.0)]
    expect_that(found[0] > found[1] > found[2] >= 15, "a longer window, fewer batches", got=found)
    expect(due, [2.0, 5.0], given="3 rows since 0.0, a window of 2.0", why="when a batch is due")


@exercise.example
def a_model_is_served(yours):
    """Forty digits come at once and in pieces; LeNet reads them in batches that are yours."""
    from minipaddle.hub import load
    from minipaddle.vision.datasets import Digits

    net = load(str(Path(__file__).parents[3] / "hub"), "lenet_digits", "local", pretrained=True)
    data = Digits("test")
    batches = []

    class Served:
        """LeNet, as the runner wants a model."""

        shares, largest = True, 8
        check = staticmethod(lambda shapes: None)
        cost = staticmethod(lambda rows: 0.0)

        def run(self, requests):
            batches.append(sum(len(x) for (x,) in requests))
            with paddle.no_grad():
                return [[net(paddle.to_tensor(x)).numpy()] for (x,) in requests]

    async def main():
        served = Served()
        runner = ModelRunner(
            served, BatchPolicy(window=0.01), ModelMetrics(Metrics(), "digits", "1")
        )
        runner.start([served.run])
        parts = np.split(data.images[:40], [1, 2, 4, 7, 8, 16, 17, 30, 36, 38])
        parts = [piece for part in parts for piece in np.split(part, range(8, len(part), 8))]
        waiting = [runner.add([part], 0, math.inf) for part in parts]
        found = await asyncio.wait_for(asyncio.gather(*waiting), 5)
        await asyncio.wait_for(runner.close(), 5)
        return np.concatenate([scores for (scores,) in found])

    with exercise.plugged(yours):
        scores = asyncio.run(main())
    right = (scores.argmax(1) == data.labels[:40]).mean()
    expect_that(right > 0.9, "rows were mixed up: the digits are read wrong", got=right)
    expect(sum(batches), 40, given={"batches": batches}, why="each row once")
    expect_that(max(batches) <= 8, "a batch is too large", got=batches)
    expect_that(len(batches) <= 8, "batches are too small", got=batches)
