"""Checks of 23_smaller_networks/filters."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn, slim
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="Filters: score them, and choose which go",
    level="easy",
    minutes=20,
    slots={
        "slim.l1_scores": "l1_scores",
        "slim.fpgm_scores": "fpgm_scores",
        "slim.least": "least",
    },
    hints=(
        "Two filters are large and nearly the same, a third one is small and unlike both. Which "
        "one would you miss least, and which of the two scores says so?",
        "`filters[:, None] - filters[None]` is each filter minus each other, [n, n, "
        "size]. A stable "
        "`argsort` leaves equal scores in order; `tolist` makes Python's numbers.",
        "l1: |filters| summed along axis 1\n"
        "fpgm: lengths of all differences, summed along one axis\n"
        "least: the first min(round(ratio · n), n - 1) of the order",
    ),
    wrong={
        "signs are kept": "np.abs(filters) → filters",
        "means instead of sums": "np.abs(filters).sum(axis=1) → np.abs(filters).mean(axis=1)",
        "one score for each input": "np.abs(filters).sum(axis=1) → np.abs(filters).sum(axis=0)",
        "squared distances": "np.sqrt((apart**2).sum(axis=2)) → (apart**2).sum(axis=2)",
        "distances along one side": ("np.sqrt((apart**2).sum(axis=2)) → np.abs(apart).sum(axis=2)"),
        "the farthest counts alone": (
            "np.sqrt((apart**2).sum(axis=2)).sum(axis=1) → "
            "np.sqrt((apart**2).sum(axis=2)).max(axis=1)"
        ),
        "the distance from the mean": "filters[None] → filters.mean(0)[None, None]",
        "the sum of two": "filters[:, None] - filters[None] → filters[:, None] + filters[None]",
        "the best go": (
            "np.argsort(scores, kind='stable') → np.argsort(-np.asarray(scores), kind='stable')"
        ),
        "none may stay": "min(round(ratio * n), n - 1) → round(ratio * n)",
        "rounded down": "round(ratio * n) → int(ratio * n)",
        "those that stay": (
            "np.argsort(scores, kind='stable')[:count] → np.argsort(scores, kind='stable')[count:]"
        ),
        "in their own order": (
            "np.argsort(scores, kind='stable')[:count].tolist() → "
            "sorted(np.argsort(scores, kind='stable')[:count].tolist())"
        ),
        "an array": (
            "np.argsort(scores, kind='stable')[:count].tolist() → "
            "np.argsort(scores, kind='stable')[:count]"
        ),
        "of equal scores the last goes": (
            "np.argsort(scores, kind='stable') → "
            "n - 1 - np.argsort(np.asarray(scores)[::-1], kind='stable')"
        ),
    },
    unkillable={
        "return np.sqrt((apart ** 2).sum(axis=2)).sum(axis=1) → "
        "return np.sqrt((apart ** 2).sum(axis=2)).sum(axis=0)": "distances are symmetric",
        "l1_scores: right only for arrays that are not empty": "a layer has filters",
        "fpgm_scores: right only for arrays that are not empty": "a layer has filters",
        "fpgm_scores: right only for finite numbers": "infinity minus itself is no number",
    },
)


@exercise.example
def the_examples(yours):
    """The three of the text."""
    given = np.array([[1.0, -2], [0, 1]])
    expect(yours.l1_scores(given), np.array([3.0, 1]), given=given)
    given = np.array([[0.0, 0], [3, 4], [0, 8]])
    expect(yours.fpgm_scores(given), np.array([13.0, 10, 13]), given=given)
    scores = np.array([13.0, 10, 13])
    expect(yours.least(scores, 2 / 3), [1, 0], given={"scores": scores, "ratio": "2 / 3"})


exercise.holds(
    lambda yours, x: yours.l1_scores(x),
    lambda x: np.linalg.norm(x, ord=1, axis=1),
    [(5, 4)],
    large=[(12, 30)],
    infinite=(np.inf,),
)


def apart(x):
    """The oracle: pair by pair."""
    return np.array([sum(np.linalg.norm(a - b) for b in x) for a in x])


exercise.holds(lambda yours, x: yours.fpgm_scores(x), apart, [(5, 4)], large=[(12, 30)])


@exercise.property(
    scores=st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0]), min_size=1, max_size=30),
    ratio=st.floats(0, 1),
    wide=st.booleans(),
)
def any_scores(yours, scores, ratio, wide):
    """Equal scores, all ratios; a list of Python's numbers, the least first."""
    scores = np.array(scores, "float64" if wide else "float32")
    before = scores.copy()
    count = min(round(ratio * len(scores)), len(scores) - 1)
    expected = sorted(range(len(scores)), key=lambda k: (scores[k], k))[:count]
    got = yours.least(scores, ratio)
    given = {"scores": before, "ratio": ratio}
    expect(got, expected, given=given)
    expect(type(got).__name__, "list", given=given, why="what comes back")
    expect({type(k).__name__ for k in got} <= {"int"}, True, given=given, why="Python's numbers")
    expect(scores, before, given=given, why="the scores afterwards", atol=0)


@exercise.example
def a_large_layer(yours):
    """200 filters, the last ones first."""
    scores = np.flip(np.arange(200.0))
    for ratio, count in ((0.5, 100), (1.0, 199), (0.9999, 199), (0.0, 0)):
        expected = list(range(199, 199 - count, -1))
        expect(yours.least(scores, ratio), expected, given={"scores": scores, "ratio": ratio})
    infinite = np.array([np.inf, 1.0, -np.inf, 0.0])
    expect(yours.least(infinite, 0.75), [2, 3, 1], given={"scores": infinite, "ratio": 0.75})


@exercise.example
def in_the_engine(yours):
    """Two pruners remove a filter from a layer of three."""
    weight = np.array([[4.0, 4.2, 0.5], [4.0, 4.0, -0.5]], "float32")
    for kind, stay in ((slim.L1NormFilterPruner, [0, 1]), (slim.FPGMFilterPruner, [1, 2])):
        net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        net[0].weight.set_value(weight)
        with exercise.plugged(yours):
            kind(net, [paddle.ones([1, 2])]).prune_vars({net[0].weight.name: 0.33})
        given = {"pruner": kind.__name__, "weight": weight}
        expect(net[0].weight.numpy(), weight[:, stay], given=given, why="what is left")
