"""Pictures at other sizes and lines cut out, against closed forms and SciPy."""

import math

import numpy as np
import pytest
from scipy import ndimage

from minipaddle.vision import ocr, transforms
from minipaddle.vision.ocr.pixels import SHARPNESS, map_corners, sample_cubic

RNG = np.random.default_rng(41)
PICTURE = RNG.integers(0, 256, (21, 34, 3)).astype("uint8")

SIZES = [(21, 34), (48, 77), (7, 40), (64, 11), (1, 1), (42, 68)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
def test_sizes_change_along_straight_lines(size, channels):
    picture = PICTURE[..., :channels]
    found = ocr.resize_to(picture, *size)
    y, x = ((np.arange(n) + 0.5) * b / n - 0.5 for n, b in zip(size, (21, 34), strict=True))
    exact = [
        ndimage.map_coordinates(
            picture[..., k].astype(float), np.meshgrid(y, x, indexing="ij"), order=1, mode="nearest"
        )
        for k in range(channels)
    ]
    assert (
        abs(found - np.stack(exact, -1)).max() < 1
    )  # bits are dropped twice before the last rounding
    assert found.dtype == "uint8"
    difference = found.astype(int) - transforms.resize(picture, size)
    assert abs(difference).max() <= 1


def test_a_picture_at_its_size_is_itself():
    np.testing.assert_array_equal(ocr.resize_to(PICTURE, 21, 34), PICTURE)
    for value in (0, 1, 128, 255):
        flat = np.full((5, 9, 1), value, "uint8")
        assert (ocr.resize_to(flat, 33, 16) == value).all()


def test_a_slope_stays_a_slope():
    slope = np.arange(0, 240, 4, "uint8").reshape(1, 60, 1)
    found = ocr.resize_to(slope, 1, 90)[0, :, 0]
    exact = 4 * ((np.arange(90) + 0.5) * 60 / 90 - 0.5)
    assert abs(found - exact.clip(0, 236)).max() <= 0.5 + 1e-3


def test_values_are_opencvs():
    """cv2.resize of OpenCV 4.14 and 5.0, of a row of random bytes, and of a column of them."""
    row = np.array([[[12], [250], [3], [199], [77]]], "uint8")
    assert ocr.resize_to(row, 1, 8).ravel().tolist() == [12, 116, 235, 80, 64, 187, 130, 77]
    column = np.array([[[9]], [[201]], [[34]]], "uint8")
    assert ocr.resize_to(column, 7, 1).ravel().tolist() == [9, 36, 119, 201, 129, 58, 34]


@pytest.mark.parametrize("wrong", [PICTURE.astype("float32"), np.zeros((0, 3, 1), "uint8")])
def test_pictures_without_bytes_are_refused(wrong):
    with pytest.raises(ValueError, match="expected: uint8"):
        ocr.resize_to(wrong, 4, 4)
    with pytest.raises(ValueError, match="at least one pixel"):
        ocr.resize_to(PICTURE, 0, 4)


# ---- straighten ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int16"])
def test_an_upright_box_is_cut_out(dtype):
    picture = PICTURE.astype(dtype)
    found = ocr.straighten(picture, [[3, 2], [20, 2], [20, 15], [3, 15]])
    np.testing.assert_array_equal(found, picture[2:15, 3:20])
    assert found.dtype == dtype


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_quarters_are_turned_back(quarter):
    """The corner of a box that is named first becomes the top left one."""
    corners = np.roll([[5, 3], [25, 3], [25, 16], [5, 16]], -quarter, 0)
    found = ocr.straighten(PICTURE, corners)
    y, x = np.mgrid[: found.shape[0], : found.shape[1]]
    along, down = np.sign(corners[1] - corners[0]), np.sign(corners[3] - corners[0])
    columns, rows = (corners[0][k] + along[k] * x + down[k] * y for k in (0, 1))
    np.testing.assert_array_equal(found, PICTURE[rows, columns])


def waves(x, y):
    """A smooth picture with a value everywhere."""
    return 127 + 60 * np.sin(x / 9) + 50 * np.cos(y / 7 + x / 31)


@pytest.mark.parametrize("angle", [-25, -3, 4, 45, 90, 170])
def test_a_turned_picture_is_turned_back(angle):
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    y, x = np.mgrid[:120.0, :120.0]
    turned = waves(cos * (x - 60) + sin * (y - 60), cos * (y - 60) - sin * (x - 60))
    u, v = np.array([[-30, -12], [30, -12], [30, 12], [-30, 12]]).T
    box = np.stack([60 + cos * u - sin * v, 60 + sin * u + cos * v], 1)
    found = ocr.straighten(turned[..., None], np.round(box, 9))[..., 0]
    y, x = np.mgrid[: found.shape[0], : found.shape[1]]
    assert abs(found.shape[0] - 24) <= 1
    assert abs(found.shape[1] - 60) <= 1
    exact = waves(x * 60 / found.shape[1] - 30, y * 24 / found.shape[0] - 12)
    assert abs(found - exact).max() < 1  # half a pixel aside would be 4


def test_a_trapezium_is_seen_from_the_front():
    box = np.array([[20.0, 10.0], [80.0, 18.0], [78.0, 50.0], [22.0, 40.0]])
    matrix = map_corners(60, 32, box)
    for corner, goal in zip([[0, 0], [60, 0], [60, 32], [0, 32]], box, strict=True):
        x, y, scale = matrix @ [*corner, 1]
        np.testing.assert_allclose([x / scale, y / scale], goal, atol=1e-9)
    a, b = matrix @ [30, 8, 1], matrix @ [30, 24, 1]  # lines stay lines: through both, the middle
    middle = matrix @ [30, 16, 1]
    flat = np.linalg.det(np.stack([v / v[2] for v in (a, b, middle)]))
    assert abs(flat) < 1e-8
    y, x = np.mgrid[:60.0, :100.0]
    found = ocr.straighten(waves(x, y)[..., None], box)[..., 0]
    assert found.shape == (32, 60)
    y, x = np.mgrid[:32, :60]
    x, y, scale = np.tensordot(matrix, np.stack([x, y, np.ones_like(x)]), 1)
    assert abs(found - waves(x / scale, y / scale)).max() < 1


def cubic(distance):
    """Keys' kernel, as one reads it in a book."""
    a, t = SHARPNESS, abs(distance)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0


@pytest.mark.parametrize(
    "place", [(4.3, 7.6), (0.2, 0.9), (33.0, 20.0), (32.7, 19.5), (-9.0, 40.5)]
)
def test_a_place_is_the_sum_of_sixteen_pixels(place):
    x, y = place
    found = sample_cubic(PICTURE, np.array([[x]]), np.array([[y]]))[0, 0]
    exact = np.zeros(3)
    for j in range(math.floor(y) - 1, math.floor(y) + 3):
        for i in range(math.floor(x) - 1, math.floor(x) + 3):
            pixel = PICTURE[min(max(j, 0), 20), min(max(i, 0), 33)]
            exact += cubic(x - i) * cubic(y - j) * pixel
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    "wrong", [[[0, 0], [9, 0], [9, 0], [0, 0]], [[0, 0]] * 4, [[0, 0], [9, 0], [9, 9]],
              [[0, 0], [math.inf, 0], [9, 9], [0, 9]]],
)  # fmt: skip
def test_a_box_without_pixels_is_refused(wrong):
    with pytest.raises(ValueError, match="straighten of a box"):
        ocr.straighten(PICTURE, wrong)
