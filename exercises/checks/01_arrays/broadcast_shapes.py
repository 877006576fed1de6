"""Checks of 01_arrays/broadcast_shapes."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The shape of x + y, before there is an x or a y",
    level="easy",
    minutes=20,
    slots={"spec.broadcast_shapes": "broadcast_shapes"},
    hints=(
        "Write (2, 1, 3) over (4, 1), the last sizes under each other. Which sizes stand in one "
        "column, and which of them has a say?",
        "Python counts from the end with negative indices: s[-1] is the last size of every shape, "
        "however long. Or begin to count at rank - len(shape), as enumerate(shape, start=...) can.",
        "result = as many 1s as the longest shape has sizes\n"
        "for each shape, for each of its sizes and the axis it stands on, lined up at the end:\n"
        "    a size of 1 changes nothing\n"
        "    if the result has 1 there, it becomes the size\n"
        "    if it has another size there, raise ValueError with both",
    ),
    wrong={
        "lining shapes up at their first axis": "rank - len(shape) → 0",
        "letting a 1 overwrite what was known": "size == 1 → size == -1",
        "taking a size of 0 for a missing one": "(1, size) → (0, 1, size)",
        "taking the larger size instead of refusing": (
            "together[axis] not in (1, size) → False",
            "together[axis] = size → together[axis] = max(size, together[axis])",
        ),
        "looking at no more than two shapes": "for shape in shapes: → for shape in shapes[:2]:",
        "returning a list": "tuple(together) → together",
        "not expecting to be given no shape": (
            "max(shapes, key=len, default=()) → max(shapes, key=len)"
        ),
        "refusing without saying what": (
            "f'sizes {together[axis]} and {size} of {shapes} do not go together' → 'shapes do "
            "not match'"
        ),
    },
)


def outcome(function, *shapes):
    """What a rule says of the shapes: a shape, or that they are refused."""
    try:
        return function(*shapes)
    except ValueError:
        return "refused with ValueError"


def agree(yours, expected, *shapes):
    why = f"another answer for {', '.join(map(str, shapes))}"
    given = {"shapes": list(shapes)}
    expect(outcome(yours.broadcast_shapes, *shapes), expected, given=given, why=why)


@exercise.example
def lined_up_at_the_end(yours):
    """A row of 3 beside a matrix of [2, 3]: the row has no first axis."""
    agree(yours, (2, 3), (3,), (2, 3))
    agree(yours, (2, 3), (2, 3), (3,))
    got = yours.broadcast_shapes((2, 3), (3,))
    expect_that(type(got) is tuple, "a shape is a tuple", got=got)


@exercise.example
def a_one_gives_way(yours):
    """(2, 1, 3) over (4, 1): 3 beside 1, 1 beside 4, and 2 beside nothing. 1 beside 0 is 0."""
    agree(yours, (2, 3), (2, 3), (2, 1))
    agree(yours, (2, 4, 3), (2, 1, 3), (4, 1))
    agree(yours, (0, 3), (1, 3), (0, 1))
    agree(yours, (4, 2, 3), (3,), (2, 1), (4, 1, 1))
    agree(yours, (2, 3, 4, 1, 5, 6, 7, 8), (2, 1, 4, 1, 1, 6, 1, 8), (3, 1, 1, 5, 1, 7, 1))


@exercise.example
def one_or_none(yours):
    """One shape is its own result; no shape at all is the shape of a number, ()."""
    agree(yours, (3, 1), (3, 1))
    agree(yours, ())


@exercise.example
def a_refusal_names_both_sizes(yours):
    """3 and 4 are neither equal nor 1; the author needs to know which sizes differ."""
    given = {"shapes": [(7, 3), (4,)]}
    try:
        got = yours.broadcast_shapes((7, 3), (4,))
    except ValueError as error:
        text = str(error)
        expect_that("3" in text and "4" in text, "the message names both sizes", given=given,
                    got=text)  # fmt: skip
    else:
        expect_that(False, "a ValueError", given=given, got=got)


sizes = st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4).map(tuple)


@exercise.property(shapes=st.lists(sizes, max_size=4), examples=150)
def as_numpy_has_it(yours, shapes):
    """NumPy has a function for it, written independently."""
    agree(yours, outcome(np.broadcast_shapes, *shapes), *shapes)


@exercise.example
def the_engine_measures_distances_with_it(yours):
    """Twenty points [20, 1, 2] and three centres [3, 2], one axis each for the two, and x - y."""
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    label = np.arange(20) % 3
    points = centres[label] + np.random.default_rng(0).normal(size=(20, 2))
    with exercise.plugged(yours):
        x, c = paddle.to_tensor(points).reshape([20, 1, 2]), paddle.to_tensor(centres)
        x.stop_gradient = False
        wide, far = paddle.broadcast_tensors([x, c])
        expect(far.shape, [20, 3, 2], given={"shapes": [(20, 1, 2), (3, 2)]})
        distance = ((wide - far) ** 2).sum(-1)
        expect(distance.argmin(-1), label, why="another centre is the nearest")
        distance.sum().backward()
        expect(paddle.broadcast_shape([5, 1], [4]), [5, 4], given={"shapes": [(5, 1), (4,)]})
    slope = 2 * (3 * points - centres.sum(0))
    expect(x.grad.reshape([20, 2]), slope, why="the gradient of the distances")


@exercise.example
def the_engine_explains_with_it(yours):
    """When an operator fails, the engine asks this rule why: its message reaches the user."""
    with exercise.plugged(yours):
        try:
            got = paddle.ones([2, 3]) + paddle.ones([4])
        except ValueError as error:
            got = str(error)
    explained = isinstance(got, str) and got.startswith("add(float32[2, 3], float32[4]): ")
    expect_that(explained, "a ValueError of add, with your reason", got=got)
