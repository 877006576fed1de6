"""Schedules of pipelines: for each stage the order of its jobs.

| schedule    | what is special                                     | bubble (F = I = W)         |
|-------------|-----------------------------------------------------|----------------------------|
| `FThenB`    | all forwards, then all backwards (GPipe)            | (p - 1) / (m + p - 1)      |
| `1F1B`      | a backward as soon as there is one: p live at most  | the same                   |
| `Eager1F1B` | twice the forwards at first, to hide communication  | the same                   |
| `VPP`       | each stage has v chunks of layers, interleaved      | (p - 1) / (v m + p - 1)    |
| `ZBH1`      | gradients of weights fill the gaps                  | (p - 1) / (3 m + p - 1)    |
| `ZBV`       | that, and two chunks in a V: 0 1 2 3, then 3 2 1 0  | (p - 1) / (6 m + p - 1)    |

p stages, m micro-batches; for ZBV m is at least 2 p.
Source: Huang et al., "GPipe", 2019; Narayanan et al., "Efficient Large-Scale Language Model
Training on GPU Clusters Using Megatron-LM", 2021; Qi et al., "Zero Bubble Pipeline Parallelism",
2023; Qi et al., "Pipeline Parallelism with Controllable Memory", 2024.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...engine.core.errors import value_error
from ...engine.core.slots import slot


class Job(NamedTuple):
    """Uninterrupted work of a stage, for one micro-batch and one of its chunks of layers.

    kind: "F" the forward; "B" the backward; or its two halves, "I" the gradient of the inputs, for
    the stage before, and "W" the gradient of the weights, which no stage waits for.
    """

    kind: str
    micro_batch: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.micro_batch}.{self.chunk}"


class Schedule(NamedTuple):
    """`jobs[stage]` are the jobs of a stage in their order.

    The `stages * chunks` parts of a model are dealt out to the stages: part q is in stage q %
    stages. If `folded`, every other round is reversed: the last part is in the first stage.
    """

    name: str
    stages: int
    micro_batches: int
    chunks: int
    folded: bool
    jobs: list[list[Job]]

    @property
    def parts(self) -> int:
        """The number of parts of the model."""
        return self.stages * self.chunks

    def find_part(self, stage: int, chunk: int) -> int:
        """The number of the part in a chunk of a stage."""
        back = self.folded and chunk % 2
        return chunk * self.stages + (self.stages - 1 - stage if back else stage)

    def locate(self, part: int) -> tuple[int, int]:
        """(stage, chunk) of a part."""
        chunk, stage = divmod(part, self.stages)
        return (self.stages - 1 - stage if self.folded and chunk % 2 else stage), chunk

    def __str__(self) -> str:
        return "\n".join(" ".join(map(str, jobs)) for jobs in self.jobs)


@slot("pipeline.one_forward_one_backward")
def one_forward_one_backward(forwards: list, backwards: list, warmup: int) -> list[Job]:
    """`warmup` forwards, then forwards and backwards in turn, then the remaining backwards.

    forwards, backwards: (micro-batch, chunk) in the order of a stage.
    """
    jobs = [Job("F", *each) for each in forwards[:warmup]]
    waiting = deque(forwards[warmup:])
    for each in backwards:
        if waiting:
            jobs.append(Job("F", *waiting.popleft()))
        jobs.append(Job("B", *each))
    return jobs


@slot("pipeline.split_backwards")
def split_backwards(jobs: list[Job], lag: int) -> list[Job]:
    """The jobs with each backward in halves; the gradients of weights follow `lag` backwards later.

    A stage may wait as long as it holds no more micro-batches than the first stage does.
    """
    split, late = [], deque()
    for job in jobs:
        if job.kind != "B":
            split.append(job)
            continue
        split.append(job._replace(kind="I"))
        late.append(job._replace(kind="W"))
        if len(late) > lag:
            split.append(late.popleft())
    return [*split, *late]


@slot("pipeline.interleave")
def interleave(stages: int, micro_batches: int, chunks: int) -> list[tuple[int, int]]:
    """(micro-batch, chunk) in the order in which a stage computes them: as many micro-batches as
    there are stages pass through the first chunk, then through the next ones, then the next
    micro-batches follow.
    """
    return [
        (micro_batch, chunk)
        for first in range(0, micro_batches, stages)
        for chunk in range(chunks)
        for micro_batch in range(first, min(first + stages, micro_batches))
    ]


def alternate(warmup, lag=None):
    """The builder of a schedule of one chunk: `warmup(stage, stages)` forwards are first, then
    forwards and backwards alternate; with `lag(stage)` backwards are in halves.
    """

    def build(stages: int, micro_batches: int, chunks: int) -> list[list[Job]]:
        order = [(k, 0) for k in range(micro_batches)]
        rows = [
            one_forward_one_backward(order, order, min(warmup(stage, stages), micro_batches))
            for stage in range(stages)
        ]
        return rows if lag is None else [split_backwards(row, lag(k)) for k, row in enumerate(rows)]

    return build


def build_interleaved(stages: int, micro_batches: int, chunks: int) -> list[list[Job]]:
    """VPP: a stage has several chunks of the model, and so fills the pipeline sooner. The schedule
    is one of full rounds, as many micro-batches as there are stages, without those too many.
    """
    enough = -(-micro_batches // stages) * stages
    forwards = interleave(stages, enough, chunks)
    backwards = [(micro_batch, chunks - 1 - chunk) for micro_batch, chunk in forwards]
    rows = []
    for stage in range(stages):
        warmup = 2 * (stages - 1 - stage) + (chunks - 1) * stages
        if enough == stages:
            warmup = len(forwards)
        rows.append(one_forward_one_backward(forwards, backwards, min(warmup, len(forwards))))
    return leave_out(rows, micro_batches)


def build_folded(stages: int, micro_batches: int, chunks: int) -> list[list[Job]]:
    """ZBV: the first stage has the first and the last chunk, so all stages hold equally much."""
    enough = max(micro_batches, 2 * stages)
    return leave_out([fold(stage, stages, enough) for stage in range(stages)], micro_batches)


def leave_out(rows: list[list[Job]], micro_batches: int) -> list[list[Job]]:
    """The jobs of the first micro-batches. Without the others nothing waits that did not before:
    a job waits for jobs of its own micro-batch.
    """
    return [[job for job in row if job.micro_batch < micro_batches] for row in rows]


def fold(stage: int, stages: int, micro_batches: int) -> list[Job]:
    """The jobs of a stage in a V, for at least twice as many micro-batches as there are stages."""
    jobs: list[Job] = []
    count = dict.fromkeys([(kind, chunk) for kind in "FIW" for chunk in (0, 1)], 0)

    def add(times: int, *kinds: str) -> None:
        for kind in kinds * times:
            key = kind[0], int(kind[1])
            if count[key] < micro_batches:
                jobs.append(Job(key[0], count[key], key[1]))
                count[key] += 1

    last = stages - stage  # the number of parts between this stage's two
    add(2 * last - 1, "F0")
    add(stage, "F1", "F0")
    add(last, "F1", "I1", "W1")
    add(micro_batches - stages, "F0", "I0", "W0", "F1", "I1", "W1")
    add(stage, "I0", "I1")
    add(last, "I0", "W0")
    add(micro_batches, "W1")
    add(micro_batches, "W0")
    return jobs


class Family(NamedTuple):
    """A kind of schedule: `build(stages, micro_batches, chunks)`; the number of chunks (None: 2 or
    more); whether the parts form a V.
    """

    build: Callable
    chunks: int | None = 1
    folded: bool = False


SCHEDULES = {
    "FThenB": Family(alternate(lambda stage, stages: float("inf"))),
    "1F1B": Family(alternate(lambda stage, stages: stages - 1 - stage)),
    "Eager1F1B": Family(alternate(lambda stage, stages: 2 * (stages - 1 - stage))),
    "VPP": Family(build_interleaved, None),
    "ZBH1": Family(alternate(lambda stage, stages: stages - 1 - stage, lag=lambda stage: stage)),
    "ZBV": Family(build_folded, 2, folded=True),
}
"""The schedules by Paddle's names."""


def build_schedule(name: str, stages: int, micro_batches: int, chunks: int = 1) -> Schedule:
    """A schedule by its name, one of `SCHEDULES`.

    chunks: the parts of the model in each stage: 1, for ZBV 2, for VPP 2 or more
    Raises ValueError for an unknown name and for impossible numbers.

    >>> from minipaddle.distributed.pipeline.schedules import build_schedule
    >>> print(build_schedule("1F1B", stages=2, micro_batches=3))
    F0.0 F1.0 B0.0 F2.0 B1.0 B2.0
    F0.0 B0.0 F1.0 B1.0 F2.0 B2.0
    >>> print(build_schedule("ZBH1", stages=2, micro_batches=3))
    F0.0 F1.0 I0.0 W0.0 F2.0 I1.0 W1.0 I2.0 W2.0
    F0.0 I0.0 F1.0 I1.0 W0.0 F2.0 I2.0 W1.0 W2.0
    """
    if name not in SCHEDULES:
        raise value_error(f"the schedule {name!r}", expected=f"one of {', '.join(SCHEDULES)}")
    family = SCHEDULES[name]
    for what, n in (("stages", stages), ("micro_batches", micro_batches), ("chunks", chunks)):
        if type(n) is not int or n < 1:
            raise value_error(f"a schedule of {what}={n!r}", expected="1, 2, …")
    if chunks != family.chunks if family.chunks else chunks < 2:
        raise value_error(
            f"the schedule {name} with chunks={chunks}", expected=f"{family.chunks or '2 or more'}"
        )
    jobs = family.build(stages, micro_batches, chunks)
    return Schedule(name, stages, micro_batches, chunks, family.folded, jobs)
