"""Checks of 27_all_together/choose."""

from functools import cache
from types import SimpleNamespace

from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.distributed.planner import OURS, Layout, StageJob, figures, search
from minipaddle.distributed.simulator import cluster_named
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.static import InputSpec

exercise = Exercise(
    title="Choose a mesh: the fastest layout, and of equally fast ones the simplest",
    level="easy",
    minutes=20,
    slots={"planner.choose": "choose"},
    hints=(
        "What does Python do when it sorts tuples whose first items are equal?",
        "Sort by a tuple: the whole number of units first, then what makes a layout less simple, "
        "in the order of the task, the seconds last.",
        "units = int((seconds / shortest - 1) / CLOSE)\n"
        "key = units, recompute, stage, pipe, chunks, model, seconds",
    ),
    wrong={
        "the longest for the shortest": "min((cost.seconds.total for cost in costs)) → "
        "max((cost.seconds.total for cost in costs))",
        "the seconds alone": "return (units, how.recompute, how.stage, how.pipe, how.chunks, "
        "how.model, seconds) → return seconds",
        "seconds before simplicity": "return (units, how.recompute, how.stage, how.pipe, "
        "how.chunks, how.model, seconds) → return (seconds, how.recompute, how.stage, how.pipe, "
        "how.chunks, how.model, units)",
        "simplicity before seconds": "return (units, how.recompute, how.stage, how.pipe, "
        "how.chunks, how.model, seconds) → return (how.recompute, how.stage, how.pipe, "
        "how.chunks, how.model, units, seconds)",
        "units of 5 %": "(seconds / shortest - 1) / CLOSE → (seconds / shortest - 1) / CLOSE / 10",
        "units are rounded": "int((seconds / shortest - 1) / CLOSE) → "
        "round((seconds / shortest - 1) / CLOSE)",
        "units of seconds": "int((seconds / shortest - 1) / CLOSE) → int((seconds - shortest) / "
        "CLOSE)",
        "recomputation is simple": "how.recompute → not how.recompute",
        "recomputation does not count": "how.recompute → 0",
        "ZeRO does not count": "how.stage → 0",
        "the pipe does not count": "how.pipe → 0",
        "more stages first": "how.pipe → -how.pipe",
        "pieces do not count": "how.chunks → 0",
        "tensor parallel does not count": "how.model → 0",
        "the worst first": "sorted(costs, key=rank) → sorted(costs, key=rank, reverse=True)",
    },
)  # fmt: skip


@exercise.mistake("the best one alone")
def choose(costs):
    return [min(costs, key=lambda cost: cost.seconds.total)]


@exercise.mistake("pipe before ZeRO's stage")
def choose(costs):  # noqa: F811
    shortest = min(cost.seconds.total for cost in costs)

    def rank(cost):
        how, t = cost.layout, cost.seconds.total
        units = int((t / shortest - 1) / CLOSE)  # noqa: F821
        return units, how.recompute, how.pipe, how.stage, how.chunks, how.model, t

    return sorted(costs, key=rank)


def cost(seconds: float, **layout):
    return SimpleNamespace(layout=Layout(**layout), seconds=SimpleNamespace(total=seconds))


def order(yours, costs, wanted) -> None:
    before = [*costs]
    got = yours.choose(costs)
    given = [(c.seconds.total, str(c.layout)) for c in before]
    expect_that(isinstance(got, list) and len(got) == len(before), f"{len(before)} costs",
                given=given, got=got)  # fmt: skip
    places = [next((k for k, c in enumerate(before) if c is each), None) for each in got]
    expect(places, wanted, given=given, why="the numbers of the given costs, the best first")
    expect_that(costs == before, "the list of costs, unchanged", given=given)


@exercise.example
def about_equal(yours):
    """Steps that differ by less than half a percent, and by more."""
    order(yours, [cost(1.0, pipe=4), cost(1.003, pipe=2)], [1, 0])
    order(yours, [cost(1.0, pipe=4), cost(1.006, pipe=2)], [0, 1])
    order(yours, [cost(2.02, pipe=2), cost(2.0, pipe=4), cost(2.014, pipe=8)], [1, 2, 0])
    order(yours, [cost(1.0), cost(1.0085, pipe=2), cost(1.006, pipe=4)], [0, 1, 2])
    order(yours, [cost(100.0, pipe=2), cost(100.4, pipe=1)], [1, 0])
    order(yours, [cost(7.0)], [0])


SIMPLE = {"recompute": (False, True), "stage": (0, 2), "pipe": (1, 8), "chunks": (1, 2),
          "model": (2, 4)}  # fmt: skip


@exercise.example
def what_is_simple(yours):
    """What comes first in the task outweighs all that follows."""
    names = [*SIMPLE]
    for k, name in enumerate(names):
        later = names[k + 1 :]
        low = {name: SIMPLE[name][0]} | {each: SIMPLE[each][1] for each in later}
        high = {name: SIMPLE[name][1]} | {each: SIMPLE[each][0] for each in later}
        order(yours, [cost(1.0, **high), cost(1.004, **low)], [1, 0])
        order(yours, [cost(1.0, **low), cost(1.004, **high)], [0, 1])
    order(yours, [cost(1.002, pipe=2), cost(1.001, pipe=2), cost(1.0, pipe=4)], [1, 0, 2])


@exercise.property(
    rows=st.lists(
        st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 1), st.sampled_from([1, 2, 4])),
        min_size=1, max_size=8, unique=True,
    )
)  # fmt: skip
def any_costs(yours, rows):
    """As a sort by the number of units, and by simplicity."""
    rows = sorted(rows, key=lambda row: row[3])
    costs = [cost(1.0 + (2 * t + 1) / 2000, recompute=r, stage=s, pipe=p) for t, r, s, p in rows]
    least = min(c.seconds.total for c in costs)
    keys = [
        (int(200 * (c.seconds.total / least - 1) + 1e-9), *row[1:], row[0])
        for c, row in zip(costs, rows)
    ]
    order(yours, costs, sorted(range(len(rows)), key=lambda k: keys[k]))


@cache
def job() -> StageJob:
    """A small GPT on four cores."""
    with paddle.LazyGuard():
        net = paddle.text.GPT(64, 64, layers=2, heads=4, context=16)
    found = {1: figures(net, InputSpec([16], "int64"), sequence=False, half=False)}
    return StageJob(found, *cluster_named("2x2 CPU"), OURS)


@exercise.example
def the_planner_chooses(yours):
    """The engine's search: its best layout is the simplest of those that are about as fast."""
    with exercise.plugged(yours):
        found = search(job(), 8)
    least = min(c.seconds.total for c in found.fits)
    near = [c.layout for c in found.fits if c.seconds.total < 1.0049 * least]
    simple = min(near, key=lambda how: (how.recompute, how.stage, how.pipe, how.chunks, how.model))
    expect(found.best.layout, simple, given=[str(how) for how in near])
