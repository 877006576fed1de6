"""Losses of regression and of distances between embeddings."""

import math
import warnings
from functools import partial
from operator import sub

from ...core.prelude import as_operator, e
from ...ops.labels import huber
from .classification import check_reduction, reduce
from .distance import cosine_similarity, pairwise_distance


def difference(name: str, input, label, compare=sub):
    """`compare` of the two; warns where both are repeated: [n, 1] and [n] make n · n losses."""
    d = compare(input, label)
    size = d.spec.size
    if size != input.spec.size and size != getattr(label, "spec", d.spec).size:
        warnings.warn(
            f"{name} was given {input.spec} and a label {label.spec}: all pairs of them are "
            "compared; give both one shape, as in input.squeeze(-1)",
            stacklevel=3,
        )
    return d


def square_error_cost(input, label):
    """(input - label)².

    >>> paddle.nn.functional.square_error_cost(paddle.ones([1]), paddle.full([1], 3.0)).tolist()
    [4.0]
    """
    return e.square(difference("square_error_cost", input, label))


def mse_loss(input, label, reduction="mean", name=None):
    """(input - label)².

    >>> paddle.nn.functional.mse_loss(paddle.zeros([2]), paddle.ones([2])).item()
    1.0
    """
    return reduce("mse_loss", e.square(difference("mse_loss", input, label)), reduction)


def l1_loss(input, label, reduction="mean", name=None):
    """|input - label|.

    >>> paddle.nn.functional.l1_loss(paddle.zeros([2]), paddle.full([2], 3.0)).item()
    3.0
    """
    return reduce("l1_loss", e.abs(difference("l1_loss", input, label)), reduction)


@as_operator("huber_loss")
def smooth_l1_loss(input, label, reduction="mean", delta=1.0, is_huber=True, name=None):
    """½ d² where |d| < delta, delta (|d| - ½ delta) beyond; without `is_huber` divided by delta.

    Source: Huber 1964.

    >>> x, y = paddle.zeros([2]), paddle.to_tensor([0.5, 3.0])
    >>> paddle.nn.functional.smooth_l1_loss(x, y, reduction="none").tolist()
    [0.125, 2.5]
    """
    loss = difference("smooth_l1_loss", input, label, partial(huber, delta=float(delta)))
    return reduce("smooth_l1_loss", loss if is_huber else loss / delta, reduction)


def gaussian_nll_loss(
    input, label, variance, full=False, epsilon=1e-6, reduction="mean", name=None
):
    """½ (log v + (input - label)² / v), v being at least epsilon; `full` adds ½ log 2π.

    >>> x, y, v = paddle.zeros([1]), paddle.full([1], 2.0), paddle.ones([1])
    >>> paddle.nn.functional.gaussian_nll_loss(x, y, v).item()
    2.0
    """
    v = e.maximum(variance, epsilon)
    loss = 0.5 * (e.log(v) + e.square(input - label) / v)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return reduce("gaussian_nll_loss", loss, reduction)


def poisson_nll_loss(
    input, label, log_input=True, full=False, epsilon=1e-8, reduction="mean", name=None
):
    """e^input - label · input (or input - label · log input without `log_input`).

    `full` adds Stirling's formula for log label!.

    >>> paddle.nn.functional.poisson_nll_loss(paddle.zeros([1]), paddle.ones([1])).item()
    1.0
    """
    if log_input:
        loss = e.exp(input) - label * input
    else:
        loss = input - label * e.log(input + epsilon)
    if full:
        y = e.where(label > 1, label, 1.0)
        stirling = y * e.log(y) - y + 0.5 * e.log(2 * math.pi * y)
        loss = loss + e.where(label > 1, stirling, 0.0)
    return reduce("poisson_nll_loss", loss, reduction)


def margin_ranking_loss(input, other, label, margin=0.0, reduction="mean", name=None):
    """max(0, margin - label · (input - other)), for labels of -1 and 1.

    >>> x, y, label = (paddle.to_tensor([v]) for v in (1.0, 3.0, 1.0))
    >>> paddle.nn.functional.margin_ranking_loss(x, y, label).item()
    2.0
    """
    loss = e.maximum(margin - label * (input - other), 0.0)
    return reduce("margin_ranking_loss", loss, reduction)


def hinge_embedding_loss(input, label, margin=1.0, reduction="mean", name=None):
    """input where the label is 1, max(0, margin - input) where it is -1.

    >>> x, label = paddle.to_tensor([0.5, 0.25]), paddle.to_tensor([1, -1])
    >>> paddle.nn.functional.hinge_embedding_loss(x, label, reduction="none").tolist()
    [0.5, 0.75]
    """
    away = e.where(label == -1, e.maximum(margin - input, 0.0), 0.0)
    return reduce("hinge_embedding_loss", e.where(label == 1, input, away), reduction)


def cosine_embedding_loss(input1, input2, label, margin=0, reduction="mean", name=None):
    """1 - cos where the label is 1, max(0, cos - margin) where it is -1: [N, D] gives [N].

    >>> x, label = paddle.to_tensor([[1.0, 0.0]]), paddle.to_tensor([-1])
    >>> paddle.nn.functional.cosine_embedding_loss(x, x, label).item()
    1.0
    """
    check_reduction("cosine_embedding_loss", reduction)
    cos = cosine_similarity(input1, input2, axis=-1, eps=1e-12**0.5)
    loss = e.where(label == 1, 1.0 - cos, e.maximum(cos - margin, 0.0))
    return reduce("cosine_embedding_loss", loss, reduction)


@as_operator("triplet_margin_loss")
def triplet_margin_loss(
    input, positive, negative, margin=1.0, p=2.0, epsilon=1e-6, swap=False, reduction="mean",
    name=None,
):  # fmt: skip
    """max(0, d(input, positive) - d(input, negative) + margin), d being the p-norm distance.

    With `swap` the nearer of input and positive stands for the input in the second distance.
    Source: Balntas et al. 2016.

    >>> x, far = paddle.to_tensor([[0.0]]), paddle.to_tensor([[9.0]])
    >>> paddle.nn.functional.triplet_margin_loss(x, x, far).item()
    0.0
    """

    def distance(x, y):
        return pairwise_distance(x, y, p, epsilon)

    return triplet_margin_with_distance_loss(
        input, positive, negative, distance, margin, swap, reduction
    )


def triplet_margin_with_distance_loss(
    input, positive, negative, distance_function=None, margin=1.0, swap=False, reduction="mean",
    name=None,
):  # fmt: skip
    """`triplet_margin_loss` for a distance of your own, a function of two tensors.

    >>> x, far = paddle.to_tensor([[0.0]]), paddle.to_tensor([[0.25]])
    >>> city = lambda a, b: (a - b).abs().sum(axis=-1)
    >>> paddle.nn.functional.triplet_margin_with_distance_loss(x, x, far, city).item()
    0.75
    """
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = e.minimum(far, distance(positive, negative))
    loss = e.maximum(near - far + margin, 0.0)
    return reduce("triplet_margin_loss", loss, reduction)


__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "l1_loss",
    "margin_ranking_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss", "square_error_cost",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip
