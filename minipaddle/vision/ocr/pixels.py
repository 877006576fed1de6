"""Pictures [h, w, channels] at other sizes, and lines of text cut out of them.

Source: Keys, "Cubic convolution interpolation for digital image processing" (1981).
"""

from ...core.prelude import NUMPY as np
from ...core.prelude import value_error
from ..transforms.pictures import round_to

__all__ = ["resize_to", "straighten"]


BITS = 11
"""Of the fraction of a weight: pixels are whole numbers, and so are weights, of 1 / 2048."""


def resize_to(picture, height: int, width: int):
    """A picture uint8 [h, w, channels] at another size, on straight lines between pixels' centres.

    Nothing is averaged when shrinking. Raises ValueError for another dtype. The values are those of
    OpenCV, to the last bit. Source: OpenCV, `cv2.resize` with INTER_LINEAR.

    >>> picture = paddle.to_tensor([[[0], [100]]], "uint8").numpy()
    >>> paddle.vision.ocr.resize_to(picture, 1, 4)[..., 0]
    array([[  0,  25,  75, 100]], dtype=uint8)
    """
    if picture.dtype != "uint8" or min(height, width, *picture.shape) < 1:
        raise value_error(
            f"resize_to({height}, {width}) of {list(picture.shape)} of {picture.dtype}",
            "uint8 [h, w, channels], and at least one pixel",
        )
    left, right, weights = place_between(picture.shape[1], width)
    weights[:, left == right] = [[1 << BITS], [0]]
    rows = picture.astype("int32")
    rows = mix(rows.take(left, 1), rows.take(right, 1), weights[:, None, :, None], 0) >> 4
    top, bottom, weights = place_between(picture.shape[0], height)
    values = mix(rows.take(top, 0), rows.take(bottom, 0), weights[:, :, None, None], 16)
    values += 2  # what is left of 2 * BITS after 4 + 16 bits, rounded
    values >>= 2
    return values.astype("uint8")


def place_between(before: int, after: int) -> tuple:
    """The two neighbours of each of `after` pixels among `before`, and their weights [2, after]."""
    place = ((np.arange(after) + 0.5) * (before / after) - 0.5).astype("float32")
    low = np.floor(place).astype(int)
    share = place - low.astype("float32")
    weights = np.rint(np.stack([1 - share, share]) * (1 << BITS)).astype("int32")
    return low.clip(0, before - 1), (low + 1).clip(0, before - 1), weights


def mix(one, other, weights, shift: int):
    """The weighted sum, each term without its last bits; `one` and `other` are written over."""
    for x, weight in zip((one, other), weights, strict=True):
        x *= weight
        if shift:
            x >>= shift
    one += other
    return one


def straighten(picture, box):
    """The part of a picture in a box [4, 2], upright: its corners become those of a picture.

    As wide and as high as the longer of two opposite edges, in whole pixels. Cubics between pixels,
    and those at the border go on beyond it. Raises ValueError for a box with an edge below a pixel.
    Source: OpenCV, `getPerspectiveTransform` and `warpPerspective` with INTER_CUBIC.

    >>> picture = paddle.arange(12).reshape([3, 4, 1]).astype("uint8").numpy()
    >>> box = [[3, 0], [3, 2], [1, 2], [1, 0]]  # what is at the right becomes the top
    >>> paddle.vision.ocr.straighten(picture, box)[..., 0]
    array([[3, 7],
           [2, 6]], dtype=uint8)
    """
    box = np.asarray(box, "float64")
    if box.shape != (4, 2) or not np.isfinite(box).all():
        raise value_error(f"straighten of a box of shape {list(box.shape)}", "4 corners (x, y)")
    top, right, bottom, left = np.hypot(*(np.roll(box, -1, 0) - box).T)
    width, height = int(max(top, bottom)), int(max(left, right))
    if min(width, height) < 1:
        raise value_error(f"straighten of a box of {width} x {height} pixels", "1 x 1 at least")
    y, x = np.mgrid[:height, :width]
    matrix = map_corners(width, height, box)
    x, y, scale = np.tensordot(matrix, np.stack([x, y, np.ones_like(x)]), 1)
    return round_to(sample_cubic(picture, x / scale, y / scale), picture)


def map_corners(width, height, box):
    """The projective map [3, 3] from the corners of a rectangle at 0 to those of a box: the eight
    numbers that satisfy eight linear equations."""
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], "float64")
    rows = []
    for (x, y), (u, v) in zip(corners, box, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -x * u, -y * u])
        rows.append([0, 0, 0, x, y, 1, -x * v, -y * v])
    return np.append(np.linalg.solve(np.array(rows), box.ravel()), 1.0).reshape(3, 3)


SHARPNESS = -0.75
"""The slope of the cubic at the next pixel: OpenCV's; Keys derives -0.5."""


def weigh_neighbours(share):
    """How much the pixels at -1, 0, 1, 2 count for places [...] between 0 and 1: [4, ...]."""
    a, weights = SHARPNESS, []
    for distance in (1 + share, share, 1 - share, 2 - share):
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = a * (((distance - 5) * distance + 8) * distance - 4)
        weights.append(np.where(distance <= 1, near, far))
    return np.stack(weights).astype("float32")


def sample_cubic(picture, x, y):
    """The values [..., channels] of a picture at places x, y [...] between its pixels."""
    rows, columns = np.floor(y).astype(int), np.floor(x).astype(int)
    down, across = weigh_neighbours(y - rows), weigh_neighbours(x - columns)
    top, left = (
        int((k.min() - 1).clip(0, n - 1))
        for k, n in zip((rows, columns), picture.shape, strict=False)
    )
    window = picture[top : max(rows.max() + 3, top + 1), left : max(columns.max() + 3, left + 1)]
    height, width, channels = window.shape
    planes = window.transpose(2, 0, 1).reshape(channels, -1).astype("float32")
    values = np.zeros((channels, *x.shape), "float32")
    rows = [(rows + (k - 1 - top)).clip(0, height - 1) * width for k in range(4)]
    columns = [(columns + (k - 1 - left)).clip(0, width - 1) for k in range(4)]
    for j in range(4):
        for i in range(4):
            weight = down[j] * across[i]
            if weight.any():  # a box along the pixels' edges needs one of sixteen
                values += weight * planes.take(rows[j] + columns[i], 1)
    return np.moveaxis(values, 0, -1)
