"""Checks of 27_all_together/pipe_cost."""

from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.distributed.pipeline.schedules import build_schedule
from minipaddle.distributed.pipeline.simulate import peaks, simulate
from minipaddle.distributed.planner import OURS, Layout, StageJob, figures
from minipaddle.distributed.simulator import cluster_named
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.static import InputSpec

exercise = Exercise(
    title="The cost of a plan: how long a pipe takes, and what it keeps",
    level="medium",
    minutes=25,
    slots={
        "planner.pipeline_seconds": "pipeline_seconds",
        "planner.live_micro_batches": "live_micro_batches",
    },
    hints=(
        "Which stage is never idle between its first micro-batch and its last one, and what do the "
        "others do before and after?",
        "The time is that of the slowest stage, for all micro-batches, and one micro-batch's time "
        "in each of the others. What a stage keeps is how many forwards it is ahead of its "
        "backwards.",
        "seconds: micro_batches * the most + (the sum - the most) / chunks\n"
        "kept, one chunk: pipe - stage, at most micro_batches\n"
        "kept, several: all if micro_batches <= pipe; else the pieces ahead / chunks, at most all",
    ),
    wrong={
        "the bubble at every stage": "(others / chunks) → others",
        "the first stage decides": "max(stages) → stages[0]",
        "the mean decides": "max(stages) → sum(stages) / len(stages)",
        "the slowest stage counts twice": "sum(stages) - slowest → sum(stages)",
        "no bubble": "(others / chunks) → 0",
        "one micro-batch too few": "micro_batches * slowest → (micro_batches - 1) * slowest",
        "pieces multiply the bubble": "(others / chunks) → others * chunks",
        "all stages keep as much": "min(micro_batches, pipe - stage) → min(micro_batches, pipe)",
        "more than there are": "min(micro_batches, pipe - stage) → pipe - stage",
        "one too few": "min(micro_batches, pipe - stage) → min(micro_batches, pipe - stage - 1)",
        "pieces for micro-batches": (
            "min(micro_batches, ahead / chunks) → min(micro_batches, ahead)"
        ),
        "pieces without a limit": "min(micro_batches, ahead / chunks) → ahead / chunks",
        "pieces are not seen": "chunks == 1 → True",
        "few micro-batches are not seen": "micro_batches <= pipe → False",
        "equal numbers are not seen": "micro_batches <= pipe → micro_batches < pipe",
        "as far ahead in every stage": "pipe - 1 - stage → pipe - 1",
        "once, not twice": "2 * (pipe - 1 - stage) → (pipe - 1 - stage)",
        "the first pieces for all of them": "(chunks - 1) * pipe → chunks * pipe",
    },
)  # fmt: skip


@exercise.mistake("as if all stages were as slow as the slowest")
def pipeline_seconds(stages, micro_batches, chunks):
    return (micro_batches + (len(stages) - 1) / chunks) * max(stages)


@exercise.example
def seconds(yours):
    """Equal stages, a slow one, one stage, one micro-batch, pieces."""
    for stages, m, chunks, wanted in (
        ([1.0] * 4, 8, 1, 11.0),
        ([1.0] * 4, 8, 2, 9.5),
        ([1.0, 3.0, 1.0], 4, 1, 14.0),
        ([2.0, 1.0, 1.0, 1.0], 16, 3, 33.0),
        ([0.25], 5, 1, 1.25),
        ([1.0, 2.0], 1, 1, 3.0),
        ([0.0, 0.0], 3, 1, 0.0),
    ):
        before, got = [*stages], yours.pipeline_seconds(stages, m, chunks)
        expect(got, wanted, given={"stages": before, "micro_batches": m, "chunks": chunks})
        expect(stages, before, given="the list of seconds, unchanged")


@exercise.property(
    pipe=st.integers(1, 6), m=st.integers(1, 12), chunks=st.integers(1, 3), groups=st.integers(1, 3)
)
def as_the_simulator_says(yours, pipe, m, chunks, groups):
    """Seconds and kept micro-batches, beside a simulation job by job."""
    m = m if chunks == 1 else pipe * groups
    name = "1F1B" if chunks == 1 else "VPP"
    made = build_schedule(name, pipe, m, chunks)
    given = {"stages": pipe, "micro_batches": m, "chunks": chunks}
    took = simulate(made, {"F": 1.0, "B": 2.0}).seconds
    got = yours.pipeline_seconds([3.0] * pipe, m, chunks)
    expect(got, took, given=given, rtol=1e-9)
    kept = peaks(made)
    for stage in range(pipe):
        got = float(yours.live_micro_batches(pipe, m, chunks, stage))
        expect(got, float(kept[stage]), given=given | {"stage": stage}, rtol=1e-9)


@exercise.example
def the_first_stage(yours):
    """A stage that is not named is the first."""
    for args, wanted in (
        ((4, 8, 1), 4),
        ((4, 2, 1), 2),
        ((4, 8, 3), 5.0),
        ((4, 4, 2), 4),
        ((4, 5, 2), 5),
    ):
        expect(float(yours.live_micro_batches(*args)), float(wanted), given=args)


@exercise.example
def the_planner_counts(yours):
    """The engine's own costs of a GPT: micro-batches shrink the bubble, pieces do, too."""
    with paddle.LazyGuard():
        net = paddle.text.GPT(512, 64, layers=8, heads=4, context=32)
    found = {1: figures(net, InputSpec([32], "int64"), sequence=False, half=False)}
    job = StageJob(found, *cluster_named("1x4 CPU"), OURS)
    with exercise.plugged(yours):
        few, many = (job.cost(Layout(pipe=4, micro_batches=m)) for m in (4, 16))
        pieces = job.cost(Layout(pipe=4, micro_batches=16, chunks=2))
    shares = [c.seconds.bubble / c.seconds.total for c in (few, many, pieces)]
    expect_that(shares[0] > 2 * shares[1] > 2 * shares[2] > 0, "bubbles that shrink", got=shares)
    expect(few.memory.activations, many.memory.activations, given="4 and 16 micro-batches")
