"""Polygons, and boxes of text, against brute force, closed forms, SciPy and Pillow."""

import itertools
import math

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy import ndimage
from scipy.spatial import ConvexHull

import minipaddle as paddle
from minipaddle.testing import check_grad
from minipaddle.vision import ocr

RNG = np.random.default_rng(41)


def rectangle(width, height, angle=0.0, centre=(0.0, 0.0)):
    """Corners of a rectangle turned by an angle in degrees, clockwise as one sees it."""
    x, y = width / 2, height / 2
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    corners = np.array([[-x, -y], [x, -y], [x, y], [-x, y]])
    return corners @ [[cos, sin], [-sin, cos]] + centre


def area_of(corners):
    x, y = np.asarray(corners, float).T
    return abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2


# ---- polygons --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_hull_is_scipys(seed):
    points = np.random.default_rng(seed).integers(0, 12, (40, 2))
    found = ocr.find_hull(points)
    expected = points[ConvexHull(points).vertices]
    assert {*map(tuple, found.tolist())} == {*map(tuple, expected.astype(float).tolist())}
    assert area_of(found) == pytest.approx(ConvexHull(points).volume)


@pytest.mark.parametrize(
    ("points", "corners"),
    [
        ([[3, 4]], [[3, 4]]),
        ([[3, 4], [3, 4], [1, 1]], [[1, 1], [3, 4]]),
        ([[0, 0], [2, 2], [1, 1], [4, 4]], [[0, 0], [4, 4]]),
    ],
)
def test_a_hull_without_area(points, corners):
    assert ocr.find_hull(points).tolist() == corners
    assert area_of(ocr.fit_rectangle(points)) == pytest.approx(0, abs=1e-9)


def test_corners_of_a_hull_run_clockwise():
    assert ocr.find_hull([[1, 5], [0, 0], [3, 1]]).tolist() == [[0, 0], [3, 1], [1, 5]]


@pytest.mark.parametrize("wrong", [np.zeros((0, 2)), np.zeros((3, 3)), [[math.nan, 0.0]], [1.0]])
def test_a_hull_of_no_points_is_refused(wrong):
    with pytest.raises(ValueError, match="find_hull"):
        ocr.find_hull(wrong)


@pytest.mark.parametrize("seed", range(5))
def test_no_turn_gives_a_smaller_rectangle(seed):
    points = np.random.default_rng(seed).normal(size=(30, 2)) * [9, 3]
    corners = ocr.fit_rectangle(points)
    angles = np.radians(np.arange(0, 90, 0.05))
    ways = np.stack([np.cos(angles), np.sin(angles)], 1)
    across = np.stack([-ways[:, 1], ways[:, 0]], 1)
    areas = np.ptp(points @ ways.T, 0) * np.ptp(points @ across.T, 0)
    assert area_of(corners) <= areas.min() + 1e-9
    assert area_of(ocr.find_hull([*points, *corners])) == pytest.approx(area_of(corners))
    sides = np.roll(corners, -1, 0) - corners
    assert abs((sides * np.roll(sides, 1, 0)).sum(1)).max() < 1e-9


@pytest.mark.parametrize("angle", [-40, -10, 0, 7, 30])
def test_a_rectangle_is_its_own_smallest_one(angle):
    corners = rectangle(50, 12, angle, (40, 30))
    np.testing.assert_allclose(ocr.fit_rectangle(corners[[2, 0, 3, 1]]), corners, atol=1e-9)


def test_corners_in_any_order_are_the_same_box():
    corners = rectangle(30, 8, 20, (5, 5))
    for order in itertools.permutations(range(4)):
        np.testing.assert_array_equal(ocr.order_corners(corners[list(order)]), corners)
    with pytest.raises(ValueError, match="order_corners of 3 points"):
        ocr.order_corners(corners[:3])


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("angle", [0, 33])
def test_edges_move_inwards(turn, angle):
    corners = rectangle(20, 10, angle)
    inner = ocr.offset_polygon(corners[::turn], -2.5)
    np.testing.assert_allclose(inner, rectangle(15, 5, angle)[::turn], atol=1e-9)
    triangle = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])  # its inner circle has radius 1
    np.testing.assert_allclose(ocr.offset_polygon(triangle, -1.0), np.ones((3, 2)))


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("distance", [0.1, 1.0, 6.0, 40.0])
@pytest.mark.parametrize(
    "shape", [[[0, 0], [30, 4], [26, 22], [-5, 15]], [[0, 0], [40, 5], [2, 9]]]
)
def test_a_grown_polygon_has_steiners_area(turn, distance, shape):
    corners = np.array(shape, float)
    perimeter = np.hypot(*(np.roll(corners, -1, 0) - corners).T).sum()
    grown = ocr.offset_polygon(corners[::turn], distance)
    steiner = area_of(corners) + perimeter * distance + math.pi * distance**2
    lost = 5 * math.pi * distance * min(0.25, distance / 4)  # chords are rounded in number
    assert steiner - lost <= area_of(grown) <= steiner + 1e-9
    assert area_of(ocr.find_hull(grown)) == pytest.approx(area_of(grown))  # it is convex


def test_a_polygon_without_area_cannot_grow():
    for flat in ([[0, 0], [1, 1], [2, 2]], [[0, 0], [0, 0], [1, 1], [0, 1]]):
        with pytest.raises(ValueError, match="without area"):
            ocr.offset_polygon(flat, 1.0)


@pytest.mark.parametrize(
    "wrong", [[[0, 0], [9, 0], [2, 2], [0, 9]], [[0, 0], [9, 9], [9, 0], [0, 9]]]
)
def test_a_polygon_must_be_convex(wrong):
    for function in (lambda c: ocr.offset_polygon(c, -1.0), lambda c: ocr.fill_polygon(c, 9, 9)):
        with pytest.raises(ValueError, match="not convex"):
            function(wrong)


def drawn(corners, height, width):
    """The pixels that Pillow gives a polygon of whole numbers."""
    page = Image.new("L", (width, height))
    ImageDraw.Draw(page).polygon([*map(tuple, corners)], fill=1, outline=1)
    return np.asarray(page) > 0


@pytest.mark.parametrize(("angle", "opencv"), [(0, 615), (5, 618), (45, 620), (80, 614)])
def test_pixels_of_a_polygon_are_pillows_and_opencvs(angle, opencv):
    """Pillow draws slanted edges otherwise; OpenCV 4.14 and 5.0 give that number of pixels."""
    corners = np.floor(rectangle(40, 14, angle, (30, 30))).astype(int).tolist()
    expected, found = drawn(corners, 60, 64), ocr.fill_polygon(corners, 60, 64)
    assert not (found & ~ndimage.binary_dilation(expected)).any()
    assert not (ndimage.binary_erosion(expected) & ~found).any()
    assert abs(found.sum() - opencv) <= 2
    np.testing.assert_array_equal(ocr.fill_polygon(corners[::-1], 60, 64), found)
    assert not ocr.fill_polygon(np.array(corners) + 100, 60, 64).any()


# ---- what a finder learns --------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.3, 0.4, 1.0])
def test_the_map_is_the_box_moved_inwards(ratio):
    width, height = 60, 20
    distance = width * height * (1 - ratio**2) / (2 * (width + height))
    learn, mask = ocr.shrink_map([[[10, 5], [70, 5], [70, 25], [10, 25]]], 40, 90, ratio)
    rows, columns = np.nonzero(learn)
    low = np.floor([5 + distance, 10 + distance])  # corners are rounded down
    high = np.floor([25 - distance, 70 - distance])
    assert [rows.min(), columns.min()] == low.tolist()
    assert [rows.max(), columns.max()] == high.tolist()
    assert learn.sum() == np.prod(high - low + 1)
    assert (learn.dtype, mask.dtype, mask.min()) == ("float32", "float32", 1)


def test_lines_that_touch_stay_apart():
    boxes = [[[0, 0], [50, 0], [50, 12], [0, 12]], [[0, 12], [50, 12], [50, 24], [0, 24]]]
    assert ndimage.label(ocr.shrink_map(boxes, 30, 60)[0])[1] == 2


def test_small_boxes_are_not_learnt():
    boxes = [[[0, 0], [30, 0], [30, 5], [0, 5]], [[5, 9], [9, 9], [9, 9], [5, 9]]]
    learn, mask = ocr.shrink_map(boxes, 12, 40)
    assert learn.sum() == 0
    assert (mask == 0).sum() == 31 * 6 + 5
    assert [part.sum() for part in ocr.shrink_map([], 3, 4)] == [0, 12]
    with pytest.raises(ValueError, match=r"ratio=1\.5"):
        ocr.shrink_map(boxes, 12, 40, ratio=1.5)


def test_the_step_is_steep_and_smooth():
    p = np.array([0.0, 0.29, 0.3, 0.31, 1.0, math.inf, -math.inf])
    found = ocr.binarize(paddle.to_tensor(p), paddle.to_tensor(0.3, "float64")).numpy()
    exact = [1 / (1 + math.exp(-50 * (v - 0.3))) for v in p[:5]]
    np.testing.assert_allclose(found, [*exact, 1, 0], rtol=1e-12)
    check_grad(ocr.binarize, RNG.uniform(0.25, 0.35, (3, 4)), RNG.uniform(0.25, 0.35, (3, 4)))
    far = ocr.binarize(paddle.to_tensor([-1e30, 1e30]), 0.0)
    assert far.tolist() == [0.0, 1.0]


# ---- boxes of a map --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("angle", [-30, -4, 0, 12, 40])
def test_a_drawn_rectangle_is_found(angle, dtype):
    corners = rectangle(90, 24, angle, (80, 70)).round()
    p = drawn(corners.tolist(), 140, 160).astype(dtype)
    (box,), (score,) = ocr.find_boxes(p, ratio=1.5)
    distance = 90 * 24 * 1.5 / (2 * (90 + 24))
    expected = rectangle(90 + 2 * distance, 24 + 2 * distance, angle, (80.5, 70.5))
    assert abs(box - expected).max() < 3.5  # corners in whole pixels turn a rectangle a little
    assert score > 0.9


def test_boxes_of_two_lines_and_of_none():
    p = np.zeros((60, 80))
    assert [part.shape for part in ocr.find_boxes(p)] == [(0, 4, 2), (0,)]
    p[5:15, 5:60], p[30:45, 20:70] = 0.8, 0.6
    boxes, scores = ocr.find_boxes(p)
    far = round(55 * 10 * 1.6 / 130), round(50 * 15 * 1.6 / 130)
    expected = [[5 - far[0], 5 - far[0]], [20 - far[1], 30 - far[1]]]
    np.testing.assert_allclose(boxes[:, 0], expected, atol=1e-9)
    assert len(ocr.find_boxes(p, least_score=0.6)[0]) == 1
    np.testing.assert_allclose(scores, [0.8 * 550 / (56 * 11), 0.6 * 750 / (51 * 16)])
    assert not len(ocr.find_boxes(p, threshold=0.8)[0])  # above, not at


def test_parts_that_meet_at_a_corner_are_one():
    p = np.zeros((40, 40))
    p[5:15, 5:15] = p[16:30, 16:30] = 1.0
    assert len(ocr.find_boxes(p, least_score=0.0)[0]) == 2 - 1  # dilation closes a gap of a pixel
    p[:, 15:17] = p[15:17] = 0.0
    p[18:30, 18:30] = 1.0
    assert len(ocr.find_boxes(p)[0]) == 2


@pytest.mark.parametrize("value", [math.nan, -math.inf, 0.3])
def test_nothing_is_found_in_a_map_of(value):
    assert not len(ocr.find_boxes(np.full((20, 20), value))[0])


def test_small_parts_and_whole_maps():
    p = np.zeros((30, 30))
    p[4, 4] = p[10:12, 5:25] = 1.0
    assert not len(ocr.find_boxes(p)[0])
    assert not len(ocr.find_boxes(np.eye(30))[0])  # 30 pixels high and wide, and thin
    assert not len(ocr.find_boxes(np.ones((1, 1)))[0])
    (box,), (score,) = ocr.find_boxes(np.full((20, 30), math.inf))
    assert score == math.inf
    assert area_of(box) > 20 * 30
    with pytest.raises(ValueError, match=r"shape \[1, 20, 30\]"):
        ocr.find_boxes(np.ones((1, 20, 30)))


@pytest.mark.parametrize("ratio", [1.0, 1.6, 2.0])
def test_unclip_adds_the_area_of_its_distance(ratio):
    box = np.array([[10, 10], [110, 10], [110, 34], [10, 34]])
    distance = 100 * 24 * ratio / 248
    steiner = 100 * 24 + 248 * distance + math.pi * distance**2
    grown = ocr.unclip(box, ratio)
    assert area_of(grown) == pytest.approx(steiner, rel=0.03)
    np.testing.assert_array_equal(grown.min(0), np.floor(10 - distance + 0.5))
    np.testing.assert_array_equal(grown, grown.round())
    np.testing.assert_array_equal(ocr.unclip(box + 0.75, ratio), grown)


def test_a_score_is_a_mean_of_pixels():
    p = RNG.uniform(size=(12, 16))
    box = [[3.5, 2.0], [9.9, 2.0], [9.9, 7.0], [3.5, 7.0]]
    assert ocr.score_box(p, box) == pytest.approx(p[2:8, 3:10].mean())
    assert ocr.score_box(p, np.array(box) + 50) == 0.0
    assert ocr.score_box(p, np.array(box) - [6, 0]) == pytest.approx(p[2:8, :4].mean())


def test_boxes_are_read_line_by_line():
    lines = [[(5, 4), (40, 0), (80, 9)], [(0, 30), (60, 27)], [(20, 60)]]
    boxes = [rectangle(20, 8) + corner for line in lines for corner in line]
    boxes[0][2:] += [0, 70]  # only where a box begins counts
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(boxes))
        np.testing.assert_array_equal(ocr.sort_boxes([boxes[k] for k in order]), boxes)
    assert ocr.sort_boxes([]).shape == (0, 4, 2)
    twice = [boxes[1], boxes[0], boxes[1]]
    np.testing.assert_array_equal(ocr.sort_boxes(twice), [boxes[0], boxes[1], boxes[1]])
    by_height = ocr.sort_boxes(boxes[:3], tolerance=0.0)
    np.testing.assert_array_equal(by_height, [boxes[1], boxes[0], boxes[2]])
