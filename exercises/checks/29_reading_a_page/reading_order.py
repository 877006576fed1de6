"""Checks of 29_reading_a_page/reading_order."""

from itertools import permutations, takewhile

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.vision import ocr

exercise = Exercise(
    title="Reading order: which line comes first",
    level="easy",
    minutes=15,
    slots={"ocr.sort_boxes": "sort_boxes"},
    hints=(
        "Three boxes stand at heights 0, 6 and 12, and the tolerance is 10. The first and the "
        "second are in one line, the second and the third as well. Are the first and the third? So "
        "can one number for each box say to which line it belongs?",
        "Build the result box by box, in the sorted order. Each is put at the end, and goes "
        "forward while it is in the line of the one before it and to its left. It stops at the "
        "first one for which that does not hold.",
        "for each box, sorted by (y, x) of its first corner:\n"
        "    place = the number of boxes so far\n"
        "    while there is one before: less than tolerance lower, and x less: place - 1\n"
        "    insert it there\n"
        "an array of shape [-1, 4, 2]",
    ),
    wrong={
        "from top to bottom alone": "ordered.insert(place, box) → ordered.append(box)",
        "one place forward at most": (
            "place and y - ordered[place - 1][0][1] < tolerance and "
            "x < ordered[place - 1][0][0] → place == len(ordered) and place and "
            "y - ordered[place - 1][0][1] < tolerance and x < ordered[place - 1][0][0]"
        ),
        "from left to right first": "(box[0][1], box[0][0]) → (box[0][0], box[0][1])",
        "equal heights in the order given": "(box[0][1], box[0][0]) → box[0][1]",
        "the tolerance is in the line, too": (
            "y - ordered[place - 1][0][1] < tolerance → y - ordered[place - 1][0][1] <= tolerance"
        ),
        "equal ones change places": "x < ordered[place - 1][0][0] → x <= ordered[place - 1][0][0]",
        "the tolerance is always 10": "y - ordered[place - 1][0][1] < tolerance → "
        "y - ordered[place - 1][0][1] < 10.0",
        "the bottom right corner": "(box[0][1], box[0][0]) → (box[2][1], box[2][0])",
        "no shape without boxes": "np.array(ordered).reshape(-1, 4, 2) → np.array(ordered)",
        "always floats": "np.array(ordered) → np.array(ordered, 'float64')",
    },
    unkillable={
        "return np.array(ordered).reshape(-1, 4, 2) → return np.array(ordered).reshape(-2, 4, 2)": (
            "NumPy takes any negative size"
        )
    },
)

LINES = [[(5, 4), (40, 0), (80, 9)], [(0, 30), (60, 27)], [(20, 60)]]


def box_at(x, y):
    """Four points, the first of which is there, and the others are sorted otherwise."""
    return [[x, y], [-y, x], [-x, -y], [y, -x]]


def boxes_at(corners, dtype="float64"):
    return np.array([box_at(*corner) for corner in corners], dtype).reshape(-1, 4, 2)


def order_of(corners, tolerance):
    """The places of the corners as one reads them: each is put behind all that do not yield."""
    order = []
    for k in np.lexsort((*np.array(corners).reshape(-1, 2).T,)).tolist():

        def yields(j, x=corners[k][0], y=corners[k][1]):
            return abs(y - corners[j][1]) < tolerance and corners[j][0] > x

        place = len(order) - len(list(takewhile(yields, reversed(order))))
        order = [*order[:place], k, *order[place:]]
    return order


def check(yours, corners, *tolerance, dtype="float64", order=None):
    boxes = boxes_at(corners, dtype)
    given = {"top left corners": corners, "tolerance": tolerance or 10.0}
    order = order_of(corners, *(tolerance or (10.0,))) if order is None else order
    for same in (boxes, list(boxes), boxes[::-1].copy()[::-1]):
        got = yours.sort_boxes(same, *tolerance)
        expect(list(np.shape(got)), list(boxes.shape), given=given, why="the shape")
        if len(boxes):
            expect(got, boxes[order], given=given, rtol=0, atol=0)
            expect_that(got.dtype == dtype, "another dtype", given=given, got=got)
    expect(boxes, boxes_at(corners, dtype), given=given, why="what is given stays as it is")


@exercise.example
def in_the_task(yours):
    """A right box that begins higher, and three that go down a little."""
    check(yours, [(40, 3), (0, 30), (2, 0)], order=[2, 0, 1])
    check(yours, [(40, 0), (2, 3), (20, 6)], order=[1, 2, 0])


@exercise.example
def lines_far_apart(yours):
    """Three lines, shuffled: line by line, each from left to right."""
    every = [corner for line in LINES for corner in line]
    for order in list(permutations(range(6)))[::29]:
        check(yours, [every[k] for k in order], order=np.argsort(order))
    check(yours, every[:3], 0.0, order=[1, 0, 2])


@exercise.example
def nothing_ties_and_limits(yours):
    """No box, one, equal corners, a difference of exactly the tolerance, and a row like stairs."""
    check(yours, [])
    expect(np.shape(yours.sort_boxes([])), [0, 4, 2], given="no boxes", why="the shape")
    check(yours, [(3, 4)])
    check(yours, [(5, 0), (0, 10)], order=[0, 1])
    check(yours, [(5, 0), (0, 9.9)], order=[1, 0])
    check(yours, [(5, 0), (5, 4), (5, 8)], order=[0, 1, 2])
    check(yours, [(60, 0), (40, 6), (20, 12), (0, 18)])
    check(yours, [(9, 0), (8, 2), (7, 4)], 3.0)
    check(yours, [(x, 0) for x in (3, 1, 2)], 0.0, order=[1, 2, 0])
    check(yours, [(20, 0), (30, 1), (10, 2)], np.inf, order=[2, 0, 1])
    check(yours, [(np.inf, 0), (0, 1)], order=[1, 0])
    twins = boxes_at([(9, 0), (9, 0), (2, 5), (2, 5)])
    twins[:, 2] += np.arange(4)[:, None]  # their other corners differ
    expect(yours.sort_boxes(twins), twins[[2, 3, 0, 1]], given="two pairs of equal corners")


@exercise.property(
    examples=60,
    corners=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9),
    scale=st.sampled_from([1, 3, 20]),
    tolerance=st.sampled_from([(), (1.0,), (7.0,), (25.0,)]),
    dtype=st.sampled_from(["int64", "int32", "float32", "float64"]),
)
def as_the_rules_say(yours, corners, scale, tolerance, dtype):
    """Any boxes, many of one height or one x, in numbers of any kind."""
    check(yours, [(scale * x + 9, scale * y + 9) for x, y in corners], *tolerance, dtype=dtype)


@exercise.example
def a_page(yours):
    """Sixty boxes."""
    rng = np.random.default_rng(0)
    check(yours, [tuple(corner) for corner in rng.integers(0, 200, (60, 2)).tolist()])


@exercise.example
def a_picture_is_read(yours):
    """`TextSystem` finds three blocks in a picture, of which the right one begins highest."""
    page = np.zeros((128, 256), "uint8")
    for x, y in ((150, 20), (20, 26), (30, 80)):
        page[y : y + 24, x : x + 80] = 255
    finder = lambda x: (x[:, :1] > 0).astype("float32")
    reader = lambda x: paddle.ones([x.shape[0], 1, 2]) * paddle.to_tensor([0.0, 1.0])
    with exercise.plugged(yours):
        found = ocr.TextSystem(finder, reader, "a", side=128)(page)
    centres = [tuple((line.box.mean(0) / 10).round().tolist()) for line in found]
    expect(
        centres, [(6.0, 4.0), (19.0, 3.0), (7.0, 9.0)], given="three blocks", why="their centres"
    )
