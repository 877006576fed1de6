"""Which boxes a detector keeps: suppression of those that better ones overlap.

Written in tensor functions, without gradients. How many boxes are left, only the values say: a
program knows it when it runs. Source: Paddle API `paddle.vision.ops`.
"""

import math

from ..core.prelude import e, indexing, value_error, whole
from ..eager.modes import no_grad
from ..engine.eager.control_flow import while_loop
from ..engine.ops.logic import logical_not
from ..tensor.along import take_along_axis
from ..tensor.arranging import triu
from ..tensor.creation import arange, full, to_tensor, zeros
from ..tensor.joining import concat
from ..tensor.math import exp
from ..tensor.search import argsort, nonzero


def areas(boxes, more: float = 0.0):
    """The areas of boxes [..., 4]; 0 of one whose corners are the wrong way round."""
    sides = boxes[..., 2:] - boxes[..., :2]
    return e.where((sides < 0).any(-1), 0.0, (sides + more).prod(-1))


def overlaps(boxes, more: float = 0.0):
    """Intersection over union of each two boxes: [n, n]. Pixels (more=1) reach to their far end."""
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    sides = e.minimum(high, boxes[:, 2:]) - e.maximum(low, boxes[:, :2])
    shared = e.where((sides < 0).any(-1), 0.0, (sides + more).prod(-1))
    own = areas(boxes, more)
    return shared / (own.unsqueeze(1) + own - shared)


def visible(candidates, hides):
    """The candidates that no visible candidate before them hides: a fixed point.

    Each round settles at least one place more, for `hides` is above the diagonal.
    """

    def iteration(now, before):
        return [candidates & logical_not((now.unsqueeze(1) & hides).any(0)), now]

    changed = lambda now, before: (now != before).any()
    return while_loop(changed, iteration, [candidates, logical_not(candidates)])[0]


def rank(boxes, scores, threshold: float, most: int, background: int):
    """The candidates of each image and class, best first: (places, scores, whether it is one).

    boxes [N, M, 4] or [N, C, M, 4], scores [N, C, M]; results [N, C, k], where k is as many as any
    class has candidates, and no more than `most`, unless that is negative.
    """
    allowed = scores > threshold
    if background >= 0:
        classes = arange(scores.shape[1]).reshape([1, -1, 1])
        allowed = allowed & (classes != background)
    worst = e.where(allowed, scores, -math.inf)
    count = whole(e.maximum(allowed.astype("int64").sum(-1).max(), 1))
    if most >= 0:
        count = min(count, most) if isinstance(count, int) else most
        count = min(count, scores.shape[-1])
    places = argsort(worst, -1, descending=True, stable=True)[:, :, :count]
    best = take_along_axis(worst, places, -1)
    return places, best, best > -math.inf


def each_row(function, rows, like):
    """`function` of row k of `rows` and of `like`, for each k, in the shape of `like`."""

    def iteration(k, found):
        row = function(rows[k], like[k]).unsqueeze(0)
        return [k + 1, indexing.put(found, k.reshape([1]), row, axis=0)]

    begin = [to_tensor(0, "int64"), zeros(like.shape, like.dtype)]
    return while_loop(lambda k, found: k < rows.shape[0], iteration, begin)[1]


def corners_of(boxes, places):
    """The boxes at places [N, C, k]: [N, C, k, 4]."""
    boxes = boxes.unsqueeze(1) if boxes.ndim == 3 else boxes
    index = places.unsqueeze(-1).expand([*places.shape, 4])
    return take_along_axis(boxes.expand([*places.shape[:2], *boxes.shape[2:]]), index, 2)


def detections(corners, places, scores, kept, most: int, count: int, by_class: bool) -> tuple:
    """(label, score, box) [n, 6] of what is kept, the places [n, 1] in all boxes, n of each image.

    Of an image the `most` best stay (all if negative), by class and then by score, or by score.
    """
    n, classes, k = kept.shape
    flat = e.where(kept, scores, -math.inf).reshape([n, classes * k])
    order = argsort(flat, -1, descending=True, stable=True)
    best = take_along_axis(flat, order, -1) > -math.inf
    if most >= 0:
        best = best & (arange(classes * k) < most)
    if by_class:
        best = take_along_axis(best.astype("int64"), argsort(order, -1), -1) > 0
        order = arange(classes * k).unsqueeze(0).expand([n, classes * k])
    which = nonzero(best)
    image, place = which[:, 0], order[best]
    at = image * (classes * k) + place
    score, box = scores.reshape([-1])[at], corners.reshape([-1, 4])[at]
    label = (place // k).astype(score.dtype)
    rows = concat([label.unsqueeze(1), score.unsqueeze(1), box], 1)
    index = (image * count + places.reshape([-1])[at]).astype("int32").unsqueeze(1)
    return rows, index, best.astype("int32").sum(-1).astype("int32")


def multiclass_nms3(
    bboxes, scores, rois_num=None, score_threshold=0.0, nms_top_k=-1, keep_top_k=-1,
    nms_threshold=0.3, normalized=True, nms_eta=1.0, background_label=-1,
):  # fmt: skip
    """Non-maximum suppression in each image and class: rows (label, score, x1, y1, x2, y2).

    bboxes [N, M, 4] and scores [N, C, M]; or, with `rois_num` [N] boxes of each image, bboxes
    [R, C, 4] and scores [R, C], where box r of class c has the place r · C + c. In each class the
    `nms_top_k` best above `score_threshold` count; a box that a better one overlaps by more than
    `nms_threshold` goes; an image keeps `keep_top_k`. Returns rows [n, 6] by image, class and score
    (with `rois_num`, place), their places [n, 1] among all boxes, and how many each image has.
    Source: Paddle `paddle._C_ops.multiclass_nms3`, which detectors call.

    >>> boxes = paddle.to_tensor([[[0.0, 0, 4, 4], [0, 0, 4, 3], [5, 5, 9, 9]]])
    >>> scores = paddle.to_tensor([[[0.5, 0.75, 0.25]]])
    >>> rows, index, count = paddle._C_ops.multiclass_nms3(
    ...     boxes, scores, None, 0.3, 100, 100, 0.5, True, 1.0, -1)
    >>> rows.tolist(), index.tolist(), count.tolist()
    ([[0.0, 0.75, 0.0, 0.0, 4.0, 3.0]], [[1]], [1])
    """
    refuse_eta("multiclass_nms3", "nms_eta", nms_eta)
    if bboxes.shape[-1] != 4:
        raise value_error(f"multiclass_nms3 of {bboxes.spec}", "boxes of four numbers")

    def fields_of_candidate(box, candidates):
        hides = triu(overlaps(box, 0.0 if normalized else 1.0), 1) > nms_threshold
        return visible(candidates, hides)

    def suppress(boxes, scores) -> tuple:
        places, best, allowed = rank(boxes, scores, score_threshold, nms_top_k, background_label)
        corners = corners_of(boxes, places)
        n, classes, k = places.shape
        boxes_of_rows = corners.reshape([n * classes, k, 4])
        kept = each_row(fields_of_candidate, boxes_of_rows, allowed.reshape([n * classes, k]))
        kept = kept.reshape([n, classes, k])
        return detections(corners, places, best, kept, keep_top_k, boxes.shape[-2], True)

    with no_grad():
        if scores.ndim == 3:
            return suppress(bboxes, scores)
        begin, images = 0, []
        for count in rois_num.tolist():
            box = bboxes[begin : begin + count].transpose([1, 0, 2]).unsqueeze(0)
            rows, index, left = suppress(box, scores[begin : begin + count].T.unsqueeze(0))
            label = rows[:, :1].astype("int32")
            order = argsort((label * count + index)[:, 0])
            index = (index + begin) * scores.shape[1] + label
            images.append((rows[order], index[order], left))
            begin += count
        return tuple(concat(parts) for parts in zip(*images, strict=True))


def refuse_eta(what: str, name: str, eta: float) -> None:
    """Raise ValueError for a threshold that changes from box to box."""
    if eta != 1.0:
        raise value_error(f"{what}({name}={eta}): a threshold that shrinks", f"{name}=1.0")


def matrix_nms(
    bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian=False,
    gaussian_sigma=2.0, background_label=0, normalized=True, return_index=False,
    return_rois_num=True, name=None,
):  # fmt: skip
    """Suppression at once: scores decay by how much better boxes of their class overlap them.

    bboxes [N, M, 4], scores [N, C, M]. The `nms_top_k` best of a class above `score_threshold`
    count; those stay whose score is above `post_threshold` then, `keep_top_k` of an image. Returns
    rows (label, score, x1, y1, x2, y2) by image and score, how many each image has (None without
    `return_rois_num`) and, with `return_index`, their places among all boxes. Source: Wang et al.,
    "SOLOv2", 2020.

    >>> boxes = paddle.to_tensor([[[0.0, 0, 4, 4], [0, 0, 4, 2], [5, 5, 9, 9]]])
    >>> scores = paddle.to_tensor([[[0.5, 1.0, 0.25]]])
    >>> rows, count = paddle.vision.ops.matrix_nms(
    ...     boxes, scores, 0.1, 0.1, -1, -1, background_label=-1)
    >>> rows.tolist()[1], count.tolist()
    ([0.0, 0.25, 0.0, 0.0, 4.0, 4.0], [3])
    """
    more = 0.0 if normalized else 1.0

    def decay_scores(box, score):
        shared = triu(overlaps(box, more), 1)
        most = shared.max(0).unsqueeze(1)  # of the better one, with those better still
        if use_gaussian:
            decay = exp((most * most - shared * shared) * gaussian_sigma)
        else:
            decay = (1 - shared) / (1 - most)
        better = triu(full(shared.shape, True, "bool"), 1)
        return score * e.where(better, decay, 1.0).min(0)

    with no_grad():
        options = score_threshold, nms_top_k, background_label
        places, best, allowed = rank(bboxes, scores, *options)
        corners = corners_of(bboxes, places)
        n, classes, k = places.shape
        best = e.where(allowed, best, 0.0)
        boxes_of_rows = corners.reshape([n * classes, k, 4])
        best = each_row(decay_scores, boxes_of_rows, best.reshape([n * classes, k]))
        best = best.reshape([n, classes, k])
        kept = allowed & (best > post_threshold)
        detected = detections(corners, places, best, kept, keep_top_k, bboxes.shape[1], False)
    rows, index, count = detected
    results = rows, count if return_rois_num else None
    return (*results, index) if return_index else results


__all__ = ["matrix_nms", "multiclass_nms3"]
