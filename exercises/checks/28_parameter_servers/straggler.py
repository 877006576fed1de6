"""Checks of 28_parameter_servers/straggler."""

import copy

import numpy as np
from hypothesis import strategies as st

from minipaddle.distributed.ps import server
from minipaddle.distributed.ps.client import Client
from minipaddle.distributed.ps.threads import Threads
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="Stragglers: who holds the others up",
    level="medium",
    minutes=20,
    slots={"ps.stragglers": "stragglers"},
    hints=(
        "If two workers are compared, and one is ten times as slow, what is the median of both? "
        "So with whom do you compare each, and of whom is nothing known?",
        "First make a dict of the medians, without empty lists: `statistics.median` raises an "
        "error for them. Then compare each with all others; who is alone has none.",
        "for each worker, in rising order: others = the medians of all but him; is his own larger "
        "than factor times their median?",
    ),
    wrong={
        "his own speed counts among the others": (
            "[m for w, m in medians.items() if w != worker] → [m for w, m in medians.items()]"
        ),
        "the mean of the steps": "median(own) → sum(own) / len(own)",
        "the mean of the others": "factor * median(others) → "
        "factor * (sum(others) / len(others) if others else 0)",
        "as slow as that is enough": (
            "medians[worker] > factor * median(others) → medians[worker] >= factor * median(others)"
        ),
        "the factor is always 2": "factor * median(others) → 2.0 * median(others)",
        "the fastest": "factor * median(others) → factor * min(others)",
        "the last step alone": "median(own) → own[-1]",
        "those who are fast": "medians[worker] > factor * median(others) → "
        "factor * medians[worker] < median(others)",
        "in the order of the dict": "sorted(medians) → medians",
        "nothing known is fast": "medians = {worker: median(own) for worker, own in "
        "seconds.items() if own} → medians = {worker: median(own or [0.0]) for worker, own in "
        "seconds.items()}",
    },
)


def middle(numbers) -> float:
    """The median, by sorting."""
    s, n = sorted(numbers), len(numbers)
    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


def check(yours, seconds, *factor):
    before = copy.deepcopy(seconds)
    got = yours.stragglers(seconds, *factor)
    known = {w: middle(s) for w, s in before.items() if len(s)}
    limit = factor[0] if factor else 2.0
    expected = [
        w for w in range(100) if w in known and len(known) > 1
        and known[w] > limit * middle([m for v, m in known.items() if v != w])
    ]  # fmt: skip
    expect(got, expected, given={"seconds": before, "factor": factor})
    expect(seconds, before, why="what is given stays as it is")


@exercise.example
def in_the_task(yours):
    """Worker 2 takes more than twice as long; worker 1 had one slow step."""
    expect(yours.stragglers({0: [1.0, 1.2], 1: [1.0, 9.0, 1.1], 2: [2.5, 2.7]}), [2])


@exercise.example
def nobody_alone_and_a_tie(yours):
    """Nobody, one worker, one of whom nothing is known, exactly the factor, several at once."""
    for seconds in (
        {}, {3: [5.0]}, {0: [], 1: []}, {0: [1.0], 1: []}, {0: [1.0], 1: [2.0]},
        {0: [1.0], 1: [2.0, 2.5]}, {9: [9.0], 2: [8.0], 1: [1.0], 0: [1.0], 4: [1.0]},
        {5: [0.0], 6: [0.0]}, {5: [0.0], 6: [1.0]}, {0: [3.0, 1.0, 2.0, 10.0], 1: [1.0]},
        {k: [1.0] * 4 + [1.0 + k] * 5 for k in range(8)}, {0: [], 1: [1.0], 2: [1.9]},
        {0: [1.0], 1: [1.0], 2: [6.0], 3: [2.5]},
    ):  # fmt: skip
        check(yours, seconds)
        check(yours, seconds, 1.5)


@exercise.property(
    seconds=st.dictionaries(
        st.integers(0, 20),
        st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0, 4.0, 9.0]), max_size=5),
        max_size=6,
    ),
    factor=st.sampled_from([1.0, 1.5, 2.0, 3.0]),
)
def as_the_rules_say(yours, seconds, factor):
    """Any workers, in any order, with any number of steps."""
    check(yours, seconds, factor)


@exercise.example
def a_server_reports_him(yours):
    """Three workers push in turn; the clock of the server says that one takes five seconds."""
    now = [0.0]
    config = {
        "rows": 9, "width": 1, "dtype": "float32", "recipe": ["constant", 0.0], "base": 0,
        "optimizer": {"kind": "SGD", "options": {}, "decay": None}, "factor": 1.0, "entry": None,
        "mode": "async",
    }  # fmt: skip
    clock, server.monotonic = server.monotonic, lambda: now[0]
    try:
        with exercise.plugged(yours):
            carrier = Threads(1, 3)
            clients = [Client(carrier, k, 3) for k in range(3)]
            for client in clients:
                client.create("t", config)
            for _ in range(4):
                for k, client in enumerate(clients):
                    client.pull("t", [1])
                    now[0] += 5.0 if k == 1 else 1.0
                    client.push("t", [1], np.ones((1, 1), "float32"), 0.1)
            expect(clients[0].report()[0]["stragglers"], [1])
    finally:
        server.monotonic = clock
