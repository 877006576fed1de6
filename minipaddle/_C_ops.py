"""Operators of Paddle's C++ that programs call by hand: positional, in the order of C++.

Only the detectors' are here; the public functions compute the same. Source: Paddle `paddle._C_ops`.
"""

from .vision import detection as _detection
from .vision.detection import multiclass_nms3


def matrix_nms(
    bboxes, scores, score_threshold, nms_top_k, keep_top_k, post_threshold,
    use_gaussian=False, gaussian_sigma=2.0, background_label=0, normalized=True,
):  # fmt: skip
    """(rows, places, how many of each image) of `paddle.vision.ops.matrix_nms`."""
    rows, count, index = _detection.matrix_nms(
        bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian,
        gaussian_sigma, background_label, normalized, return_index=True,
    )  # fmt: skip
    return rows, index, count
