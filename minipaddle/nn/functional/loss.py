"""Losses of classification: cross-entropies, their relatives, and how losses are reduced."""

from __future__ import annotations

from ...core.errors import teach
from ...core.interpreter import current
from ...core.spec import normalize_axis
from ...ops import elementwise as e
from ...ops import indexing
from ...ops import nn as ops
from ...ops.activation import log_sigmoid
from ...ops.special import sigmoid
from .activation import log_softmax, softmax
from .common import label_smooth
from .input import one_hot

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "dice_loss",
    "kl_div",
    "log_loss",
    "multi_label_margin_loss",
    "multi_label_soft_margin_loss",
    "multi_margin_loss",
    "nll_loss",
    "npair_loss",
    "sigmoid_focal_loss",
    "soft_margin_loss",
    "softmax_with_cross_entropy",
]

# ---- reductions ------------------------------------------------------------------------------


def check_reduction(name: str, reduction: str, *more: str) -> None:
    if reduction not in ("mean", "sum", "none", *more):
        expected = ", ".join(map(repr, ("mean", "sum", "none", *more)))
        raise ValueError(teach(f"{name} was given reduction={reduction!r}", expected=expected))


def reduced(name: str, loss, reduction: str):
    """The losses as they are, their sum, or their mean."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check_reduction(name, reduction)
    return loss


def weighted_mean(loss, weight):
    """Σ loss / Σ weight, for losses that already carry their weights; 0 if all weights are."""
    total = weight.sum()
    return loss.sum() / e.where(total == 0, 1.0, total)


# ---- cross-entropy ---------------------------------------------------------------------------


def cross_entropy(
    input,
    label,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    soft_label=False,
    axis=-1,
    use_softmax=True,
    label_smoothing=0.0,
    name=None,
):
    """-log softmax(input) at the label, along `axis`.

    `label` holds class numbers, of input's shape without `axis` (or with 1 there); or, with
    `soft_label`, probabilities of input's shape. `weight` [classes] weighs the classes. Labels
    equal to `ignore_index` have no loss; the mean leaves them out if there are weights or the
    index is not negative, and counts them as 0 otherwise, as in Paddle. With `use_softmax=False`
    the input is probabilities already. Source: Paddle API `paddle.nn.functional.cross_entropy`.

    >>> import minipaddle as paddle
    >>> logits, label = paddle.zeros([2, 4]), paddle.to_tensor([1, 3])
    >>> round(paddle.nn.functional.cross_entropy(logits, label).item(), 4)  # log 4
    1.3863
    """
    check_reduction("cross_entropy", reduction)
    last = input.spec.ndim - 1
    axis = normalize_axis(axis, last + 1)
    shape = label.spec.shape
    if len(shape) not in (last, last + 1):
        raise ValueError(
            teach(
                f"cross_entropy of {input.spec} was given labels {label.spec}",
                expected=f"{last} dimensions of class numbers (or {last + 1}, one of size 1), or "
                "soft labels of the input's shape",
            )
        )
    if axis != last:
        input = input.moveaxis(axis, last)
        label = label.moveaxis(axis, last) if len(shape) == last + 1 else label
    if soft_label or label_smoothing:
        if not soft_label:
            label = one_hot(class_numbers(label, last), input.spec.shape[-1])
            label = label.astype(input.spec.dtype)
        if label_smoothing:
            label = label_smooth(label, epsilon=label_smoothing)
        loss, weight = soft_cross_entropy(input, label, weight, use_softmax)
        loss = loss.moveaxis(last, axis) if axis != last else loss
        if reduction == "mean" and weight is not None:
            return weighted_mean(loss, weight)
        return reduced("cross_entropy", loss, reduction)
    label = class_numbers(label, last)
    return hard_cross_entropy(input, label, weight, ignore_index, reduction, use_softmax, shape)


def class_numbers(label, ndim: int):
    """Labels as whole numbers of `ndim` dimensions; a last axis of size 1 goes."""
    if label.spec.ndim > ndim:
        label = label.squeeze(-1)
    return label if label.spec.dtype.kind in "iu" else label.astype("int64")


def soft_cross_entropy(input, label, weight, use_softmax: bool):
    """(-Σ label · log p along the last axis, the weight of each row or None)."""
    log_p = log_softmax(input) if use_softmax else e.log(input)
    loss = -(label * log_p).sum(axis=-1, keepdim=True)
    if weight is None:
        return loss, None
    row_weight = (label * weight).sum(axis=-1, keepdim=True)
    return loss * row_weight, row_weight


def hard_cross_entropy(input, label, weight, ignore_index, reduction, use_softmax, shape):
    """Cross-entropy of class numbers along the last axis; unreduced it has the given shape."""
    counted = "valid" if ignore_index >= 0 else "all"
    if use_softmax:
        mean = counted if reduction == "mean" and weight is None else None
        attrs = {"ignore_index": ignore_index, "mean": mean}
        loss = current.top.apply(ops.cross_entropy, (input, label), attrs)
        if mean:
            return loss
    else:
        loss = -ops.pick(e.log(input), label, ignore_index=ignore_index)
    if weight is not None:
        require_weight("cross_entropy", weight, input.spec.shape[-1])
        row_weight = class_weight(weight, label, ignore_index)
        loss = loss * row_weight
        if reduction == "mean":
            return weighted_mean(loss, row_weight)
    elif reduction == "mean" and counted == "valid":
        return ops.mean_of_valid(loss, label, ignore_index=ignore_index)
    if reduction != "none":
        return reduced("cross_entropy", loss, reduction)
    return loss if loss.spec.shape == shape else loss.reshape(list(shape))


def require_weight(name: str, weight, classes: int) -> None:
    if weight.spec.shape != (classes,):
        raise ValueError(
            teach(
                f"{name} was given weights of {weight.spec}", expected=f"[{classes}], one per class"
            )
        )


def class_weight(weight, label, ignore_index):
    """The weight of each label's class; 0 for ignored labels."""
    counts = label != ignore_index
    found = indexing.take(weight, e.where(counts, label, 0), axis=0)
    return found * counts.astype(weight.spec.dtype)


def softmax_with_cross_entropy(
    logits,
    label,
    soft_label=False,
    ignore_index=-100,
    numeric_stable_mode=True,
    return_softmax=False,
    axis=-1,
):
    """Unreduced cross-entropy with 1 left at `axis`; with `return_softmax` also the softmax.

    Source: Paddle API `paddle.nn.functional.softmax_with_cross_entropy`.
    """
    loss = cross_entropy(
        logits, label, None, ignore_index, "none", soft_label=soft_label, axis=axis
    )
    if loss.spec.ndim < logits.spec.ndim:
        loss = loss.unsqueeze(axis)
    return (loss, softmax(logits, axis)) if return_softmax else loss


def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None):
    """-input at the label: input [N, C] or [N, C, ...] holds log-probabilities, classes on axis 1.

    Source: Paddle API `paddle.nn.functional.nll_loss`.
    """
    check_reduction("nll_loss", reduction)
    if input.spec.ndim < 2:
        raise ValueError(
            teach(f"nll_loss was given {input.spec}", expected="[N, C] or [N, C, ...]")
        )
    classes = input.spec.shape[1]
    if input.spec.ndim > 2:
        input = input.moveaxis(1, -1)
    loss = -ops.pick(input, label, ignore_index=ignore_index)
    if weight is None:
        if reduction == "mean":
            return ops.mean_of_valid(loss, label, ignore_index=ignore_index)
        return reduced("nll_loss", loss, reduction)
    require_weight("nll_loss", weight, classes)
    row_weight = class_weight(weight, label, ignore_index)
    loss = loss * row_weight
    return weighted_mean(loss, row_weight) if reduction == "mean" else reduced("", loss, reduction)


# ---- two classes -----------------------------------------------------------------------------


def require_same_shape(name: str, input, label) -> None:
    if input.spec.shape != label.spec.shape:
        raise ValueError(
            teach(f"{name} was given {input.spec} and labels {label.spec}", expected="equal shapes")
        )


def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):
    """-(y log p + (1 - y) log(1 - p)), logarithms cut off at -100.

    Source: Paddle API `paddle.nn.functional.binary_cross_entropy`.
    """
    require_same_shape("binary_cross_entropy", input, label)
    yes = e.maximum(e.log(input), -100.0)
    no = e.maximum(e.log(1.0 - input), -100.0)
    loss = -(label * yes + (1.0 - label) * no)
    loss = loss if weight is None else loss * weight
    return reduced("binary_cross_entropy", loss, reduction)


def binary_cross_entropy_with_logits(
    logit, label, weight=None, reduction="mean", pos_weight=None, name=None
):
    """Binary cross-entropy of sigmoid(logit), without its overflow.

    `pos_weight` weighs the positive labels. Source: Paddle API
    `paddle.nn.functional.binary_cross_entropy_with_logits`.

    >>> import minipaddle as paddle
    >>> x, y = paddle.to_tensor([0.0]), paddle.to_tensor([1.0])
    >>> round(paddle.nn.functional.binary_cross_entropy_with_logits(x, y).item(), 4)  # log 2
    0.6931
    """
    require_same_shape("binary_cross_entropy_with_logits", logit, label)
    positive = log_sigmoid(logit)
    if pos_weight is not None:
        positive = positive * (1.0 + (pos_weight - 1.0) * label)
    loss = (1.0 - label) * logit - positive
    loss = loss if weight is None else loss * weight
    return reduced("binary_cross_entropy_with_logits", loss, reduction)


def log_loss(input, label, epsilon=1e-4, name=None):
    """-y log(p + ε) - (1 - y) log(1 - p + ε). Source: Paddle API
    `paddle.nn.functional.log_loss`.
    """
    return -label * e.log(input + epsilon) - (1.0 - label) * e.log(1.0 - input + epsilon)


def sigmoid_focal_loss(
    logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum", name=None
):
    """α_t (1 - p_t)^γ times the binary cross-entropy: easy examples count less.

    Source: Paddle API `paddle.nn.functional.sigmoid_focal_loss`; Lin et al. 2017.
    """
    p = sigmoid(logit)
    right = p * label + (1.0 - p) * (1.0 - label)
    loss = binary_cross_entropy_with_logits(logit, label, reduction="none") * (1.0 - right) ** gamma
    loss = loss * (alpha * label + (1.0 - alpha) * (1.0 - label))
    loss = loss if normalizer is None else loss / normalizer
    return reduced("sigmoid_focal_loss", loss, reduction)


def soft_margin_loss(input, label, reduction="mean", name=None):
    """log(1 + e^(-label · input)), for labels of -1 and 1. Source: Paddle API
    `paddle.nn.functional.soft_margin_loss`.
    """
    require_same_shape("soft_margin_loss", input, label)
    return reduced("soft_margin_loss", -log_sigmoid(label * input), reduction)


def multi_label_soft_margin_loss(input, label, weight=None, reduction="mean", name=None):
    """Binary cross-entropy of each class, averaged over the last axis: [N, C] gives [N].

    Source: Paddle API `paddle.nn.functional.multi_label_soft_margin_loss`.
    """
    require_same_shape("multi_label_soft_margin_loss", input, label)
    loss = -(label * log_sigmoid(input) + (1.0 - label) * log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced("multi_label_soft_margin_loss", loss.mean(axis=-1), reduction)


# ---- distributions and sets ------------------------------------------------------------------


def kl_div(input, label, reduction="mean", log_target=False, name=None):
    """label · (log label - input), for log-probabilities as input; 0 where the label is 0.

    With `log_target` the label is log-probabilities too; `batchmean` divides the sum by the first
    dimension. Source: Paddle API `paddle.nn.functional.kl_div`.
    """
    check_reduction("kl_div", reduction, "batchmean")
    if log_target:
        loss = e.exp(label) * (label - input)
    else:
        positive = label > 0
        log_label = e.log(e.where(positive, label, 1.0))
        loss = e.where(positive, label * (log_label - input), 0.0)
    if reduction == "batchmean":
        return loss.sum() / loss.spec.shape[0]
    return reduced("kl_div", loss, reduction)


def dice_loss(input, label, epsilon=1e-5, name=None):
    """1 - 2 |A ∩ B| / (|A| + |B|), for probabilities [N, ..., C] and class numbers [N, ..., 1].

    Source: Paddle API `paddle.nn.functional.dice_loss`; Milletari et al. 2016.
    """
    label = one_hot(label.squeeze(-1), input.spec.shape[-1])
    axes = list(range(1, input.spec.ndim))
    both = (input * label).sum(axis=axes)
    total = input.sum(axis=axes) + label.sum(axis=axes)
    return (1.0 - 2.0 * both / (total + epsilon)).mean()


def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """Each anchor [N, D] should be nearest to the positives [N, D] of its own label [N].

    Source: Paddle API `paddle.nn.functional.npair_loss`; Sohn 2016.
    """
    rows = labels.spec.shape[0]
    same = labels.reshape([rows, 1]) == labels.reshape([1, rows])
    same = same.astype(anchor.spec.dtype)
    target = same / same.sum(axis=1, keepdim=True)
    size = e.square(anchor).sum() + e.square(positive).sum()
    similarity = anchor @ positive.transpose([1, 0])
    return cross_entropy(similarity, target, soft_label=True) + size * (0.25 * l2_reg / rows)


def multi_margin_loss(input, label, p=1, margin=1.0, weight=None, reduction="mean", name=None):
    """Mean over the wrong classes of max(0, margin - x[label] + x[class])^p: [N, C] gives [N].

    Source: Paddle API `paddle.nn.functional.multi_margin_loss`.
    """
    rows, classes = input.spec.shape
    right = ops.pick(input, label, ignore_index=-1)
    over = e.maximum(margin - right.reshape([rows, 1]) + input, 0.0)
    over = over if p == 1 else over**p
    if weight is not None:
        require_weight("multi_margin_loss", weight, classes)
        over = over * class_weight(weight, label, -1).reshape([rows, 1])
    wrong = 1.0 - ops.one_hot(label, classes=classes, dtype=input.spec.dtype)
    loss = (over * wrong).sum(axis=1) / classes
    return reduced("multi_margin_loss", loss, reduction)


def multi_label_margin_loss(input, label, reduction="mean", name=None):
    """Σ max(0, 1 - x[right] + x[wrong]) / C: input [N, C] and label [N, L] give [N].

    Right are the classes that `label` lists up to the first -1, wrong all others.

    Source: Paddle API `paddle.nn.functional.multi_label_margin_loss`.
    """
    classes, dtype = input.spec.shape[1], input.spec.dtype
    listed = (label != -1).astype(dtype).cumprod(1)
    safe = e.where(listed > 0, label, 0)
    hot = ops.one_hot(safe, classes=classes, dtype=dtype) * listed.unsqueeze(2)
    wrong = 1.0 - hot.max(axis=1)
    right = input.take_along_axis(safe, 1).unsqueeze(2)
    over = e.maximum(1.0 - right + input.unsqueeze(1), 0.0) * listed.unsqueeze(2)
    loss = (over * wrong.unsqueeze(1)).sum(axis=[1, 2]) / classes
    return reduced("multi_label_margin_loss", loss, reduction)
