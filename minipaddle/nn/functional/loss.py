"""Losses of two classes, of margins between classes, of distributions and sets."""

from ...core.prelude import FLOATS, as_operator, current, e, same_shape, sigmoid, value_error
from ...ops import labels
from ...ops.activations import log_sigmoid
from .classification import check_reduction, class_weight, cross_entropy, reduce, require_weight
from .input import one_hot

# ---- two classes -----------------------------------------------------------------------------


def require_same_shape(name: str, input, label) -> None:
    if not same_shape(input.spec.shape, label.spec.shape):
        raise value_error(f"{name} was given {input.spec} and labels {label.spec}", "equal shapes")


def require_probabilities(name: str, p) -> None:
    """Only where values are at hand: not in a program that is traced."""
    if not current.top.tracing and not current.top.by_hand and not ((p >= 0) & (p <= 1)).all():
        raise value_error(
            f"{name} was given {p.spec} from {p.min().item():.4g} to {p.max().item():.4g}",
            "probabilities, from 0 to 1",
            hint="apply sigmoid, or give scores to binary_cross_entropy_with_logits",
        )


def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):
    """-(y log p + (1 - y) log(1 - p)), logarithms cut off at -100.

    Raises ValueError, when values are known (not in a program), where p is not from 0 to 1.

    >>> p, y = paddle.to_tensor([0.5]), paddle.to_tensor([1.0])
    >>> round(paddle.nn.functional.binary_cross_entropy(p, y).item(), 4)  # log 2
    0.6931
    """
    require_same_shape("binary_cross_entropy", input, label)
    require_probabilities("binary_cross_entropy", input)
    loss = labels.bernoulli_nll(input, label)
    loss = loss if weight is None else loss * weight
    return reduce("binary_cross_entropy", loss, reduction)


@as_operator("sigmoid_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    logit, label, weight=None, reduction="mean", pos_weight=None, name=None
):
    """Binary cross-entropy of sigmoid(logit), without its overflow.

    `pos_weight` weighs the positive labels.

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
    return reduce("binary_cross_entropy_with_logits", loss, reduction)


@as_operator("log_loss")
def log_loss(input, label, epsilon=1e-4, name=None):
    """-y log(p + ε) - (1 - y) log(1 - p + ε).

    >>> p, y = paddle.to_tensor([[0.5]]), paddle.to_tensor([[1.0]])
    >>> round(paddle.nn.functional.log_loss(p, y).item(), 3)  # log 2
    0.693
    """
    return -label * e.log(input + epsilon) - (1.0 - label) * e.log(1.0 - input + epsilon)


def sigmoid_focal_loss(
    logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum", name=None
):
    """α_t (1 - p_t)^γ times the binary cross-entropy: easy examples count less.

    Source: Lin et al. 2017.

    >>> x, y = paddle.to_tensor([[0.0]]), paddle.to_tensor([[1.0]])
    >>> round(paddle.nn.functional.sigmoid_focal_loss(x, y).item(), 4)  # log 2 / 16
    0.0433
    """
    p = sigmoid(logit)
    right = p * label + (1.0 - p) * (1.0 - label)
    loss = binary_cross_entropy_with_logits(logit, label, reduction="none") * (1.0 - right) ** gamma
    loss = loss * (alpha * label + (1.0 - alpha) * (1.0 - label))
    loss = loss if normalizer is None else loss / normalizer
    return reduce("sigmoid_focal_loss", loss, reduction)


def soft_margin_loss(input, label, reduction="mean", name=None):
    """log(1 + e^(-label · input)), for labels of -1 and 1.

    >>> x, y = paddle.to_tensor([0.0]), paddle.to_tensor([-1.0])
    >>> round(paddle.nn.functional.soft_margin_loss(x, y).item(), 4)  # log 2
    0.6931
    """
    require_same_shape("soft_margin_loss", input, label)
    input = input if input.spec.dtype in FLOATS else input.astype("float32")
    label = label.astype(input.spec.dtype)
    return reduce("soft_margin_loss", -log_sigmoid(label * input), reduction)


def multi_label_soft_margin_loss(input, label, weight=None, reduction="mean", name=None):
    """Binary cross-entropy of each class, averaged over the last axis: [N, C] gives [N].

    >>> x, y = paddle.zeros([1, 2]), paddle.to_tensor([[1.0, 0.0]])
    >>> round(paddle.nn.functional.multi_label_soft_margin_loss(x, y).item(), 4)  # log 2
    0.6931
    """
    require_same_shape("multi_label_soft_margin_loss", input, label)
    loss = -(label * log_sigmoid(input) + (1.0 - label) * log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduce("multi_label_soft_margin_loss", loss.mean(axis=-1), reduction)


# ---- distributions and sets ------------------------------------------------------------------


def kl_div(input, label, reduction="mean", log_target=False, name=None):
    """label · (log label - input), for log-probabilities as input; 0 where the label is 0.

    With `log_target` the label is log-probabilities too; `batchmean` divides the sum by the first
    dimension.

    >>> p = paddle.to_tensor([0.5, 0.5])
    >>> paddle.nn.functional.kl_div(p.log(), p).item()
    0.0
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
    return reduce("kl_div", loss, reduction)


def dice_loss(input, label, epsilon=1e-5, name=None):
    """1 - 2 |A ∩ B| / (|A| + |B|), for probabilities [N, ..., C] and class numbers [N, ..., 1].

    Source: Milletari et al. 2016.

    >>> p, label = paddle.to_tensor([[0.0, 1.0]]), paddle.to_tensor([[1]])
    >>> round(paddle.nn.functional.dice_loss(p, label).item(), 4)
    0.0
    """
    label = one_hot(label.squeeze(-1), input.spec.shape[-1])
    axes = list(range(1, input.spec.ndim))
    both = (input * label).sum(axis=axes)
    total = input.sum(axis=axes) + label.sum(axis=axes)
    return (1.0 - 2.0 * both / (total + epsilon)).mean()


def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """Each anchor [N, D] should be nearest to the positives [N, D] of its own label [N].

    Source: Sohn 2016.

    >>> x, labels = paddle.zeros([2, 3]), paddle.to_tensor([0, 1])
    >>> round(paddle.nn.functional.npair_loss(x, x, labels).item(), 4)  # log 2
    0.6931
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

    >>> x, label = paddle.to_tensor([[1.0, 0.5]]), paddle.to_tensor([0])
    >>> paddle.nn.functional.multi_margin_loss(x, label).item()
    0.25
    """
    rows, classes = input.spec.shape
    right = labels.pick(input, label, ignore_index=-1)
    over = e.maximum(margin - right.reshape([rows, 1]) + input, 0.0)
    over = over if p == 1 else over**p
    if weight is not None:
        require_weight("multi_margin_loss", weight, classes)
        over = over * class_weight(weight, label, -1).reshape([rows, 1])
    wrong = 1.0 - labels.one_hot(label, classes=classes, dtype=input.spec.dtype)
    loss = (over * wrong).sum(axis=1) / classes
    return reduce("multi_margin_loss", loss, reduction)


def multi_label_margin_loss(input, label, reduction="mean", name=None):
    """Σ max(0, 1 - x[right] + x[wrong]) / C: input [N, C] and label [N, L] give [N].

    Right are the classes that `label` lists up to the first -1, wrong all others.

    >>> x, label = paddle.to_tensor([[1.0, 0.5]]), paddle.to_tensor([[0, -1]])
    >>> paddle.nn.functional.multi_label_margin_loss(x, label).item()
    0.25
    """
    classes, dtype = input.spec.shape[1], input.spec.dtype
    listed = (label != -1).astype(dtype).cumprod(1)
    safe = e.where(listed > 0, label, 0)
    hot = labels.one_hot(safe, classes=classes, dtype=dtype) * listed.unsqueeze(2)
    wrong = 1.0 - hot.max(axis=1)
    right = input.take_along_axis(safe, 1).unsqueeze(2)
    over = e.maximum(1.0 - right + input.unsqueeze(1), 0.0) * listed.unsqueeze(2)
    loss = (over * wrong.unsqueeze(1)).sum(axis=[1, 2]) / classes
    return reduce("multi_label_margin_loss", loss, reduction)


__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "dice_loss", "kl_div", "log_loss",
    "multi_label_margin_loss", "multi_label_soft_margin_loss", "multi_margin_loss", "npair_loss",
    "sigmoid_focal_loss", "soft_margin_loss",
]  # fmt: skip
