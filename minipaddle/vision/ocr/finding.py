"""Where text is: from boxes to the map that a finder learns, and from its map back to boxes.

Source: Liao et al., "Real-time scene text detection with differentiable binarization" (2020).
"""

from ...core.prelude import NUMPY as np
from ...core.prelude import sigmoid, slot, value_error
from .polygons import fill_polygon, fit_rectangle, measure_polygon, offset_polygon

__all__ = ["binarize", "find_boxes", "score_box", "shrink_map", "sort_boxes", "unclip"]


@slot("ocr.binarize")
def binarize(probability, threshold, k=50.0):
    """1 / (1 + exp(-k (probability - threshold))): a step that a finder can learn through, because
    it is not flat.

    Tensors of one shape, or that broadcast. Source: Liao et al. 2020, equation 2.

    >>> p = paddle.to_tensor([0.25, 0.5, 0.75])
    >>> [round(v, 4) for v in paddle.vision.ocr.binarize(p, 0.5, k=8.0).tolist()]
    [0.1192, 0.5, 0.8808]
    """
    return sigmoid(k * (probability - threshold))


@slot("ocr.shrink_map")
def shrink_map(boxes, height: int, width: int, ratio=0.4, least=8):
    """The map that a finder should give a picture, and a mask: float32 [height, width].

    The map is 1 inside each box [4, 2] (or convex polygon [k, 2]) after its edges moved inwards by
    area · (1 - ratio²) / perimeter, so that lines that touch stay apart. The mask is 0, do not
    learn here, in boxes lower or narrower than `least` pixels. Source: Liao et al. 2020, section
    3.4.

    >>> box = [[1, 1], [12, 1], [12, 9], [1, 9]]
    >>> learn, mask = paddle.vision.ocr.shrink_map([box], 12, 14)
    >>> learn.sum(), mask.min()
    (np.float32(54.0), np.float32(1.0))
    """
    if not 0 < ratio <= 1:
        raise value_error(f"shrink_map(ratio={ratio})", "0 < ratio <= 1")
    learn, mask = np.zeros((height, width), "float32"), np.ones((height, width), "float32")
    for box in np.asarray(boxes, "float64") if len(boxes) else ():
        area, perimeter = measure_polygon(box)
        if not area or min(np.ptp(box, 0)) < least:
            mask[fill_polygon(box, height, width)] = 0
            continue
        inner = offset_polygon(box, -abs(area) * (1 - ratio**2) / perimeter)
        learn[fill_polygon(inner, height, width)] = 1
    return learn, mask


@slot("ocr.unclip")
def unclip(box, ratio=1.6):
    """A box [4, 2] moved outwards by area · ratio / perimeter, as `shrink_map` moved it inwards:
    a polygon [k, 2] with round corners.

    Its points are whole pixels, the box's rounded down before. Source: Liao et al. 2020, section
    3.5; PaddleOCR, `DBPostProcess`, which calls Clipper.

    >>> paddle.vision.ocr.unclip([[0, 0], [6, 0], [6, 2], [0, 2]], ratio=8 / 3)[:3].tolist()
    [[-2.0, 0.0], [-1.0, -2.0], [0.0, -2.0]]
    """
    box = np.asarray(box, "float64")
    area, perimeter = measure_polygon(box)
    grown = offset_polygon(np.floor(box), abs(area) * ratio / perimeter if perimeter else 0.0)
    return np.floor(grown + 0.5)


LEAST = 3
"""The shorter side of the smallest part that may be text, in pixels of the map."""


def find_boxes(probability, threshold=0.3, least_score=0.5, ratio=1.6):
    """(boxes [n, 4, 2], scores [n]) of the text in a map [h, w], in pixels of the map.

    Pixels above `threshold` that touch, at corners too, are a part; its smallest rectangle, if it
    is 3 pixels high and wide and its score reaches `least_score`, grows by `unclip(ratio)`.
    Corners begin at the top left. Source: Liao et al. 2020, section 3.5; PaddleOCR,
    `DBPostProcess`, with its dilation by one pixel.

    >>> p = paddle.zeros([8, 12]).numpy()
    >>> p[2:6, 2:10] = 1.0
    >>> boxes, scores = paddle.vision.ocr.find_boxes(p, ratio=0.5)
    >>> boxes.round(2).tolist(), scores.round(2)
    ([[[1.0, 1.0], [11.0, 1.0], [11.0, 7.0], [1.0, 7.0]]], array([0.71]))
    """
    from scipy import ndimage  # takes a while to import

    probability = np.asarray(probability)
    if probability.ndim != 2:
        shape = list(probability.shape)
        raise value_error(f"find_boxes of a map of shape {shape}", "[height, width]")
    above = np.pad(probability > threshold, ((1, 0), (1, 0)))
    above = above[1:, 1:] | above[:-1, 1:] | above[1:, :-1] | above[:-1, :-1]
    parts, _ = ndimage.label(above, np.ones((3, 3)))
    boxes, scores = [], []
    for part, window in enumerate(ndimage.find_objects(parts), 1):
        if min(side.stop - side.start for side in window) <= LEAST:
            continue
        corner = [window[1].start, window[0].start]
        box = fit_rectangle(find_ends(parts[window] == part) + corner)
        score = score_box(probability, box) if shorter_side(box) >= LEAST else 0.0
        grown = fit_rectangle(unclip(box, ratio)) if score >= least_score else box
        if score >= least_score and shorter_side(grown) >= LEAST + 2:
            boxes.append(grown)
            scores.append(score)
    return np.array(boxes).reshape(-1, 4, 2), np.array(scores)


def find_ends(mask):
    """The first and the last pixel (x, y) of each row of a mask: its hull's corners are there."""
    rows = np.flatnonzero(mask.any(1))
    first = mask[rows].argmax(1)
    last = mask.shape[1] - 1 - mask[rows, ::-1].argmax(1)
    return np.stack([np.concatenate([first, last]), np.concatenate([rows, rows])], 1)


def shorter_side(box) -> float:
    return float(np.hypot(*(box[[1, 3]] - box[0]).T).min())


def score_box(probability, box) -> float:
    """The mean of a map [h, w] over the pixels in a box [4, 2]; 0 if the box holds none.

    >>> p = paddle.ones([4, 4]).numpy()
    >>> p[0] = 0.0
    >>> paddle.vision.ocr.score_box(p, [[0, 0], [1, 0], [1, 1], [0, 1]])
    0.5
    """
    box = np.asarray(box, "float64")
    size = np.array(probability.shape[::-1])
    low = np.clip(np.floor(box.min(0)).astype(int), 0, size)
    high = np.clip(np.ceil(box.max(0)).astype(int) + 1, low, size)
    window = probability[low[1] : high[1], low[0] : high[0]]
    inside = window[fill_polygon(box - low, *window.shape)]
    return float(inside.mean(dtype="float64")) if inside.size else 0.0


@slot("ocr.sort_boxes")
def sort_boxes(boxes, tolerance=10.0):
    """Boxes [n, 4, 2] as one reads them: from top to bottom, and from left to right where the
    top left corners differ by less than `tolerance` in height.

    Source: PaddleOCR, `sorted_boxes`.

    >>> places = [[40, 3], [0, 30], [2, 0]]
    >>> boxes = [[[x, y], [x + 9, y], [x + 9, y + 9], [x, y + 9]] for x, y in places]
    >>> paddle.vision.ocr.sort_boxes(boxes)[:, 0].tolist()
    [[2, 0], [40, 3], [0, 30]]
    """
    boxes = sorted(boxes, key=lambda box: (box[0][1], box[0][0]))
    for end in range(1, len(boxes)):
        k = end
        while k and is_left_of(boxes[k][0], boxes[k - 1][0], tolerance):
            boxes[k - 1], boxes[k] = boxes[k], boxes[k - 1]
            k -= 1
    return np.array(boxes).reshape(-1, 4, 2)


def is_left_of(corner, other, tolerance: float) -> bool:
    """Whether a corner (x, y) is in the line of the other, and left of it."""
    return abs(corner[1] - other[1]) < tolerance and corner[0] < other[0]
