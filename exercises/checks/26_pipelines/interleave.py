"""Checks of 26_pipelines/interleave."""

from hypothesis import strategies as st

from minipaddle.distributed.pipeline.schedules import build_schedule
from minipaddle.distributed.pipeline.simulate import check, simulate
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="Interleave: several parts in each stage",
    level="easy",
    minutes=20,
    before=("26_pipelines/one_each",),
    slots={"pipeline.interleave": "interleave"},
    hints=(
        "Two stages, two chunks: when is the first micro-batch through both stages, and can come "
        "to its second chunk? What does the first stage do until then?",
        "Three loops, one in the other. Which one is outside: groups, chunks, or micro-batches?",
        "for the first micro-batch of each group: 0, stages, 2 · stages, …\n"
        "    for each chunk\n"
        "        for each micro-batch of the group: (micro-batch, chunk)",
    ),
    wrong={
        "no groups": (
            "range(0, micro_batches, stages) → [0]",
            "min(first + stages, micro_batches) → micro_batches",
        ),
        "more micro-batches than there are": "min(first + stages, micro_batches) → first + stages",
        "without the last group": (
            "range(0, micro_batches, stages) → range(0, micro_batches - stages + 1, stages)"
        ),
        "one micro-batch at a time": (
            "range(0, micro_batches, stages) → range(micro_batches)",
            "first + stages → first + 1",
        ),
        "chunks from the last": "range(chunks) → reversed(range(chunks))",
        "a chunk too few": "range(chunks) → range(chunks - 1)",
        "groups of as many as chunks": (
            "range(0, micro_batches, stages) → range(0, micro_batches, chunks)",
            "first + stages → first + chunks",
        ),
        "chunk and micro-batch swapped": "(micro_batch, chunk) → (chunk, micro_batch)",
        "the first micro-batch left out": (
            "range(0, micro_batches, stages) → range(1, micro_batches, stages)"
        ),
    },
)  # fmt: skip


@exercise.mistake("the micro-batches of a group outside, the chunks inside")
def interleave(stages, micro_batches, chunks):
    return [
        (k, chunk)
        for first in range(0, micro_batches, stages)
        for k in range(first, min(first + stages, micro_batches))
        for chunk in range(chunks)
    ]


@exercise.mistake("only for whole groups")
def interleave(stages, micro_batches, chunks):  # noqa: F811
    return [
        (group * stages + k, chunk)
        for group in range(micro_batches // stages)
        for chunk in range(chunks)
        for k in range(stages)
    ]


@exercise.example
def small_pipelines(yours):
    """Whole groups, a last group with fewer, fewer micro-batches than stages, one chunk."""
    for (stages, micro_batches, chunks), expected in (
        ((2, 4, 2), "00 10 01 11 20 30 21 31"),
        ((2, 3, 2), "00 10 01 11 20 21"),
        ((3, 4, 2), "00 10 20 01 11 21 30 31"),
        ((4, 2, 3), "00 10 01 11 02 12"),
        ((2, 3, 1), "00 10 20"),
        ((1, 2, 2), "00 01 10 11"),
    ):
        got = " ".join(f"{k}{c}" for k, c in yours.interleave(stages, micro_batches, chunks))
        given = {"stages": stages, "micro_batches": micro_batches, "chunks": chunks}
        expect(got, expected, given=given)


@exercise.property(stages=st.integers(1, 5), count=st.integers(1, 11), chunks=st.integers(1, 4))
def each_once(yours, stages, count, chunks):
    """A group of micro-batches at a time, chunk by chunk."""
    got = yours.interleave(stages, count, chunks)
    given = {"stages": stages, "micro_batches": count, "chunks": chunks}
    everything = sorted((k, c) for k in range(count) for c in range(chunks))
    expect(sorted(got), everything, given=given, why="each pair once")
    keys = [(k // stages, c, k) for k, c in got]
    expect(keys, sorted(keys), given=given, why="the order: group, chunk, micro-batch")


@exercise.example
def the_bubble_shrinks(yours):
    """The engine's VPP: (p - 1) / (v m + p - 1) for p stages, v chunks, m micro-batches."""
    with exercise.plugged(yours):
        for p, m, v in ((2, 4, 2), (4, 8, 2), (4, 8, 3), (3, 7, 2)):
            schedule = build_schedule("VPP", p, m, v)
            check(schedule)
            given = {"stages": p, "micro-batches": m, "chunks": v}
            if m % p == 0:
                bubble = 1 - simulate(schedule).efficiency
                expect(bubble, (p - 1) / (v * m + p - 1), given=given, rtol=1e-9, why="the bubble")
