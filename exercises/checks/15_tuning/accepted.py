"""Checks of 15_tuning/accepted."""

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.tuning import proof

exercise = Exercise(
    title="Is a kernel faster, or was it luck?",
    level="easy",
    minutes=15,
    slots={"tuning.accepted": "accepted"},
    hints=(
        "One run of a hundred was interrupted and took ten times as long. Which number for a whole "
        "list does not care?",
        "`statistics.median` for both lists; and `zip` for the pairs, which counts who was faster.",
        "median(other) < 0.98 · median(default)\n"
        "and how often other[k] < default[k], times three, is at least twice the number of pairs",
    ),
    wrong={
        "an average": "from statistics import median → from statistics import mean as median",
        "the least time": "from statistics import median → median = min",
        "any gain will do": "0.98 * median(default) → median(default)",
        "medians alone": "faster and 3 * wins >= 2 * len(default) → faster",
        "pairs alone": "faster and 3 * wins >= 2 * len(default) → 3 * wins >= 2 * len(default)",
        "one of the two is enough": (
            "faster and 3 * wins >= 2 * len(default) → faster or 3 * wins >= 2 * len(default)"
        ),
        "the slower one": "b < a → b > a",
        "a tie is a win": "b < a → b <= a",
        "half of the pairs": "3 * wins >= 2 * len(default) → 2 * wins >= len(default)",
        "more than two of three": "3 * wins >= 2 * len(default) → 3 * wins > 2 * len(default)",
        "all pairs": "3 * wins >= 2 * len(default) → wins == len(default)",
        "a lower median": (
            "from statistics import median → from statistics import median_low as median"
        ),
        "a median of ratios": (
            "median(other) < 0.98 * median(default) → "
            "median((b / a for a, b in zip(default, other))) < 0.98"
        ),
        "exchanged": (
            "median(other) < 0.98 * median(default) → median(default) < 0.98 * median(other)",
            "b < a → a < b",
        ),
    },
    unkillable={
        "wins = sum((b < a for a, b in zip(default, other, strict=True))) → "
        "wins = sum((b < a for a, b in zip(default, other, strict=False)))": "they are "
        "equally long",
    },
)


CASES = {
    "medians 10 and 9, two wins of three": ([10, 10, 10], [9, 9, 30], True),
    "medians 10 and 30": ([10, 10, 10], [9, 30, 30], False),
    "a gain of 1 %": ([10, 10, 10], [9.9, 9.9, 9.9], False),
    "a gain of 2 %": ([100, 100, 100], [98, 98, 98], False),
    "a gain of 3 %": ([100, 100, 100], [97, 97, 97], True),
    "no gain": ([10, 10, 10], [10, 10, 10], False),
    "a loss": ([9, 9, 9], [10, 10, 10], False),
    "medians 15 and 12.5, two wins of four": ([10, 20, 10, 20], [12, 13, 12, 13], False),
    "medians 11 and 10, three wins and a tie": ([8, 10, 12, 14], [7, 9, 11, 14], True),
    "medians 10 and 9, a win and two ties": ([10, 9, 10], [9, 9, 10], False),
    "medians 15 and 14.8": ([10, 10, 20, 20], [9.7, 9.7, 19.9, 19.9], False),
    "one run of 100": ([1, 1, 1, 100], [2, 2, 0.5, 1], False),
    "four wins of six": ([10, 10, 10, 10, 10, 10], [9, 9, 9, 9, 11, 10], True),
    "three wins of six": ([10, 10, 10, 10, 9, 9], [9, 9, 9, 10, 9.1, 9.1], False),
    "all wins, one of them late": ([10, 10, 1000], [9, 9, 900], True),
    "medians 10 and 11, two wins by half": ([1, 10, 100], [0.5, 11, 50], False),
    "medians 20 and 19.5, a small and a large win": ([10, 20, 30], [9.95, 40, 19.5], True),
    "a loss in a late run": ([10, 10, 10, 10], [9, 9, 9, 99], True),
}
"""Seconds of the default, of the other, and whether that is accepted."""


@exercise.example
def the_cases(yours):
    """Some kernels, each measured a few times in turn with the default."""
    got = {what: bool(yours.accepted([*a], [*b])) for what, (a, b, _) in CASES.items()}
    given = {what: {"default": a, "other": b} for what, (a, b, _) in CASES.items()}
    expect(got, {what: answer for what, (*_, answer) in CASES.items()}, given=given)


@exercise.property(factor=st.sampled_from((0.8, 0.9, 0.95)), late=st.integers(0, 4))
def interrupted_runs_do_not_matter(yours, factor, late):
    """A kernel that is faster, and a few runs that took ten times as long, on either side."""
    rng = np.random.default_rng(late)
    default, other = rng.normal(1, 0.005, 21), factor * rng.normal(1, 0.005, 21)
    default[:late] *= 10
    other[5 : 5 + late] *= 10
    given = {"factor": factor, "late": late}
    expect(bool(yours.accepted([*default], [*other])), True, given=given)
    expect(bool(yours.accepted([*other], [*default])), False, given=given | {"exchanged": True})


@exercise.example
def equal_kernels(yours):
    """The same kernel twice, 25 runs each with 5 % noise, two hundred times."""
    rng = np.random.default_rng(0)
    runs = rng.normal(1, 0.05, (200, 2, 25))
    fooled = sum(bool(yours.accepted([*a], [*b])) for a, b in runs)
    expect_that(fooled <= 10, "luck is rarely accepted", got=f"{fooled} of 200")


class Simulated:
    """An executable whose kernels take these parts of a second, while the machine slows down."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.total = clock, seconds, dict.fromkeys(seconds, 0.0)
        self.contexts = []
        self.kernels = SimpleNamespace(signatures={name: name for name in seconds})

    def times(self):
        return [(total, name) for name, total in self.total.items()]

    def __call__(self, program, arrays):
        self.clock[0] *= 1.02
        for name, seconds in self.seconds.items():
            self.total[name] += seconds * self.clock[0]


@exercise.example
def the_engine_keeps_what_is_faster(yours):
    """The engine's proof on simulated kernels, on a machine that gets slower from run to run."""
    clock = [1.0]
    default = Simulated(clock, {"gains": 1.0, "loses": 1.0, "equal": 1.0})
    other = Simulated(clock, {"gains": 0.8, "loses": 1.2, "equal": 1.0})
    target = SimpleNamespace(arrays=[], program=None, compile=lambda best, timed: other)
    best = {name: {"tile": 4} for name in default.seconds}
    with exercise.plugged(yours):
        kept = proof.faster(target, default, best)
    expect(sorted(kept), ["gains"], given="0.8, 1.2 and 1.0 of the default's time")
