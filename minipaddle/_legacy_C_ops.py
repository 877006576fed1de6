"""Operators as Paddle called them before 2.4: tensors, then names and values in turn.

    _legacy_C_ops.matrix_nms(boxes, scores, "nms_top_k", 100, "keep_top_k", 50, …)

Source: Paddle `paddle._legacy_C_ops`.
"""

from functools import wraps as _wraps

from . import _C_ops
from .vision import ops as _ops


def _take_pairs(function):
    """The function, called with tensors and then pairs of a name and a value."""

    @_wraps(function)
    def call(*args):
        begin = next((k for k, x in enumerate(args) if isinstance(x, str)), len(args))
        return function(*args[:begin], **dict(zip(args[begin::2], args[begin + 1 :: 2])))

    return call


@_take_pairs
def distribute_fpn_proposals(fpn_rois, rois_num, levels, counted, **attributes):
    """`paddle.vision.ops.distribute_fpn_proposals`; the lengths of its lists follow from levels."""
    return _ops.distribute_fpn_proposals(fpn_rois, rois_num=rois_num, **attributes)


@_take_pairs
def generate_proposals_v2(
    scores, deltas, size, anchors, variances, *, pre_nms_topN, post_nms_topN, **attributes
):  # fmt: skip
    """`paddle.vision.ops.generate_proposals`."""
    return _ops.generate_proposals(
        scores, deltas, size, anchors, variances, pre_nms_topN, post_nms_topN,
        return_rois_num=True, **attributes,
    )  # fmt: skip


@_take_pairs
def prior_box(input, image, *, variances, step_w=0.0, step_h=0.0, **attributes):
    """`paddle.vision.ops.prior_box`."""
    steps = [step_w, step_h]
    return _ops.prior_box(input, image, variance=variances, steps=steps, **attributes)


matrix_nms, multiclass_nms3 = map(_take_pairs, (_C_ops.matrix_nms, _C_ops.multiclass_nms3))
