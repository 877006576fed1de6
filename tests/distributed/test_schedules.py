"""Schedules of pipelines: Paddle's lists, the published bubbles, what a stage holds, refusals."""

import json
from pathlib import Path

import pytest

from minipaddle.distributed.pipeline.schedules import SCHEDULES, Job, build_schedule
from minipaddle.distributed.pipeline.simulate import check, peaks, simulate

RECORDED = Path(__file__).parent.parent / "data" / "pipeline_schedules.json"
PADDLE = json.loads(RECORDED.read_text())["schedules"]
SHAPES = [(p, m) for p in range(1, 9) for m in (*range(1, 14), 16)]
CHUNKS = {"VPP": (2, 3, 4), "ZBV": (2,)}


@pytest.mark.parametrize("name", ["FThenB", "1F1B", "Eager1F1B", "VPP"])
def test_jobs_are_paddles(name):
    """But for VPP's last round if it is not full: in Paddle's order four stages of three chunks
    wait for ever for five micro-batches, and others take up to a quarter longer.
    """
    for key, rows in PADDLE[name].items():
        p, m, *v = map(int, key.split(","))
        if name == "VPP" and m % p:
            continue
        schedule = build_schedule(name, p, m, *v)
        found = str(schedule) if name == "VPP" else str(schedule).replace(".0", "")
        assert found.splitlines() == rows, key


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_is_complete_and_never_waits_for_ever(name):
    for p, m in SHAPES:
        for v in CHUNKS.get(name, (1,)):
            check(build_schedule(name, p, m, v))


BUBBLES = {
    "FThenB": lambda p, m, v: (p - 1) / (m + p - 1),
    "1F1B": lambda p, m, v: (p - 1) / (m + p - 1),
    "Eager1F1B": lambda p, m, v: (p - 1) / (m + p - 1),
    "VPP": lambda p, m, v: (p - 1) / (v * m + p - 1),
    "ZBH1": lambda p, m, v: (p - 1) / (3 * m + p - 1),
    "ZBV": lambda p, m, v: (p - 1) / (6 * m + p - 1),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_bubble_is_that_of_the_formula(name):
    for p, m in [(2, 4), (2, 8), (3, 6), (4, 8), (4, 16), (8, 16)]:
        for v in CHUNKS.get(name, (1,)):
            timeline = simulate(build_schedule(name, p, m, v))
            assert 1 - timeline.efficiency == pytest.approx(BUBBLES[name](p, m, v)), (p, m, v)


def test_published_bubbles():
    """The figures of the papers, for 4 stages and 4, 8, 16 micro-batches."""
    published = {"FThenB": [0.429, 0.273, 0.158], "1F1B": [0.429, 0.273, 0.158],
                 "ZBH1": [0.200, 0.111, 0.059]}  # fmt: skip
    for name, bubbles in published.items():
        found = [1 - simulate(build_schedule(name, 4, m)).efficiency for m in (4, 8, 16)]
        assert found == pytest.approx(bubbles, abs=5e-4), name


def test_what_stages_hold():
    """1F1B holds a micro-batch for each stage that follows; zero bubbles as many as stage 0."""
    assert peaks(build_schedule("FThenB", 4, 8)) == [8, 8, 8, 8]
    assert peaks(build_schedule("1F1B", 4, 8)) == [4, 3, 2, 1]
    assert peaks(build_schedule("ZBH1", 4, 8)) == [4, 4, 4, 4]
    assert peaks(build_schedule("ZBV", 4, 8, 2)) == [4, 4, 4, 4]
    assert max(peaks(build_schedule("VPP", 4, 8, 2))) == 5.5  # p + (p - 1) / 2


def test_messages_delay_the_stages():
    schedule = build_schedule("1F1B", 2, 1)
    assert simulate(schedule, message=0.5).seconds == simulate(schedule).seconds + 2 * 0.5


def test_folded_parts_lie_in_a_v():
    schedule = build_schedule("ZBV", 4, 8, 2)
    assert [schedule.locate(part)[0] for part in range(8)] == [0, 1, 2, 3, 3, 2, 1, 0]
    assert all(schedule.find_part(*schedule.locate(part)) == part for part in range(8))


def test_check_compares_with_a_limit():
    check(build_schedule("1F1B", 4, 8), limit=4)
    with pytest.raises(ValueError, match="stage 0 holds 8 micro-batches at a time"):
        check(build_schedule("FThenB", 4, 8), limit=4)


@pytest.mark.parametrize(("change", "message"), [
    (lambda jobs: jobs[0].pop(), "stage 0 has B3.0 0 times"),
    (lambda jobs: jobs[1].append(Job("F", 0)), "stage 1 has F0.0 2 times"),
    (lambda jobs: jobs[1].reverse(), "all stages wait, stage 0 before B0.0; stage 1 before B3.0"),
])  # fmt: skip
def test_check_names_what_is_wrong(change, message):
    schedule = build_schedule("1F1B", 2, 4)
    change(schedule.jobs)
    with pytest.raises(ValueError, match=message):
        check(schedule)


@pytest.mark.parametrize(("given", "message"), [
    (("GPipe", 2, 4), f"expected: one of {', '.join(SCHEDULES)}"),
    (("1F1B", 0, 4), "stages=0"),
    (("1F1B", 2, 4.0), "micro_batches=4.0"),
    (("1F1B", 2, 4, 2), "1F1B with chunks=2"),
    (("VPP", 2, 4, 1), "VPP with chunks=1"),
])  # fmt: skip
def test_refused(given, message):
    with pytest.raises(ValueError, match=message):
        build_schedule(*given)
