"""The time of a pipe by the seconds of its stages, and the memory of each of them."""

from collections.abc import Sequence
from functools import lru_cache

from ...engine.core.slots import slot
from ..pipeline.schedules import build_schedule
from ..pipeline.simulate import peaks, simulate
from .layout import Layout


@slot("planner.pipeline_seconds")
def pipeline_seconds(stages: list[float], micro_batches: int, chunks: int) -> float:
    """The time of a pipe; `stages` are the seconds of each stage for a micro-batch, forward and
    backward: the slowest stage is busy all the time, once the others have filled the pipe. With
    `chunks` pieces a rank one piece fills the pipe.
    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021: a share (p - 1) / (v m) of the time is idle.

    >>> from minipaddle.distributed.planner.pipes import pipeline_seconds
    >>> pipeline_seconds([1.0] * 4, micro_batches=8, chunks=1)
    11.0
    """
    slowest = max(stages)
    return micro_batches * slowest + (sum(stages) - slowest) / chunks


SMALL = 4
"""The stages of a simulated pipe: idle time and memory of each more are the same."""


@lru_cache(maxsize=1 << 12)
def idle_of(schedule: str, stages: int, chunks: int, parts: tuple[int, int, int]) -> float:
    """The idle time of a stage of a schedule, in times of a micro-batch, for each stage after the
    first; by the lengths of a forward and both halves of a backward.
    """
    micro_batches = 2 * stages
    built = build_schedule(schedule, stages, micro_batches, chunks)
    took = simulate(built, dict(zip("FIW", parts, strict=True))).seconds / sum(parts)
    return (took - micro_batches) / (stages - 1)


def halves_seconds(layout: Layout, slowest: Sequence[float]) -> float:
    """The time of a pipe with backwards in halves, by its schedule. `slowest`: forward and both
    halves of the slowest stage, for all stages.
    """
    total = sum(slowest)
    parts = tuple(max(1, round(100 * x / total)) for x in slowest)  # equal ones are simulated once
    idle = idle_of(layout.schedule, min(layout.pipe, SMALL), layout.chunks, parts)
    return total * (layout.micro_batches + idle * (layout.pipe - 1))


@slot("planner.stage_layers")
def stage_layers(blocks: int, pipe: int, first: float, last: float) -> list[int]:
    """The number of blocks of each stage of a pipe: the first and the last stage have `first` and
    `last` blocks' worth of other work. The slowest stage is as fast as possible.

    >>> from minipaddle.distributed.planner.pipes import stage_layers
    >>> stage_layers(8, 4, first=0.0, last=0.9), stage_layers(7, 2, 0.0, 1.0)
    ([2, 2, 2, 2], [4, 3])
    """
    load = [0.0] * pipe
    load[0] += first
    load[-1] += last
    counts = [1] * pipe
    for _ in range(blocks - pipe):
        k = min(range(pipe), key=lambda k: (counts[k] + load[k], k))
        counts[k] += 1
    return counts


@slot("planner.live_micro_batches")
def live_micro_batches(pipe: int, micro_batches: int, chunks: int, stage: int = 0) -> float:
    """The number of micro-batches whose values a stage holds at once, in 1F1B, or interleaved:
    there it has computed all its pieces but one for all stages, and that one twice for each stage
    after it; with no more micro-batches than stages it holds all.
    Source: Narayanan et al., 2021; Korthikanti et al., 2022, section 4.2.

    >>> from minipaddle.distributed.planner.pipes import live_micro_batches
    >>> [live_micro_batches(4, 8, chunks, stage) for chunks, stage in ((1, 0), (1, 3), (3, 0))]
    [4, 1, 5.0]
    """
    if chunks == 1:
        return min(micro_batches, pipe - stage)
    if micro_batches <= pipe:
        return micro_batches
    ahead = 2 * (pipe - 1 - stage) + (chunks - 1) * pipe + 1  # pieces
    return min(micro_batches, ahead / chunks)


def live_of(layout: Layout, stage: int) -> float:
    """The number of micro-batches whose values the first or the last stage of a layout holds at
    once; in halves, until weights have their gradients.
    """
    if not layout.halves:
        return live_micro_batches(layout.pipe, layout.micro_batches, layout.chunks, stage)
    stages = min(layout.pipe, SMALL)
    return layout.pipe / stages * count_held(layout.schedule, stages, layout.chunks)[-(stage > 0)]


@lru_cache
def count_held(schedule: str, stages: int, chunks: int) -> list[float]:
    """The number of micro-batches whose values each stage of a schedule holds."""
    return peaks(build_schedule(schedule, stages, 2 * stages, chunks))
