"""Checks of 23_smaller_networks/masks."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn, slim
from minipaddle.incubate import asp
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="Masks: the smallest weights, more and more of them, and n of m",
    level="easy",
    minutes=25,
    slots={
        "slim.mask_smallest": "mask_smallest",
        "slim.gradual_ratio": "gradual_ratio",
        "slim.mask_1d": "mask_1d",
    },
    hints=(
        "A threshold would be easier than a count: everything below it goes. What does it do where "
        "many scores are equal, such as in a weight of which half is zero already?",
        "`np.argsort(x, axis=None, kind='stable')` gives the places in the flat array, "
        "the smallest "
        "first, and keeps the order of equal ones. For n of m sort each row of `reshape(-1, m)`; "
        "`np.put_along_axis` writes to places that differ from row to row.",
        "mask_smallest: flat ones; zeros at the first `count` places of the order; back to shape\n"
        "gradual_ratio: 0 before `first`; t = min(1, (step - first) / steps); the formula\n"
        "mask_1d: groups of magnitudes, their order, zeros at the first m - n places of each",
    ),
    wrong={
        "the largest go": "order[:count] → order[::-1][:count]",
        "the smallest of each row": (
            "np.argsort(scores, axis=None, kind='stable') → "
            "np.argsort(scores, kind='stable').ravel()"
        ),
        "one too many": "order[:count] → order[:count + 1]",
        "of equal scores the last go": (
            "np.argsort(scores, axis=None, kind='stable') → "
            "scores.size - 1 - np.argsort(scores.ravel()[::-1], kind='stable')"
        ),
        "the scores' own dtype": (
            "np.ones(scores.size, 'float32') → np.ones(scores.size, scores.dtype)"
        ),
        "zeros where ones belong": (
            "np.ones(scores.size, 'float32') → 1 - np.ones(scores.size, 'float32')"
        ),
        "flat": "mask.reshape(scores.shape) → mask",
        "the first ratio from the start": "return 0.0 → return initial",
        "the first step left out": "if step < first: → if step <= first:",
        "it never ends": "min(1.0, (step - first) / steps) → (step - first) / steps",
        "counted from step 0": "(step - first) / steps → step / steps",
        "a straight line": "(1 - t) ** 3 → (1 - t)",
        "slow, then fast": "(1 - t) ** 3 → (1 - t ** 3)",
        "signs are looked at": "abs(matrix) → matrix",
        "m - n of m stay": "order[:, : m - n] → order[:, :n]",
        "groups along columns": (
            "abs(matrix).reshape(-1, m) → abs(matrix).T.reshape(-1, m)",
            "mask.reshape(matrix.shape) → mask.reshape(matrix.T.shape).T",
        ),
        "of all groups together": (
            "np.argsort(groups, axis=1, kind='stable') → "
            "np.argsort(np.broadcast_to(groups.sum(0), groups.shape), axis=1, kind='stable')"
        ),
        "masks in float32": (
            "np.ones(groups.shape, matrix.dtype) → np.ones(groups.shape, 'float32')"
        ),
    },
    unkillable={
        "groups = abs(matrix).reshape(-1, m) → groups = abs(matrix).reshape(-2, m)": (
            "NumPy takes any negative size for the one that it has to find"
        ),
        "mask_smallest: always float32": "this is what is asked for",
    },
)


def smallest(scores, count):
    """The oracle: one after the other, by score and place."""
    mask = np.ones(scores.shape, "float32")
    places = sorted(np.ndindex(*scores.shape), key=lambda place: scores[place])
    for place in places[:count]:
        mask[place] = 0
    return mask


def n_of_m(matrix, n, m):
    """The oracle: a number stays if fewer than n in its group come before it."""
    mask = np.zeros_like(matrix)
    for i, row in enumerate(matrix):
        for j, x in enumerate(row):
            group = [(abs(row[k]), k) for k in range(j - j % m, j - j % m + m)]
            mask[i, j] = sum(other > (abs(x), j) for other in group) < n
    return mask


def ask(yours, name, array, *more):
    """A mask; what was given must be as before."""
    before = array.copy()
    got = getattr(yours, name)(array, *more)
    given = {name: before, "and": more}
    expect(array, before, given=given, why="what was given, afterwards", atol=0)
    return got, given


@exercise.example
def the_examples(yours):
    """The three of the text."""
    got, given = ask(yours, "mask_smallest", np.array([3.0, 1, 2, 1]), 1)
    expect(got, np.array([1, 0, 1, 1], "f"), given=given)
    got = yours.gradual_ratio(15, first=10, steps=10, initial=0.0, final=0.8)
    expect(got, 0.7, given="step 15, first 10, steps 10, from 0.0 to 0.8", atol=1e-12)
    got, given = ask(yours, "mask_1d", np.array([[1.0, -4, 3, 2]]), 2, 4)
    expect(got, np.array([[0.0, 1, 1, 0]]), given=given)


numbers = st.lists(st.sampled_from([0.0, 0.5, -0.5, 1.0, -2.0, 3.0]), min_size=6, max_size=6)


@exercise.property(
    rows=st.lists(numbers, max_size=8), share=st.floats(0, 1), wide=st.booleans(), examples=15
)
def any_count(yours, rows, share, wide):
    """Many equal scores, several axes, none or all of them."""
    scores = np.array(rows, "float64" if wide else "float32").reshape(len(rows), 2, 3)
    count = round(share * scores.size)
    got, given = ask(yours, "mask_smallest", scores, count)
    expect(got, smallest(scores, count), given=given, atol=0, rtol=0)
    expect(got.dtype.name, "float32", given=given, why="the dtype of a mask")


@exercise.property(
    rows=st.lists(numbers, max_size=8),
    nm=st.sampled_from([(2, 3), (1, 2), (1, 6), (4, 6)]),
    wide=st.booleans(),
    examples=15,
)
def any_groups(yours, rows, nm, wide):
    """Several groups in a row, and equal magnitudes."""
    matrix = np.array(rows, "float64" if wide else "float32").reshape(len(rows), 6)
    got, given = ask(yours, "mask_1d", matrix, *nm)
    expect(got, n_of_m(matrix, *nm), given=given, atol=0, rtol=0)
    expect(got.dtype, matrix.dtype, given=given, why="the dtype of a mask")


@exercise.example
def large_arrays(yours):
    """A large weight, one that lies transposed, one backwards, one with an infinity."""
    x = np.random.default_rng(0).normal(size=(12, 16))
    x[3, 3] = np.inf
    for array in (x, x.T, np.flip(x)):
        got, given = ask(yours, "mask_smallest", array, 70)
        expect(got, smallest(array, 70), given=given)
        got, given = ask(yours, "mask_1d", array, 2, 4)
        expect(got, n_of_m(array, 2, 4), given=given)


@exercise.property(
    first=st.integers(0, 20), steps=st.integers(1, 30), initial=st.floats(0, 0.5), examples=10
)
def a_schedule(yours, first, steps, initial):
    """Every step from 0 to beyond the end."""
    for step in range(first + steps + 3):
        t = min(step - first, steps) / steps
        expected = 0.9 - (0.9 - initial) * (1 - 3 * t + 3 * t**2 - t**3) if t >= 0 else 0.0
        got = yours.gradual_ratio(step, first, steps, initial, 0.9)
        told = {"step": step, "first": first, "steps": steps, "initial": initial, "final": 0.9}
        expect(got, expected, given=told, atol=1e-12, rtol=0)


@exercise.example
def in_the_engine(yours):
    """A pruner takes more and more of a layer; another layer has 2 of 4."""
    paddle.seed(0)
    net = nn.Linear(8, 10)
    how = {"stable_iterations": 1, "pruning_iterations": 4, "pruning_steps": 4}
    with exercise.plugged(yours):
        pruner = slim.GMPUnstructuredPruner(net, 0.75, configs=how | {"initial_ratio": 0.25})
        zeros = []
        for _ in range(7):
            pruner.step()
            zeros.append(int((net.weight == 0).sum()))
        expect(zeros, [0, 20, 43, 55, 59, 60, 60], given=how, why="zeros of 80 weights")
        other = nn.Linear(8, 4)
        asp.prune_model(other)
    found = (other.weight.numpy().reshape(2, 4, 4) != 0).sum(1)
    expect(found, np.full((2, 4), 2), given="nn.Linear(8, 4)", why="what is left in each group")
