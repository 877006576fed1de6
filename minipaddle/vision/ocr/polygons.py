"""Convex polygons of corners [n, 2], each (x, y): whole numbers are centres of pixels."""

from ...core.prelude import NUMPY as np
from ...core.prelude import value_error

__all__ = ["fill_polygon", "find_hull", "fit_rectangle", "offset_polygon", "order_corners"]


def find_hull(points):
    """The corners [k, 2] of the smallest convex polygon around points [n, 2], without those that
    lie on its edges; it begins with the least x.

    Raises ValueError for points of another shape or that are not finite. Source: Andrew, "Another
    efficient algorithm for convex hulls in two dimensions" (1979).

    >>> paddle.vision.ocr.find_hull([[0, 0], [1, 1], [2, 0], [1, 0], [2, 2], [0, 2]]).tolist()
    [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]
    """
    points = sorted({tuple(point) for point in check_points("find_hull", points).tolist()})
    if len(points) < 3:
        return np.array(points)
    return np.array(half_hull(points) + half_hull(points[::-1]))


def half_hull(points: list) -> list:
    """The corners from the first to the last of sorted points, always turning left; without the
    last."""
    corners = []
    for x, y in points:
        while len(corners) > 1:
            (x1, y1), (x2, y2) = corners[-2:]
            if (x2 - x1) * (y - y1) > (y2 - y1) * (x - x1):
                break
            corners.pop()
        corners.append((x, y))
    return corners[:-1]


def check_points(name: str, points):
    """The points as float64 [n, 2]."""
    points = np.asarray(points, "float64")
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise value_error(f"{name} of an array of shape {list(points.shape)}", "points [n, 2]")
    if not np.isfinite(points).all():
        raise value_error(f"{name} of points that are not finite", "numbers")
    return points


def fit_rectangle(points):
    """The corners [4, 2] of the smallest rectangle around points [n, 2], turned as fits best.

    A side of it lies on an edge of the hull. Points of one line give a rectangle without area.
    Source: Freeman and Shapira, "Determining the minimum-area encasing rectangle" (1975).

    >>> paddle.vision.ocr.fit_rectangle([[1, 3], [5, 1], [6, 3], [2, 5], [4, 3]]).round(6).tolist()
    [[1.0, 3.0], [5.0, 1.0], [6.0, 3.0], [2.0, 5.0]]
    """
    hull = find_hull(points)
    edges = np.roll(hull, -1, 0) - hull
    lengths = np.hypot(*edges.T)
    along = edges / lengths[:, None] if len(hull) > 1 else np.array([[1.0, 0.0]])
    frames = np.stack([along, np.stack([-along[:, 1], along[:, 0]], 1)], 1)  # [edge, axis, 2]
    places = frames @ hull.T
    low, high = places.min(-1), places.max(-1)
    best = np.prod(high - low, 1).argmin()
    (left, top), (right, bottom) = low[best], high[best]
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    return order_corners(corners @ frames[best])


def order_corners(corners):
    """Four corners as top left, top right, bottom right, bottom left: of the two leftmost the upper
    is the first.

    Source: PaddleOCR, `get_mini_boxes` of its `DBPostProcess`.

    >>> paddle.vision.ocr.order_corners([[4, 1], [0, 2], [4, 3], [0, 0]]).tolist()
    [[0.0, 0.0], [4.0, 1.0], [4.0, 3.0], [0.0, 2.0]]
    """
    corners = check_points("order_corners", corners)
    if len(corners) != 4:
        raise value_error(f"order_corners of {len(corners)} points", "4")
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = (pair[np.argsort(pair[:, 1], kind="stable")] for pair in (by_x[:2], by_x[2:]))
    return np.stack([left[0], right[0], right[1], left[1]])


def measure_polygon(corners) -> tuple[float, float]:
    """(area, perimeter); the area is negative where corners run against the clock as one sees it,
    y downwards."""
    after = np.roll(corners, -1, 0)
    area = (corners[:, 0] * after[:, 1] - corners[:, 1] * after[:, 0]).sum() / 2
    return float(area), float(np.hypot(*(after - corners).T).sum())


def check_convex(name: str, corners):
    """The corners of a convex polygon, or a ValueError: the area of their hull is theirs."""
    corners = check_points(name, corners)
    area, hull = (abs(measure_polygon(each)[0]) for each in (corners, find_hull(corners)))
    if abs(hull - area) > 1e-6 * max(1.0, hull):
        raise value_error(
            f"{name} of a polygon that is not convex",
            "corners in their order, so that all turn to one side",
            hint="fit_rectangle or find_hull of it",
        )
    return corners


ARC = 0.25
"""How far, in pixels, the chords of a round corner are from its circle; their number is rounded."""


def offset_polygon(corners, distance: float):
    """A convex polygon whose edges are moved outwards by `distance`, or inwards if it is negative.

    Moved outwards it has all points at that distance: its corners are arcs, drawn as chords about
    a quarter of a pixel off. Raises ValueError for a polygon that has no area, or is not convex.
    Source: Johnson, Clipper 6, `ClipperOffset` with round joins.

    >>> square = [[0, 0], [4, 0], [4, 4], [0, 4]]
    >>> paddle.vision.ocr.offset_polygon(square, -1.0).tolist()
    [[1.0, 1.0], [3.0, 1.0], [3.0, 3.0], [1.0, 3.0]]
    >>> paddle.vision.ocr.offset_polygon(square, 4.0)[:3].round().astype(int).tolist()
    [[-4, 0], [-3, -3], [0, -4]]
    """
    corners = check_convex("offset_polygon", corners)
    edges = np.roll(corners, -1, 0) - corners
    lengths, area = np.hypot(*edges.T), measure_polygon(corners)[0]
    if not area or not lengths.all():
        raise value_error("offset_polygon of a polygon without area", "corners that differ")
    side = np.sign(area)
    outwards = np.stack([edges[:, 1], -edges[:, 0]], 1) / lengths[:, None] * side
    before = np.roll(outwards, 1, 0)
    straight = (outwards * before).sum(1)  # the cosine of the turn at a corner
    if distance <= 0:
        return corners + distance * (outwards + before) / (1 + straight[:, None])
    circle = min(np.pi / np.arccos(1 - min(ARC / distance, 0.25)), np.pi * distance)
    arcs = []
    for corner, begin, end, cosine in zip(corners, before, outwards, straight, strict=True):
        chords = max(1, round(circle * np.arccos(np.clip(cosine, -1, 1)) / (2 * np.pi)))
        angles = np.arctan2(begin[1], begin[0]) + side * 2 * np.pi / circle * np.arange(chords)
        ways = np.stack([np.cos(angles), np.sin(angles)], 1)
        arcs.append(corner + distance * np.concatenate([ways, end[None]]))
    return np.concatenate(arcs)


def fill_polygon(corners, height: int, width: int):
    """Which pixels [height, width] a convex polygon covers: bool.

    Corners are rounded down; pixels that an edge crosses, half a pixel to each side of it, count.
    Raises ValueError for another polygon. Source: OpenCV, `cv2.fillPoly`.

    >>> paddle.vision.ocr.fill_polygon([[0, 0], [2, 0], [0, 2]], 3, 4).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 0, 0],
           [1, 0, 0, 0]])
    """
    corners = np.floor(check_convex("fill_polygon", corners))
    y, x = np.ogrid[:height, :width]
    edges, side = np.roll(corners, -1, 0) - corners, np.sign(measure_polygon(corners)[0]) or 1.0
    (left, top), (right, bottom) = corners.min(0), corners.max(0)
    covered = (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
    for (px, py), (dx, dy) in zip(corners, edges * side, strict=True):
        covered &= dx * (y - py) - dy * (x - px) >= -max(abs(dx), abs(dy)) / 2
    return covered
