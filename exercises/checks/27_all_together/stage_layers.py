"""Checks of 27_all_together/stage_layers."""

from itertools import combinations, pairwise

from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.distributed.planner import OURS, Layout, StageJob, figures
from minipaddle.distributed.planner.cost import layers_of
from minipaddle.distributed.simulator import cluster_named
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.static import InputSpec

exercise = Exercise(
    title="Blocks for stages: who does other work gets fewer of them",
    level="medium",
    minutes=20,
    slots={"planner.stage_layers": "stage_layers"},
    hints=(
        "All blocks but one for each stage are still to be given away. To whom does the first of "
        "them do the least harm?",
        "Give away one block after the other, each to the stage that has the least to do so far: "
        "its blocks and its other work.",
        "other = 0 for each stage; first added to the first one, last to the last one\n"
        "counts = 1 for each stage\n"
        "for each block that is left: the stage with the least counts + other gets it",
    ),
    wrong={
        "no other work at first": "other[0] += first → pass",
        "no other work at last": "other[-1] += last → pass",
        "the other way round": ("other[0] += first → other[0] += last",
                                "other[-1] += last → other[-1] += first"),
        "to the busiest": "min(range(pipe), key=lambda k: counts[k] + other[k]) → "
        "max(range(pipe), key=lambda k: counts[k] + other[k])",
        "blocks alone count": "counts[k] + other[k] → counts[k]",
        "other work alone counts": "counts[k] + other[k] → other[k]",
        "other work helps": "counts[k] + other[k] → counts[k] - other[k]",
        "whole blocks": "counts[k] + other[k] → counts[k] + int(other[k])",
        "stages without a block": ("counts = [1] * pipe → counts = [0] * pipe",
                                   "range(blocks - pipe) → range(blocks)"),
        "a block too few": "range(blocks - pipe) → range(blocks - pipe - 1)",
        "a block too many": "range(blocks - pipe) → range(blocks - pipe + 1)",
    },
)  # fmt: skip


@exercise.mistake("equally many")
def stage_layers(blocks, pipe, first, last):
    return [(k + 1) * blocks // pipe - k * blocks // pipe for k in range(pipe)]


def slowest(counts, first: float, last: float) -> float:
    load = [float(n) for n in counts]
    load[0] += first
    load[-1] += last
    return max(load)


def judge(blocks, pipe, first, last, counts) -> None:
    given = {"blocks": blocks, "pipe": pipe, "first": first, "last": last}
    expect_that(len(counts) == pipe and all(int(n) == n >= 1 for n in counts),
                f"{pipe} whole numbers, 1 or more", given=given, got=counts)  # fmt: skip
    expect_that(sum(counts) == blocks, f"{blocks} blocks in all", given=given, got=counts)
    cuts = ([0, *inner, blocks] for inner in combinations(range(1, blocks), pipe - 1))
    best = min(slowest([b - a for a, b in pairwise(c)], first, last) for c in cuts)
    expect(slowest(counts, first, last), best, given=given | {"counts": [*counts]}, rtol=1e-9,
           why="what the slowest stage does, in blocks")  # fmt: skip


@exercise.example
def pipes(yours):
    """No other work, a little, more than a block, one stage, a block for each stage."""
    for args in (
        (8, 4, 0.0, 0.0),
        (8, 4, 0.0, 0.9),
        (7, 2, 0.0, 1.0),
        (12, 4, 2.5, 0.0),
        (12, 4, 0.25, 3.5),
        (9, 3, 1.5, 1.5),
        (10, 3, 0.6, 0.0),
        (5, 1, 2.0, 3.0),
        (4, 4, 1.0, 9.0),
        (6, 2, 0.0, 20.0),
    ):
        judge(*args, yours.stage_layers(*args))


@exercise.property(
    pipe=st.integers(1, 4),
    more=st.integers(0, 7),
    first=st.integers(0, 12),
    last=st.integers(0, 12),
)
def any_pipe(yours, pipe, more, first, last):
    """As good as the best of all ways to divide the blocks."""
    args = pipe + more, pipe, first / 4, last / 4
    judge(*args, yours.stage_layers(*args))


@exercise.example
def the_planner_divides(yours):
    """The engine's: the scores of a large vocabulary take blocks from the last stage."""
    with paddle.LazyGuard():
        net = paddle.text.GPT(4096, 64, layers=9, heads=4, context=32)
    found = {1: figures(net, InputSpec([32], "int64"), sequence=False, half=False)}
    job, layout = StageJob(found, *cluster_named("1x3 CPU"), OURS), Layout(pipe=3, micro_batches=6)
    block, first, last = (job.both(layout, part) for part in ("block", "first", "last"))
    with exercise.plugged(yours):
        counts = layers_of(job, layout)
    judge(9, 3, first / block, last / block, counts)
    expect_that(counts[-1] < counts[0], "fewer blocks in the last stage", got=counts)
