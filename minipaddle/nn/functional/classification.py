"""Cross-entropy with one of several classes, and how losses are reduced."""

import math
import warnings

from ...core.checks import require_one_of
from ...core.prelude import (
    FLOATS,
    as_operator,
    current,
    e,
    indexing,
    normalize_axis,
    same_shape,
    value_error,
)  # fmt: skip
from ...engine.ops import nn as ops
from ...ops.labels import mean_of_valid, pick
from .activation import log_softmax, softmax
from .common import label_smooth
from .input import one_hot

__all__ = ["cross_entropy", "nll_loss", "softmax_with_cross_entropy"]

# ---- reductions ------------------------------------------------------------------------------


def check_reduction(name: str, reduction: str, *more: str) -> None:
    require_one_of(name, ("mean", "sum", "none", *more), reduction=reduction)


def reduce(name: str, loss, reduction: str):
    """The losses as they are, their sum, or their mean."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check_reduction(name, reduction)
    return loss


def average_by_weight(loss, weight):
    """Σ loss / Σ weight, for losses that already carry their weights; 0 if all weights are."""
    total = weight.sum()
    return loss.sum() / e.where(total == 0, 1.0, total)


# ---- cross-entropy ---------------------------------------------------------------------------


@as_operator("cross_entropy")
def cross_entropy(
    input, label, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1,
    use_softmax=True, label_smoothing=0.0, name=None,
):  # fmt: skip
    """-log softmax(input) at the label, along `axis`.

    `label` holds class numbers, of input's shape without `axis` (or with 1 there); or, with
    `soft_label`, probabilities of input's shape. `weight` [classes] weighs the classes. Labels
    equal to `ignore_index` have no loss; the mean leaves them out if there are weights or the index
    is not negative, and counts them as 0 otherwise, as in Paddle. With `use_softmax=False` the
    input is probabilities already.

    >>> logits, label = paddle.zeros([2, 4]), paddle.to_tensor([1, 3])
    >>> round(paddle.nn.functional.cross_entropy(logits, label).item(), 4)  # log 4
    1.3863
    """
    check_reduction("cross_entropy", reduction)
    last = input.spec.ndim - 1
    axis = normalize_axis(axis, last + 1)
    shape = label.spec.shape
    if len(shape) not in (last, last + 1):
        raise value_error(
            f"cross_entropy of {input.spec} was given labels {label.spec}",
            f"{last} dimensions of class numbers (or {last + 1}, one of size 1), or "
            "soft labels of the input's shape",
        )
    if axis != last:
        input = input.moveaxis(axis, last)
        label = label.moveaxis(axis, last) if len(shape) == last + 1 else label
    if not (soft_label or label_smoothing):
        label = class_numbers(label, last)
        return hard_cross_entropy(input, label, weight, ignore_index, reduction, use_softmax, shape)
    if not soft_label:
        label = one_hot(class_numbers(label, last), input.spec.shape[-1]).astype(input.spec.dtype)
    label = label_smooth(label, epsilon=label_smoothing) if label_smoothing else label
    loss, weight = soft_cross_entropy(input, label, weight, use_softmax)
    loss = loss.moveaxis(last, axis) if axis != last else loss
    if reduction == "mean" and weight is not None:
        return average_by_weight(loss, weight)
    return reduce("cross_entropy", loss, reduction)


def class_numbers(label, ndim: int):
    """Labels as whole numbers of `ndim` dimensions; a last axis of size 1 goes."""
    if label.spec.ndim > ndim:
        label = label.squeeze(-1)
    if label.spec.dtype in FLOATS:
        warnings.warn(
            f"cross_entropy was given labels {label.spec}: class numbers are whole numbers, a "
            'fraction is cut off; give label.astype("int64"), or soft_label=True for probabilities',
            stacklevel=3,
        )
    return label if label.spec.dtype.kind in "iu" else label.astype("int64")


def soft_cross_entropy(input, label, weight, use_softmax: bool):
    """(-Σ label · log p along the last axis, the weight of each row or None)."""
    log_p = log_softmax(input) if use_softmax else e.log(input)
    log_p = e.where((label == 0) & (log_p == -math.inf), 0.0, log_p)  # 0 · log 0 is 0
    loss = -(label * log_p).sum(axis=-1, keepdim=True)
    if weight is None:
        return loss, None
    row_weight = (label * weight).sum(axis=-1, keepdim=True)
    return loss * row_weight, row_weight


def hard_cross_entropy(input, label, weight, ignore_index, reduction, use_softmax, shape):
    """Cross-entropy of class numbers along the last axis; without a reduction the result has the
    shape of the labels.
    """
    counted = "valid" if ignore_index >= 0 else "all"
    if use_softmax:
        mean = counted if reduction == "mean" and weight is None else None
        attrs = {"ignore_index": ignore_index, "mean": mean}
        loss = current.top.apply(ops.cross_entropy, (input, label), attrs)
        if mean:
            return loss
    else:
        loss = -pick(e.log(input), label, ignore_index=ignore_index)
    options = label, weight, input.spec.shape[-1], ignore_index
    loss = weigh_and_reduce("cross_entropy", loss, *options, reduction, counted)
    same = reduction != "none" or loss.spec.shape == shape
    return loss if same else loss.reshape(list(shape))


def weigh_and_reduce(name, loss, label, weight, classes, ignore_index, reduction, counted="valid"):
    """Losses of class numbers, weighed by class; the mean counts all labels or the valid ones."""
    if weight is not None:
        require_weight(name, weight, classes)
        row_weight = class_weight(weight, label, ignore_index)
        loss = loss * row_weight
        if reduction == "mean":
            return average_by_weight(loss, row_weight)
    elif reduction == "mean" and counted == "valid":
        return mean_of_valid(loss, label, ignore_index=ignore_index)
    return reduce(name, loss, reduction)


def require_weight(name: str, weight, classes: int) -> None:
    if not same_shape(weight.spec.shape, (classes,)):
        raise value_error(
            f"{name} was given weights of {weight.spec}", f"[{classes}], one per class"
        )


def class_weight(weight, label, ignore_index):
    """The weight of each label's class; 0 for ignored labels."""
    counts = label != ignore_index
    weights = indexing.take(weight, e.where(counts, label, 0), axis=0)
    return weights * counts.astype(weight.spec.dtype)


def softmax_with_cross_entropy(
    logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
    return_softmax=False, axis=-1,
):  # fmt: skip
    """Unreduced cross-entropy with 1 left at `axis`; with `return_softmax` also the softmax.

    >>> x, label = paddle.zeros([3, 4]), paddle.to_tensor([[0], [1], [3]])
    >>> paddle.nn.functional.softmax_with_cross_entropy(x, label).shape
    [3, 1]
    """
    loss = cross_entropy(
        logits, label, None, ignore_index, "none", soft_label=soft_label, axis=axis
    )
    if loss.spec.ndim < logits.spec.ndim:
        loss = loss.unsqueeze(axis)
    return (loss, softmax(logits, axis)) if return_softmax else loss


@as_operator("nll_loss")
def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None):
    """-input at the label: input [N, C] or [N, C, ...] holds log-probabilities, classes on axis 1.

    Labels are [N] or [N, ...], or have a 1 where input has its classes.

    >>> log_p, label = paddle.to_tensor([[-1.0, -2.0]]), paddle.to_tensor([1])
    >>> paddle.nn.functional.nll_loss(log_p, label).item()
    2.0
    """
    check_reduction("nll_loss", reduction)
    if input.spec.ndim < 2:
        raise value_error(f"nll_loss was given {input.spec}", "[N, C] or [N, C, ...]")
    classes = input.spec.shape[1]
    if input.spec.ndim > 2:
        input = input.moveaxis(1, -1)
    if label.spec.ndim == input.spec.ndim and label.spec.shape[1] == 1:
        label = label.squeeze(1)
    loss = -pick(input, label, ignore_index=ignore_index)
    return weigh_and_reduce("nll_loss", loss, label, weight, classes, ignore_index, reduction)
