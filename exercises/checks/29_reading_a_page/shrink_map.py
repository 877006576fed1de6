"""Checks of 29_reading_a_page/shrink_map."""

from math import cos, floor, radians, sin

import numpy as np
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.vision import ocr

exercise = Exercise(
    title="The shrink map: what a finder should say of a picture",
    level="medium",
    minutes=20,
    slots={"ocr.shrink_map": "shrink_map"},
    hints=(
        "A box may be turned, so its width and height are not those of its corners' x and y. What "
        "does the formula with xᵢ·yᵢ₊₁ give, if you roll the corners by one place?",
        "np.roll(box, -1, axis=0) has the next corner at each place. Its difference from the box "
        "is the four edges; np.hypot gives their lengths. For small boxes change the mask alone, "
        "for others the map alone.",
        "a map of zeros, a mask of ones\n"
        "for each box: after = the box, rolled by -1; area, perimeter\n"
        "too small: mask[pixels of the box] = 0\n"
        "else: map[pixels of the box, moved by -area · (1 - ratio²) / perimeter] = 1",
    ),
    wrong={
        "the boxes as they are": "-area * (1 - ratio**2) / perimeter → -0.0 * area * perimeter",
        "larger, not smaller": "-area * (1 - ratio**2) / perimeter → "
        "area * (1 - ratio**2) / perimeter",
        "the ratio, not its square": "1 - ratio**2 → 1 - ratio",
        "always 0.4": "1 - ratio**2 → 1 - 0.4**2",
        "the area of an upright rectangle": (
            "abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum()) / 2 → "
            "np.ptp(box, axis=0).prod()"
        ),
        "the perimeter of an upright rectangle": (
            "np.hypot(*(after - box).T).sum() → 2 * np.ptp(box, axis=0).sum()"
        ),
        "negative areas": "abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum()) / 2 → "
        "(box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum() / 2",
        "small ones are learned": "mask[ocr.fill_polygon(box, height, width)] = 0 → "
        "learn[ocr.fill_polygon(box, height, width)] = 1",
        "a mask of the smaller box": "learn[ocr.fill_polygon(inner, height, width)] = 1 → "
        "mask[ocr.fill_polygon(inner, height, width)] = 1",
        "small in both directions": "np.ptp(box, axis=0).min() < least → "
        "np.ptp(box, axis=0).max() < least",
        "small at the limit, too": "np.ptp(box, axis=0).min() < least → "
        "np.ptp(box, axis=0).min() <= least",
        "small ones are forgotten": "mask[ocr.fill_polygon(box, height, width)] = 0 → pass",
        "an area of zero divides": "area == 0 or np.ptp(box, axis=0).min() < least → "
        "np.ptp(box, axis=0).min() < least",
        "how many boxes there are": "learn[ocr.fill_polygon(inner, height, width)] = 1 → "
        "learn[ocr.fill_polygon(inner, height, width)] += 1",
        "float64": "np.zeros((height, width), 'float32') → np.zeros((height, width))",
    },
    unkillable={
        "after = np.roll(box, -1, axis=0) → after = np.roll(box, +1, axis=0)": (
            "the other way around area and perimeter are the same"
        ),
        "shrink_map: right only for finite numbers": "boxes lie in a picture",
        "shrink_map: always float32": "they are float32 in any case",
    },
)

EXAMPLE = [[1, 1], [12, 1], [12, 9], [1, 9]]


def upright(left, top, width, height):
    right, bottom = left + width, top + height
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def painted(boxes, height, width):
    """The pixels of upright boxes, by Pillow."""
    page = Image.new("1", (width, height))
    for left, top, right, bottom in boxes:
        ImageDraw.Draw(page).rectangle([left, top, right, bottom], fill=1)
    return np.asarray(page)


def check(yours, boxes, height, width, learn, mask, **options):
    """Both arrays, their dtype, and that nothing was written into."""
    given = {"boxes": boxes, "height": height, "width": width} | options
    before = [np.array(box, copy=True) for box in boxes]
    got = yours.shrink_map(boxes, height, width, **options)
    expect_that(isinstance(got, tuple | list) and len(got) == 2, "no map and mask", got=got)
    for array, wanted, why in zip(got, (learn, mask), ("the map", "the mask"), strict=True):
        expect(str(np.asarray(array).dtype), "float32", given=given, why=f"the dtype of {why}")
        expect(array, np.asarray(wanted, "float32"), given=given, why=why, rtol=0, atol=0)
    for box, was in zip(boxes, before, strict=True):
        expect(np.asarray(box), was, given=given, why="what is given stays as it is")


def check_upright(yours, places, height, width, ratio=0.4, least=8, kind=list):
    """Boxes (left, top, width, height) of integers: in closed form, painted by Pillow."""
    large, small = [], []
    for left, top, w, h in places:
        if min(w, h) < least or w * h == 0:
            small.append((left, top, left + w, top + h))
        else:
            far = w * h * (1 - ratio**2) / (2 * (w + h))
            large.append((floor(left + far), floor(top + far),
                          floor(left + w - far), floor(top + h - far)))  # fmt: skip
    learn, mask = painted(large, height, width), ~painted(small, height, width)
    boxes = kind([upright(*place) for place in places])
    check(yours, boxes, height, width, learn, mask, ratio=ratio, least=least)


@exercise.example
def in_the_task(yours):
    """The box of the task, either way around, as a list and as an array."""
    learn = painted([(2, 2, 10, 7)], 12, 14)
    for box in (EXAMPLE, EXAMPLE[::-1], np.array(EXAMPLE), np.array(EXAMPLE, "float32")):
        check(yours, [box], 12, 14, learn, np.ones((12, 14)))
    check(yours, np.array([EXAMPLE], "int32"), 12, 14, learn, np.ones((12, 14)))
    check(yours, [[[1, 1], [9, 1], [9, 8], [1, 8]]], 12, 14, np.zeros((12, 14)),
          ~painted([(1, 1, 9, 8)], 12, 14))  # fmt: skip


@exercise.example
def small_ones_and_none(yours):
    """No box, boxes of exactly the least size, too low ones, too narrow ones, without area."""
    check(yours, [], 3, 4, np.zeros((3, 4)), np.ones((3, 4)))
    check(yours, np.zeros((0, 4, 2)), 3, 4, np.zeros((3, 4)), np.ones((3, 4)))
    check(yours, [EXAMPLE], 0, 4, np.zeros((0, 4)), np.ones((0, 4)))
    check_upright(yours, [(2, 2, 8, 30), (20, 2, 30, 8), (12, 40, 7, 9), (30, 40, 9, 7)], 60, 60)
    check_upright(yours, [(2, 2, 12, 5), (2, 20, 30, 0), (40, 20, 0, 0)], 40, 50)
    check_upright(yours, [(2, 2, 12, 5), (2, 20, 30, 0), (40, 20, 0, 0)], 40, 50, 0.4, 0)
    check_upright(yours, [(1, 1, 2, 2)], 5, 5, 0.4, 0)
    line = np.array([[3, 3], [8, 8], [13, 13], [8, 8]])
    pixels = np.eye(20, dtype=bool)
    pixels[:3], pixels[14:] = False, False
    _, mask = yours.shrink_map([line], 20, 20)
    expect(mask[3:14, 3:14].diagonal(), np.zeros(11), given={"box": line}, why="the mask")


@exercise.example
def lines_that_touch_or_overlap(yours):
    """Two lines that touch; a small box in a large one; boxes that overlap; beyond the picture."""
    check_upright(yours, [(0, 0, 50, 12), (0, 12, 50, 12)], 30, 60)
    check_upright(yours, [(5, 5, 41, 31), (20, 15, 5, 5)], 40, 60)
    check_upright(yours, [(20, 15, 5, 5), (5, 5, 41, 31)], 40, 60)
    check_upright(yours, [(5, 5, 41, 31), (15, 5, 41, 31)], 40, 60)
    check_upright(yours, [(-9, -7, 41, 31), (45, 30, 43, 29), (70, 4, 3, 31)], 40, 60)
    many = [(4 + 50 * (k % 2), 7 + 10 * k, 45, 13) for k in range(16)]
    for kind in (list, np.array):
        check_upright(yours, many, 170, 100, kind=kind)


@exercise.property(
    places=st.lists(
        st.tuples(st.integers(-5, 30), st.integers(-5, 30), st.integers(0, 40), st.integers(0, 25)),
        max_size=4,
    ),
    ratio=st.sampled_from([0.3, 0.4, 0.7]),
    least=st.sampled_from([0, 5, 8, 12]),
)
def upright_boxes(yours, places, ratio, least):
    """Any upright boxes: the pixels that Pillow paints."""
    far = [w * h * (1 - ratio**2) / (2 * (w + h)) for *_, w, h in places if w * h]
    if all(abs(d - round(d)) > 1e-6 for d in far):  # at whole pixels, rounding decides
        check_upright(yours, places, 36, 48, ratio, least)


@exercise.property(
    width=st.integers(14, 60), height=st.integers(14, 60), angle=st.integers(-85, 85),
    ratio=st.sampled_from([0.2, 0.4, 0.8]), backwards=st.booleans(),
)  # fmt: skip
def turned_boxes(yours, width, height, angle, ratio, backwards):
    """Boxes at any angle, either way around: a box of the same centre and angle is learned."""
    far = width * height * (1 - ratio**2) / (2 * (width + height))
    box, inner = (turned(width - 2 * d, height - 2 * d, angle) for d in (0, far))
    if abs(inner - inner.round()).min() > 1e-6:  # at whole pixels, rounding decides
        learn = ocr.fill_polygon(inner, 100, 100)
        box = box[::-1] if backwards else box
        check(yours, [box], 100, 100, learn, np.ones((100, 100)), ratio=ratio)


def turned(width, height, angle):
    """The corners of a box of that size and angle."""
    c, s = cos(radians(angle)), sin(radians(angle))
    half = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [width / 2, height / 2]
    return half @ np.array([[c, s], [-s, c]]) + 50.3


def inside(points, corners, by):
    """Which points are at least `by` within all edges of a convex polygon, clockwise."""
    edges = np.roll(corners, -1, axis=0) - corners
    away = points[:, None] - corners
    depth = (edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0]) / np.hypot(*edges.T)
    return (depth >= by).all(1)


def check_depth(yours, box, area, perimeter, ratio):
    """A pixel's depth says whether it is in the map; within two pixels it may be either."""
    far = area * (1 - ratio**2) / perimeter
    y, x = np.mgrid[:100, :100]
    points = np.stack([x.ravel(), y.ravel()], 1)
    given = {"box": box, "ratio": ratio}
    learn, mask = yours.shrink_map([box], 100, 100, ratio)
    learn = np.asarray(learn).ravel() == 1
    must, may = inside(points, box, far + 2), inside(points, box, far - 2)
    expect_that(not (must & ~learn).any(), f"0, although deeper than {far:.2f}", given=given,
                got=points[must & ~learn])  # fmt: skip
    expect_that(not (learn & ~may).any(), f"1, although not as deep as {far:.2f}", given=given,
                got=points[learn & ~may])  # fmt: skip
    expect_that(np.all(np.asarray(mask) == 1), "the mask has zeros", given=given)


@exercise.example
def other_polygons(yours):
    """A triangle, whose area is half of a box, and a polygon of eight corners."""
    check_depth(yours, np.array([[10.0, 10.0], [90.0, 10.0], [10.0, 70.0]]), 2400, 240, 0.6)
    angles = np.radians(np.arange(0, 360, 45))
    octagon = np.stack([50 + 40 * np.cos(angles), 50 + 40 * np.sin(angles)], 1)
    check_depth(yours, octagon, 4 * 1600 * sin(radians(45)), 16 * 40 * sin(radians(22.5)), 0.5)


@exercise.example
def the_finder_s_own_inverse(yours):
    """The engine's map of two lines, and `find_boxes`, which grows them to their size again."""
    lines = [upright(12, 10, 70, 16), upright(12, 26, 70, 16)]
    with exercise.plugged(yours):
        learn, _ = ocr.shrink_map(lines, 60, 100)
        boxes, _ = ocr.find_boxes(learn, ratio=1.6)
    expect_that(len(boxes) == 2, "two lines that touch have become one", got=boxes)
    boxes = ocr.sort_boxes(boxes)
    off = abs(boxes - np.array(lines)).max()
    expect_that(off < 4, "boxes far from those that were drawn", got=boxes)
