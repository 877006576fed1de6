"""Checks of 29_reading_a_page/unclip."""

from math import cos, pi, radians, sin

import numpy as np
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.vision import ocr

exercise = Exercise(
    title="Unclip: a box grows back to its size",
    level="easy",
    minutes=15,
    before=("29_reading_a_page/shrink_map",),
    slots={"ocr.unclip": "unclip"},
    hints=(
        "A box may be turned, so its width and height are not those of its corners' x and y. What "
        "does the formula with xᵢ·yᵢ₊₁ give, if you roll the corners by one place?",
        "np.roll(box, -1, axis=0) has the next corner at each place. Its difference from the box "
        "is the four edges; np.hypot gives their lengths. Round before and after growing, not the "
        "distance.",
        "after = the box, rolled by -1\n"
        "area = |sum of x · y after - x after · y| / 2\n"
        "perimeter = sum of the lengths of after - box\n"
        "offset_polygon(floor of the box, area · ratio / perimeter), plus 1/2, floor",
    ),
    wrong={
        "the perimeter on top": "area * ratio / perimeter → perimeter * ratio / area",
        "the ratio is the distance": "area * ratio / perimeter → ratio",
        "always 1.6": "area * ratio / perimeter → area * 1.6 / perimeter",
        "smaller, not larger": "area * ratio / perimeter → -area * ratio / perimeter",
        "half the perimeter": "area * ratio / perimeter → area * ratio / perimeter * 2",
        "twice the area": "abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum()) / 2 → "
        "abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum())",
        "negative areas": "abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum()) / 2 → "
        "(box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum() / 2",
        "the area of an upright rectangle": (
            "abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum()) / 2 → "
            "np.ptp(box, axis=0).prod()"
        ),
        "the perimeter of an upright rectangle": (
            "np.hypot(*(after - box).T).sum() → 2 * np.ptp(box, axis=0).sum()"
        ),
        "without the last edge": "np.hypot(*(after - box).T).sum() → "
        "np.hypot(*(after - box)[:-1].T).sum()",
        "corners as they are": "ocr.offset_polygon(np.floor(box), area * ratio / perimeter) → "
        "ocr.offset_polygon(box, area * ratio / perimeter)",
        "rounded before the area is measured": "np.asarray(box, 'float64') → "
        "np.floor(np.asarray(box, 'float64'))",
        "down to whole pixels": "np.floor(grown + 0.5) → np.floor(grown)",
        "halves to even numbers": "np.floor(grown + 0.5) → np.round(grown)",
        "between pixels": "np.floor(grown + 0.5) → grown",
        "integers": "np.floor(grown + 0.5) → np.floor(grown + 0.5).astype(int)",
    },
    unkillable={
        "after = np.roll(box, -1, axis=0) → after = np.roll(box, +1, axis=0)": (
            "the other way around area and perimeter are the same"
        ),
        "unclip: right only for small arrays": "a box has eight numbers",
        "unclip: right only for arrays that are not empty": "a box has eight numbers",
        "unclip: right only for finite numbers": "a box lies in a picture",
        "unclip: always float64": "they are float64 in any case",
    },
)


def turned(width, height, angle, centre=(0.0, 0.0)):
    """The corners of a rectangle, and its area and perimeter in closed form."""
    c, s = cos(radians(angle)), sin(radians(angle))
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [width / 2, height / 2]
    return corners @ np.array([[c, s], [-s, c]]) + centre, width * height, 2 * (width + height)


def off(points, polygon):
    """How far each point is from a convex polygon; its edges, each with a nearest place."""
    begin, end = polygon, np.roll(polygon, -1, axis=0)
    along = end - begin
    share = ((points[:, None] - begin) * along).sum(-1) / (along**2).sum(-1)
    nearest = begin + share.clip(0, 1)[..., None] * along
    return np.hypot(*np.moveaxis(points[:, None] - nearest, -1, 0)).min(1)


def check(yours, box, ratio, area, perimeter):
    """All points at the distance, to a pixel; the outermost exactly; the area that Steiner says."""
    given = {"box": np.array(box), "ratio": ratio}
    before, base = np.array(box), np.floor(np.asarray(box, float))
    got = yours.unclip(box, ratio)
    expect(np.asarray(box), before, given=given, why="what is given stays as it is")
    expect_that(np.ndim(got) == 2 and np.shape(got)[1] == 2, "no [k, 2]", given=given, got=got)
    expect(str(np.asarray(got).dtype), "float64", given=given, why="the dtype")
    whole = np.array_equal(got, np.rint(got))
    expect_that(whole, "the corners are not whole pixels", given=given, got=got)
    distance = ratio * area / perimeter
    far = off(got, base)
    expect_that(
        np.all(abs(far - distance) < 0.75), f"corners not at {distance:.3f} of the rounded box",
        given=given, got=far,
    )  # fmt: skip
    rounded = ConvexHull(base)  # in the plane its area is the length of the border
    steiner = rounded.volume + rounded.area * distance + pi * distance**2
    border = rounded.area + 2 * pi * distance
    room = 0.5 * border + 2 * pi * distance * min(0.25, distance)  # whole pixels, and chords
    found = ConvexHull(got).volume
    expect_that(
        abs(found - steiner) < room, f"the area is not {steiner:.0f}", given=given, got=found
    )


def check_upright(yours, left, top, width, height, ratio, kind=np.array):
    """Whole corners: the outermost pixels in closed form."""
    box = kind(
        [[left, top], [left + width, top], [left + width, top + height], [left, top + height]]
    )
    check(yours, box, ratio, width * height, 2 * (width + height))
    distance = width * height * ratio / (2 * (width + height))
    low, high = np.floor(np.array([left, top])), np.floor(np.array([left + width, top + height]))
    got = yours.unclip(box, ratio)
    given = {"box": box, "ratio": ratio}
    expect(got.min(0), np.floor(low - distance + 0.5), given=given, why="the least x and y")
    expect(got.max(0), np.floor(high + distance + 0.5), given=given, why="the largest x and y")


@exercise.example
def in_the_task(yours):
    """Six pixels wide and two high."""
    check_upright(yours, 0, 0, 6, 2, 8 / 3)


@exercise.example
def without_a_ratio(yours):
    """The ratio is 1.6 if it is not given; the box may be a list, of integers or floats."""
    for box in ([[10, 10], [110, 10], [110, 34], [10, 34]],):
        for same in (box, np.array(box), np.array(box, "float32"), np.array(box)[::-1].tolist()):
            got = yours.unclip(same)
            expect(got.min(0), [-5.0, -5.0], given={"box": same}, why="the least x and y")
            expect(got.max(0), [125.0, 49.0], given={"box": same}, why="the largest x and y")


@exercise.example
def halves_and_fractions(yours):
    """Edges that move by half a pixel; corners between pixels, of which the area is exact."""
    for left, top in ((0, 0), (1, 1), (-3, 2), (0.9, 0.75), (-0.25, 3.5)):
        check_upright(yours, left, top, 4, 4, 0.5)  # by half a pixel
        check_upright(yours, left, top, 4, 4, 1.5)
        check_upright(yours, left, top, 12, 4, 1.0)  # by 1.5
    check_upright(yours, 0.0, 0.0, 30.9, 20.9, 2.0)
    check_upright(yours, 0.0, 0.0, 50.75, 5.25, 3.0, kind=list)
    check_upright(yours, 0, 0, 900, 40, 1.6)


@exercise.property(
    width=st.integers(4, 80),
    height=st.integers(4, 80),
    angle=st.integers(-80, 80),
    ratio=st.sampled_from([0.3, 1.0, 1.6, 2.0]),
    x=st.floats(0, 60),
    backwards=st.booleans(),
)
def turned_boxes(yours, width, height, angle, ratio, x, backwards):
    """Boxes at any angle, either way around."""
    box, area, perimeter = turned(width, height, angle, (x, 40.3))
    check(yours, box[::-1] if backwards else box, ratio, area, perimeter)


@exercise.property(
    left=st.integers(-20, 40), top=st.integers(-20, 40), width=st.integers(3, 90),
    height=st.integers(3, 40), ratio=st.sampled_from([0.4, 1.0, 1.6, 2.0, 2.5]),
)  # fmt: skip
def upright_boxes(yours, left, top, width, height, ratio):
    """Boxes of whole pixels: their outermost pixels are exact."""
    distance = width * height * ratio / (2 * (width + height))
    if abs((2 * distance) % 1 - 0.5) < 0.499:  # at exactly a half, rounding decides
        check_upright(yours, left, top, width, height, ratio)


@exercise.example
def boxes_of_a_map_grow(yours):
    """`find_boxes` of a map with one block: the box that it gives has grown by your distance."""
    p = np.zeros((60, 80))
    p[10:30, 10:60] = 1.0
    with exercise.plugged(yours):
        boxes, _ = ocr.find_boxes(p, ratio=1.6)
    far = np.floor(50 * 20 * 1.6 / 140 + 0.5)  # it has one more pixel, which has met its neighbour
    wanted = [[10 - far, 10 - far], [60 + far, 30 + far]]
    given = "a block from x = 10 to 60 and y = 10 to 30, ratio 1.6"
    expect(boxes[0][[0, 2]], wanted, given=given, why="top left and bottom right", atol=1e-9)
