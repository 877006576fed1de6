"""Checks of 19_less_memory/stays."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.passes.gathers import Stay

exercise = Exercise(
    title="When is a weight whole: kept, or gathered again?",
    level="medium",
    minutes=30,
    before=("19_less_memory/gather",),
    slots={"gathers.stays": "stays_of"},
    hints=(
        "Three layers, forward and backward: a b c, c b a. Between which uses of the same weight "
        "are two others used?",
        "Go through the uses of one weight, two by two: `last` and the next. How many other "
        "gathers have a use from the one to the other? A stay is open until two uses are apart.",
        "for each gather: first = last = its first use\n"
        "    for each further use: if more than `ahead` others are used from last to use, and it "
        "is not too small:\n"
        "        a stay from first to last; first = use\n"
        "    last = use\n"
        "    a stay from first to last\n"
        "all stays sorted by their first",
    ),
    wrong={
        "gathered once and kept": "len(between) > ahead and "
                                  "gather.record.spec.nbytes >= least → False",
        "gathered for each use": "len(between) > ahead and "
                                 "gather.record.spec.nbytes >= least → True",
        "small ones, too": "len(between) > ahead and gather.record.spec.nbytes >= least → "
                           "len(between) > ahead",
        "of the least size kept": "gather.record.spec.nbytes >= least → "
                                  "gather.record.spec.nbytes > least",
        "one too few": "len(between) > ahead → len(between) >= ahead",
        "those between the first use and this one": "last <= t <= use → first <= t <= use",
        "uses counted, not weights": (
            "[g for g in found if g is not gather and any(last <= t <= use for t in g.uses)] → "
            "[t for g in found if g is not gather for t in g.uses if last <= t <= use]"
        ),
        "itself among the others": (
            "g is not gather and any(last <= t <= use for t in g.uses) → "
            "any(last <= t <= use for t in g.uses)"
        ),
        "uses at the same time do not count": "last <= t <= use → last < t < use",
        "the last stay forgotten": "return sorted(stays, key=lambda stay: stay.first) → "
                                   "return sorted(stays, key=lambda stay: stay.first)[:-1]",
        "in the order of the weights": "sorted(stays, key=lambda stay: stay.first) → stays",
        "sorted by their ends": "lambda stay: stay.first → lambda stay: stay.last",
        "a new stay that begins at its old use": "first = use → first = last",
    },
)  # fmt: skip


def gathers(uses: dict, nbytes=64):
    """Gathers with these uses, by name."""
    sizes = nbytes if isinstance(nbytes, dict) else dict.fromkeys(uses, nbytes)
    return [
        SimpleNamespace(
            name=name, uses=[*times],
            record=SimpleNamespace(spec=SimpleNamespace(nbytes=sizes[name])),
        )
        for name, times in uses.items()
    ]  # fmt: skip


def said(yours, uses, ahead, least=0, nbytes=64):
    """The stays as (name, first, last)."""
    found = gathers(uses, nbytes)
    got = yours.stays_of(found, ahead, least)
    given = {"uses": uses, "ahead": ahead, "least": least, "bytes": nbytes}
    expect_that(type(got) is list and all(type(s) is Stay for s in got), "a list of stays",
                given=given, got=got)  # fmt: skip
    expect([g.uses for g in found], [*map(list, uses.values())], given=given, why="the uses")
    return [(s.gather.name, s.first, s.last) for s in got]


THREE = {"a": [1, 6], "b": [2, 5], "c": [3, 4]}


@exercise.example
def three_layers(yours):
    """There and back: a has two others between its uses, b one, c none."""
    kept = [("a", 1, 6), ("b", 2, 5), ("c", 3, 4)]
    again = [("a", 1, 1), ("b", 2, 5), ("c", 3, 4), ("a", 6, 6)]
    all_of = [("a", 1, 1), ("b", 2, 2), ("c", 3, 4), ("b", 5, 5), ("a", 6, 6)]
    for ahead, expected in ((2, kept), (5, kept), (1, again), (0, all_of)):
        expect(said(yours, THREE, ahead), expected, given=THREE | {"ahead": ahead})
    expect(said(yours, {}, 1), [], given="no weights")
    twice = {"a": [1], "b": [1]}
    expect(said(yours, twice, 0), [("a", 1, 1), ("b", 1, 1)], given=twice | {"ahead": 0})
    expect(said(yours, {"a": [4]}, 0), [("a", 4, 4)], given="one use")


@exercise.example
def small_weights(yours):
    """Of fewer than `least` bytes: gathered once."""
    for least, parts in ((64, 2), (65, 1), (63, 2)):
        got = said(yours, THREE, 1, least)
        expect(sum(name == "a" for name, *_ in got), parts, given=THREE | {"least": least})
    got = said(yours, THREE, 0, 64, {"a": 10, "b": 64, "c": 64})
    expect(got, [("a", 1, 6), ("b", 2, 2), ("c", 3, 4), ("b", 5, 5)], given="a has 10 bytes")


@exercise.example
def what_counts_as_another(yours):
    """A weight counts once, at the very time of a use too; and only since the use before."""
    for uses, ahead, expected in (
        ({"a": [1, 9], "b": [2, 3, 4, 5]}, 1, [("a", 1, 9), ("b", 2, 5)]),
        ({"a": [1, 3], "b": [1], "c": [3]}, 1,
         [("a", 1, 1), ("b", 1, 1), ("a", 3, 3), ("c", 3, 3)]),
        ({"a": [1, 3, 5], "b": [2], "c": [4]}, 1, [("a", 1, 5), ("b", 2, 2), ("c", 4, 4)]),
        ({"a": [1, 2, 7, 8], "b": [3], "c": [4]}, 1,
         [("a", 1, 2), ("b", 3, 3), ("c", 4, 4), ("a", 7, 8)]),
        ({"a": [1, 4, 7], "b": [2, 5], "c": [3, 6]}, 1,
         [("a", 1, 1), ("b", 2, 2), ("c", 3, 3), ("a", 4, 4), ("b", 5, 5), ("c", 6, 6),
          ("a", 7, 7)]),
    ):  # fmt: skip
        expect(said(yours, uses, ahead), expected, given=uses | {"ahead": ahead})


@exercise.property(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=9),
    ahead=st.integers(0, 4),
    seed=st.integers(0, 9999),
    examples=60,
)
def every_use_in_one_stay(yours, counts, ahead, seed):
    """Random uses: cut where more than `ahead` others come between, and nowhere else."""
    draw = np.random.default_rng(seed)
    uses = {f"w{k}": sorted({*draw.integers(0, 30, n).tolist()}) for k, n in enumerate(counts)}
    sizes = {name: int(draw.integers(1, 100)) for name in uses}
    got = said(yours, uses, ahead, 30, sizes)
    expected = []
    for name, times in uses.items():
        parts = [[times[0]]]
        for before, now in pairwise(times):
            others = sum(
                bool({*range(before, now + 1)} & {*t}) for n, t in uses.items() if n != name
            )
            if others > ahead and sizes[name] >= 30:
                parts.append([])
            parts[-1].append(now)
        expected += [(name, part[0], part[-1]) for part in parts]
    given = {"uses": uses, "ahead": ahead, "bytes": sizes}
    expect(sorted(got), sorted(expected), given=given)
    order = [(first, [*uses].index(name)) for name, first, _ in got]
    expect(order, sorted(order), given=given, why="sorted by the first use")


def program(ranks: int = 2):
    """The program of a rank: a step of four layers whose weights are stored in pieces."""
    paddle.seed(1)
    net = nn.Sequential(*(nn.Linear(64, 64, bias_attr=False) for _ in range(6)))
    mesh = dist.ProcessMesh([*range(ranks)], dim_names=["dp"])
    dist.shard_layer(net, mesh)
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    sgd = dist.shard_optimizer(sgd, dist.ShardingStage3("dp"))

    @paddle.jit.to_static
    def step(x):
        (net(x) ** 2).mean().backward()
        sgd.step()
        sgd.clear_grad()

    step(dist.shard_tensor(paddle.ones([2, 64]), mesh, [dist.Shard(0)]))
    ((part, _),) = step.concrete_program.executables.parts.values()
    return part


@exercise.example
def the_pass_on_it(yours):
    """Six layers of two ranks: gathered again where others come between, with a smaller arena."""
    part = dist.spawn(program, nprocs=2, timeout=20.0).results[0]
    alone = {"gathers_megabytes": 0, "fuse_all_reduce_ops": False}  # each in a message of its own
    plain = optimized(part, alone | {"gathers": False})
    with exercise.plugged(yours):
        found = optimized(part, alone)
    counts = [
        sum("all_gather" in str(r.attrs.get("collective", "")) for r in each.program.records)
        for each in (plain, found)
    ]
    expect(counts[0], 6, given="six weights, each gathered once and kept")
    expect_that(6 < counts[1] <= 12, "some gathered twice", given="gathers_ahead=2", got=counts)
    sizes = [each.planned().size for each in (plain, found)]
    expect_that(sizes[1] < sizes[0], "a smaller arena", got=sizes)
