"""Checks of 26_pipelines/one_each."""

from hypothesis import strategies as st

from minipaddle.distributed.pipeline.schedules import Job, build_schedule
from minipaddle.distributed.pipeline.simulate import check, peaks, simulate
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="One forward, one backward",
    level="easy",
    minutes=20,
    slots={"pipeline.one_forward_one_backward": "one_forward_one_backward"},
    hints=(
        "Write down the jobs of the last of four stages, then of the one before it. What do they "
        "have in common after the first few forwards?",
        "There is exactly one backward in each turn, and a forward before it as long as there is "
        "one. So let the loop go over the backwards.",
        "jobs: a forward for each of forwards[:warmup]\n"
        "left: the others\n"
        "for each backward: if there is one left, the next forward; then the backward",
    ),
    wrong={
        "all forwards first": "forwards[:warmup] → forwards",
        "no warmup": "forwards[:warmup] → []",
        "a forward too many at first": (
            "forwards[:warmup] → forwards[:warmup + 1]",
            "forwards[warmup:] → forwards[warmup + 1:]",
        ),
        "the first forwards again": "forwards[warmup:] → forwards",
        "the last forward first": "left.pop(0) → left.pop()",
        "the backward first": (
            "jobs.append(Job('F', *left.pop(0))) → jobs.insert(len(jobs) - 1, "
            "Job('F', *left.pop(0)))"
        ),
        "backwards as forwards": "Job('B', *each) → Job('F', *each)",
        "no backwards at the end": (
            "jobs.append(Job('B', *each)) → jobs.append(Job('B', *each)) if len(jobs) < "
            "2 * len(forwards) - warmup else None"
        ),
    },
)  # fmt: skip


@exercise.mistake("the list that was given is emptied")
def one_forward_one_backward(forwards, backwards, warmup):
    jobs = [Job("F", *forwards.pop(0)) for _ in range(min(warmup, len(forwards)))]
    for each in backwards:
        if forwards:
            jobs.append(Job("F", *forwards.pop(0)))
        jobs.append(Job("B", *each))
    return jobs


@exercise.mistake("micro-batches by number, chunks forgotten")
def one_forward_one_backward(forwards, backwards, warmup):  # noqa: F811
    n, jobs = len(forwards), []
    for k in range(min(warmup, n)):
        jobs.append(Job("F", k))
    for k in range(n):
        if k + warmup < n:
            jobs.append(Job("F", k + warmup))
        jobs.append(Job("B", k))
    return jobs


@exercise.mistake("an error where the warmup is longer than the forwards")
def one_forward_one_backward(forwards, backwards, warmup):  # noqa: F811
    jobs = [Job("F", *forwards[k]) for k in range(warmup)]
    for k, each in enumerate(backwards):
        if warmup + k < len(forwards):
            jobs.append(Job("F", *forwards[warmup + k]))
        jobs.append(Job("B", *each))
    return jobs


def in_short(jobs) -> str:
    return " ".join(f"{job.kind}{job.micro_batch}.{job.chunk}" for job in jobs)


@exercise.example
def four_micro_batches(yours):
    """Any warmup, longer ones too; chunks in an order of their own."""
    order = [(k, 0) for k in range(4)]
    for warmup, expected in (
        (0, "F0 B0 F1 B1 F2 B2 F3 B3"),
        (1, "F0 F1 B0 F2 B1 F3 B2 B3"),
        (3, "F0 F1 F2 F3 B0 B1 B2 B3"),
        (4, "F0 F1 F2 F3 B0 B1 B2 B3"),
        (9, "F0 F1 F2 F3 B0 B1 B2 B3"),
    ):
        got = in_short(yours.one_forward_one_backward([*order], [*order], warmup))
        expect(got.replace(".0", ""), expected, given={"warmup": warmup})
    forwards, backwards = [(0, 0), (1, 0), (0, 1), (1, 1)], [(0, 1), (1, 1), (0, 0), (1, 0)]
    got = in_short(yours.one_forward_one_backward(forwards, backwards, 2))
    expect(got, "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0", given="two chunks, warmup 2")
    expect(forwards, [(0, 0), (1, 0), (0, 1), (1, 1)], given="the list of forwards, unchanged")
    expect(yours.one_forward_one_backward([], [], 3), [], given="nothing to do")


@exercise.property(count=st.integers(0, 12), warmup=st.integers(0, 15))
def each_job_once(yours, count, warmup):
    """In their order, and never more forwards ahead than the warmup and one."""
    order = [(k, k % 3) for k in range(count)]
    jobs = yours.one_forward_one_backward([*order], [*order], warmup)
    given, ahead = {"micro-batches": count, "warmup": warmup}, 0
    for kind in "FB":
        expect([job[1:] for job in jobs if job.kind == kind], order, given=given, why=kind)
    for k, job in enumerate(jobs):
        ahead += 1 if job.kind == "F" else -1
        expect_that(0 <= ahead <= min(warmup + 1, count), f"at most {warmup + 1} forwards ahead",
                    given=given, got=in_short(jobs[: k + 1]))  # fmt: skip


@exercise.example
def schedules_run_on_it(yours):
    """The engine's 1F1B, VPP and zero bubbles: complete, without a deadlock, little is kept."""
    with exercise.plugged(yours):
        for name, chunks, bubble, most in (
            ("FThenB", 1, 3 / 11, 8.0),
            ("1F1B", 1, 3 / 11, 4.0),
            ("ZBH1", 1, 3 / 27, 4.0),
            ("VPP", 2, 3 / 19, 5.5),
        ):
            schedule = build_schedule(name, 4, 8, chunks)
            check(schedule, limit=most)
            found = 1 - simulate(schedule).efficiency
            given = {"schedule": name, "stages": 4, "micro-batches": 8}
            expect(found, bubble, given=given, rtol=1e-9, why="the bubble")
            expect(max(peaks(schedule)), most, given=given, why="micro-batches that a stage keeps")
