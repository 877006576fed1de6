"""A schedule without a model: whether it can run, its time, and the memory of a stage."""

from collections import Counter
from collections.abc import Callable, Iterator

from ...engine.core.errors import value_error
from ...engine.core.slots import slot
from ..simulator.timeline import Activity, Timeline
from .schedules import Job, Schedule

SECONDS = {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}
"""The seconds of jobs in formulas: a backward has two products for each one of the forward."""


@slot("pipeline.jobs_before")
def jobs_before(schedule: Schedule, stage: int, job: Job) -> list[tuple[int, Job]]:
    """The (stage, job) that a job waits for: its neighbours' jobs, and its own first half.

    The last part's backward starts with the gradient of the loss, which needs its forward alone.
    """
    kind, micro_batch, chunk = job
    if kind == "W":
        return [(stage, job._replace(kind="I"))]
    before, part = [], schedule.find_part(stage, chunk)
    beside = part - 1 if kind == "F" else part + 1
    if kind != "F":
        before.append((stage, job._replace(kind="F")))
    if 0 <= beside < schedule.parts:
        there, other = schedule.locate(beside)
        before.append((there, Job(kind, micro_batch, other)))
    return before


def walk(schedule: Schedule) -> Iterator[tuple[int, Job, list]]:
    """Walk through (stage, job, jobs before it) in an order in which the stages can compute them.

    Raises ValueError if all of them wait.
    """
    done: set[tuple[int, Job]] = set()
    position = [0] * schedule.stages
    while any(at < len(jobs) for at, jobs in zip(position, schedule.jobs)):
        before = len(done)
        for stage, jobs in enumerate(schedule.jobs):
            while position[stage] < len(jobs):
                job = jobs[position[stage]]
                needed = jobs_before(schedule, stage, job)
                if not done.issuperset(needed):
                    break
                yield stage, job, needed
                done.add((stage, job))
                position[stage] += 1
        if len(done) == before:
            waiting = [
                f"stage {k} before {jobs[at]}"
                for k, (at, jobs) in enumerate(zip(position, schedule.jobs))
                if at < len(jobs)
            ]
            raise value_error(
                f"the schedule {schedule.name}: all stages wait, {'; '.join(waiting)}",
                hint="a job comes after what it needs: see jobs_before",
            )


def check(schedule: Schedule, limit: int | None = None) -> None:
    """Raise ValueError for a schedule that is not complete, in which all stages wait for each
    other, or in which a stage holds more than `limit` micro-batches at a time.

    >>> from minipaddle.distributed.pipeline.schedules import build_schedule
    >>> from minipaddle.distributed.pipeline.simulate import check
    >>> check(build_schedule("1F1B", 4, 8), limit=4)
    """
    counts = range(schedule.micro_batches), range(schedule.chunks)
    for stage, jobs in enumerate(schedule.jobs):
        halves = any(job.kind in "IW" for job in jobs)
        wanted = Counter(
            Job(kind, k, chunk)
            for k in counts[0]
            for chunk in counts[1]
            for kind in ("FIW" if halves else "FB")
        )
        wrong = [*(wanted - Counter(jobs)), *(Counter(jobs) - wanted)]
        if wrong:
            raise value_error(
                f"the schedule {schedule.name}: stage {stage} has {wrong[0]} "
                f"{jobs.count(wrong[0])} times",
                expected="each job once",
            )
    for _ in walk(schedule):
        pass
    for stage, held in enumerate(peaks(schedule)):
        if limit is not None and held > limit:
            raise value_error(
                f"the schedule {schedule.name}: stage {stage} holds {held:g} micro-batches at a "
                "time",
                expected=f"{limit} at most",
            )


def peaks(schedule: Schedule) -> list[float]:
    """The most micro-batches whose values each stage keeps for their backward. A chunk counts as
    its share of the stage.

    >>> from minipaddle.distributed.pipeline.schedules import build_schedule
    >>> from minipaddle.distributed.pipeline.simulate import peaks
    >>> peaks(build_schedule("1F1B", 4, 8))
    [4.0, 3.0, 2.0, 1.0]
    """
    return [max(count_live(jobs)) / schedule.chunks for jobs in schedule.jobs]


def count_live(jobs: list[Job]) -> list[int]:
    """The number of kept forwards after each job of a stage: until the weights have their
    gradients.
    """
    counts = [0]
    for job in jobs:
        counts.append(counts[-1] + (job.kind == "F") - (job.kind in "BW"))
    return counts[1:]


def simulate(
    schedule: Schedule,
    seconds: dict[str, float] | Callable[[int, Job], float] = SECONDS,
    message: float = 0.0,
) -> Timeline:
    """The spans of all stages.

    seconds: the time of a job of each kind, or a function of (stage, job). For v chunks each takes
        its share.
    message: the seconds from one stage to the next, during which both may compute
    Returns a `Timeline`: its `efficiency` is 1 - the bubble.

    >>> from minipaddle.distributed.pipeline.schedules import build_schedule
    >>> from minipaddle.distributed.pipeline.simulate import simulate
    >>> timeline = simulate(build_schedule("1F1B", 4, 8))
    >>> timeline.seconds, round(1 - timeline.efficiency, 3)  # (p - 1) / (m + p - 1)
    (33.0, 0.273)
    """
    if isinstance(seconds, dict):
        shares = {kind: x / schedule.chunks for kind, x in seconds.items()}
        seconds = lambda stage, job: shares[job.kind]
    done: dict[tuple[int, Job], float] = {}
    now, spans = [0.0] * schedule.stages, []
    for stage, job, needed in walk(schedule):
        begin = now[stage]
        for there, other in needed:
            begin = max(begin, done[there, other] + message * (there != stage))
        end = now[stage] = done[stage, job] = begin + seconds(stage, job)
        spans.append(Activity(stage, "compute", str(job), begin, end))
    busy = sum(s.end - s.start for s in spans)
    return Timeline(spans, max(now), busy / schedule.stages)
