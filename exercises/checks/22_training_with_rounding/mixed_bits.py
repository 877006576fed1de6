"""Checks of 22_training_with_rounding/mixed_bits."""

from copy import deepcopy

from hypothesis import strategies as st

from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.quantization import bits as engine

exercise = Exercise(
    title="Mixed bits by sensitivity",
    level="medium",
    minutes=25,
    slots={"quantization.choose_bits": "choose_bits"},
    hints=(
        "A layer of 100 weights whose loss rises by 0.1 from 8 bits to 4, and one of 1000 weights "
        "whose loss rises by 0.5: which of the two should go first?",
        "For each layer there is at most one next step: from its bits to the largest of its "
        "choices below. What it costs is the difference of two rises, what it saves is bits · "
        "size.",
        "bits = the most of each\nwhile Σ bits · size > budget:\n    for each layer that can go "
        "down: (rise there - rise here) / bits of memory saved\n    none: ValueError\n    the "
        "least of them, the first of equals: down",
    ),
    wrong={
        "the rise alone": "(own[now] - own[bits[k]]) / saved → own[now] - own[bits[k]]",
        "the rise from nothing": "own[now] - own[bits[k]] → own[now]",
        "the dearest first": "min(steps) → max(steps)",
        "down to the fewest at once": "now = max(fewer) → now = min(fewer)",
        "sizes forgotten": "(bits[k] - now) * sizes[k] → bits[k] - now",
        "one step too many": (
            "sum((b * size for b, size in zip(bits, sizes))) > budget → "
            "sum((b * size for b, size in zip(bits, sizes))) >= budget"
        ),
        "a budget of weights": (
            "sum((b * size for b, size in zip(bits, sizes))) > budget → "
            "sum((size for b, size in zip(bits, sizes))) > budget"
        ),
        "from the fewest on": "[max(own) for own in rises] → [min(own) for own in rises]",
        "no error": "raise ValueError(f'no choice of bits fits into {budget}') → return bits",
        "the largest layer first": "(own[now] - own[bits[k]]) / saved → -sizes[k]",
        "the bits in the order of the dict": "now = max(fewer) → now = fewer[0]",
    },
    unkillable={
        "while sum((b * size for b, size in zip(bits, sizes))) > budget: → "
        "while sum((b * size for b, size in zip(sizes, bits))) > budget:": "the same products",
        "if not steps: → pass": "min of nothing is a ValueError, too",
        "raise ValueError(f'no choice of bits fits into {budget}') → pass": "likewise",
    },
)


def right(rises, sizes, budget):
    """The same, with the steps of a layer as a list; None if nothing fits."""
    ladders = [sorted(own, reverse=True) for own in rises]
    at = [0] * len(rises)

    def used():
        return sum(ladder[k] * size for ladder, k, size in zip(ladders, at, sizes, strict=True))

    while used() > budget:
        best = None
        for n, ladder in enumerate(ladders):
            if at[n] + 1 < len(ladder):
                here, there = ladder[at[n]], ladder[at[n] + 1]
                price = (rises[n][there] - rises[n][here]) / ((here - there) * sizes[n])
                if best is None or price < best[0]:
                    best = price, n
        if best is None:
            return None
        at[best[1]] += 1
    return [ladder[k] for ladder, k in zip(ladders, at, strict=True)]


def check(yours, rises, sizes, budget):
    given = {"rises": deepcopy(rises), "sizes": [*sizes], "budget": budget}
    expected = right(rises, sizes, budget)
    if expected is None:
        try:
            got = yours.choose_bits(rises, sizes, budget)
        except ValueError:
            return
        expect_that(False, "ValueError: not even the fewest bits fit", given=given, got=got)
    expect(list(yours.choose_bits(rises, sizes, budget)), expected, given=given)
    now = {"rises": rises, "sizes": sizes, "budget": budget}
    expect_that(now == given, "what was given was changed", given=given, got=now)


@exercise.example
def the_example(yours):
    """Two layers of a size: all, less, the least, and too little."""
    rises = [{8: 0.0, 4: 0.1}, {8: 0.0, 4: 0.3}]
    for budget in (2000, 1600, 1599, 1200, 1199, 800, 799):
        check(yours, rises, [100, 100], budget)


@exercise.example
def sizes_count(yours):
    """A large layer saves more with a step; a cheap step may lead to a dear one; equals."""
    check(yours, [{8: 0.0, 4: 0.1}, {8: 0.0, 4: 0.5}], [100, 1000], 8000)
    check(yours, [{2: 5.0, 8: 0.0, 4: 0.01}, {4: 0.5, 8: 0.0, 2: 0.6}], [100, 100], 1000)
    check(yours, [{8: 0.0, 4: 0.0}] * 3, [10, 10, 10], 200)
    check(yours, [{8: 0.0}, {3: -0.1, 8: 0.0}], [5, 7], 70)
    check(yours, [], [], 0)


choices = st.dictionaries(
    st.sampled_from([2, 3, 4, 6, 8]), st.integers(-3, 20).map(float), min_size=1
)


@exercise.property(
    layers=st.lists(st.tuples(choices, st.integers(1, 9)), min_size=1, max_size=8),
    share=st.sampled_from([0.3, 0.5, 0.7, 1.0]),
    examples=60,
)
def any_layers(yours, layers, share):
    """Layers with choices of their own, in any order."""
    rises, sizes = map(list, zip(*layers, strict=True))
    most = sum(max(own) * size for own, size in layers)
    check(yours, rises, sizes, int(share * most))


@exercise.example
def in_the_engine(yours):
    """The engine asks your function."""
    rises = [{8: 0.0, 4: 0.1, 2: 3.0}, {8: 0.0, 4: 0.3, 2: 0.4}]
    with exercise.plugged(yours):
        expect(engine.choose_bits(rises, [100, 100], 700), [4, 2], given={"budget": 700})
