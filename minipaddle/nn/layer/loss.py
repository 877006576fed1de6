"""Losses as layers: each calls its function of `nn.functional` on (input, label, ...)."""

from __future__ import annotations

from .. import functional as F
from .functional import Functional

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class CrossEntropyLoss(Functional, function=F.cross_entropy, inputs=2):
    """-log softmax(input) at the label; see `functional.cross_entropy`.

    Source: Paddle API `paddle.nn.CrossEntropyLoss`.

    >>> import minipaddle as paddle
    >>> loss = paddle.nn.CrossEntropyLoss()
    >>> round(loss(paddle.zeros([2, 4]), paddle.to_tensor([1, 3])).item(), 4)
    1.3863
    """


class NLLLoss(Functional, function=F.nll_loss, inputs=2):
    """-input at the label, for log-probabilities. Source: Paddle API `paddle.nn.NLLLoss`.

    >>> import minipaddle as paddle
    >>> loss = paddle.nn.NLLLoss()
    >>> loss(paddle.to_tensor([[-1.0, -2.0]]), paddle.to_tensor([1])).item()
    2.0
    """


class BCELoss(Functional, function=F.binary_cross_entropy, inputs=2):
    """-(y log p + (1 - y) log(1 - p)). Source: Paddle API `paddle.nn.BCELoss`.

    >>> import minipaddle as paddle
    >>> round(paddle.nn.BCELoss()(paddle.full([1], 0.5), paddle.ones([1])).item(), 4)  # log 2
    0.6931
    """


class BCEWithLogitsLoss(Functional, function=F.binary_cross_entropy_with_logits, inputs=2):
    """Binary cross-entropy of sigmoid(logit). Source: Paddle API `paddle.nn.BCEWithLogitsLoss`.

    >>> import minipaddle as paddle
    >>> loss = paddle.nn.BCEWithLogitsLoss()
    >>> round(loss(paddle.zeros([1]), paddle.ones([1])).item(), 4)  # log 2
    0.6931
    """


class KLDivLoss(Functional, function=F.kl_div, inputs=2, fixed=("reduction", "log_target")):
    """label · (log label - input). Source: Paddle API `paddle.nn.KLDivLoss`.

    >>> import minipaddle as paddle
    >>> p = paddle.to_tensor([0.5, 0.5])
    >>> paddle.nn.KLDivLoss()(p.log(), p).item()
    0.0
    """


class MSELoss(Functional, function=F.mse_loss, inputs=2, fixed=("reduction",)):
    """(input - label)². Source: Paddle API `paddle.nn.MSELoss`.

    >>> import minipaddle as paddle
    >>> paddle.nn.MSELoss()(paddle.zeros([2]), paddle.full([2], 3.0)).item()
    9.0
    """


class L1Loss(Functional, function=F.l1_loss, inputs=2):
    """|input - label|. Source: Paddle API `paddle.nn.L1Loss`.

    >>> import minipaddle as paddle
    >>> paddle.nn.L1Loss()(paddle.zeros([2]), paddle.full([2], 3.0)).item()
    3.0
    """


class SmoothL1Loss(Functional, function=F.smooth_l1_loss, inputs=2):
    """½ d² where |d| is small, |d| beyond. Source: Paddle API `paddle.nn.SmoothL1Loss`.

    >>> import minipaddle as paddle
    >>> paddle.nn.SmoothL1Loss()(paddle.zeros([1]), paddle.full([1], 3.0)).item()
    2.5
    """


class GaussianNLLLoss(Functional, function=F.gaussian_nll_loss, inputs=3):
    """-log of a Gaussian's density. Source: Paddle API `paddle.nn.GaussianNLLLoss`.

    >>> import minipaddle as paddle
    >>> x, y, v = paddle.zeros([1]), paddle.full([1], 2.0), paddle.ones([1])
    >>> paddle.nn.GaussianNLLLoss()(x, y, v).item()
    2.0
    """


class PoissonNLLLoss(Functional, function=F.poisson_nll_loss, inputs=2):
    """-log of a Poisson probability. Source: Paddle API `paddle.nn.PoissonNLLLoss`.

    >>> import minipaddle as paddle
    >>> paddle.nn.PoissonNLLLoss()(paddle.zeros([1]), paddle.ones([1])).item()
    1.0
    """


class MarginRankingLoss(Functional, function=F.margin_ranking_loss, inputs=3):
    """max(0, margin - label · (input - other)). Source: Paddle API
    `paddle.nn.MarginRankingLoss`.

    >>> import minipaddle as paddle
    >>> x, y, label = (paddle.to_tensor([v]) for v in (1.0, 3.0, 1.0))
    >>> paddle.nn.MarginRankingLoss()(x, y, label).item()
    2.0
    """


class HingeEmbeddingLoss(Functional, function=F.hinge_embedding_loss, inputs=2):
    """input where the label is 1, max(0, margin - input) where it is -1.

    Source: Paddle API `paddle.nn.HingeEmbeddingLoss`.

    >>> import minipaddle as paddle
    >>> paddle.nn.HingeEmbeddingLoss()(paddle.ones([1]), paddle.to_tensor([1])).item()
    1.0
    """


class CosineEmbeddingLoss(Functional, function=F.cosine_embedding_loss, inputs=3):
    """1 - cos for pairs that belong together. Source: Paddle API
    `paddle.nn.CosineEmbeddingLoss`.

    >>> import minipaddle as paddle
    >>> x, label = paddle.to_tensor([[1.0, 0.0]]), paddle.to_tensor([-1])
    >>> paddle.nn.CosineEmbeddingLoss()(x, x, label).item()
    1.0
    """


class TripletMarginLoss(Functional, function=F.triplet_margin_loss, inputs=3):
    """max(0, d(input, positive) - d(input, negative) + margin). Source: Paddle API
    `paddle.nn.TripletMarginLoss`.

    >>> import minipaddle as paddle
    >>> x, far = paddle.to_tensor([[0.0]]), paddle.to_tensor([[9.0]])
    >>> paddle.nn.TripletMarginLoss()(x, x, far).item()
    0.0
    """


class TripletMarginWithDistanceLoss(
    Functional, function=F.triplet_margin_with_distance_loss, inputs=3
):
    """`TripletMarginLoss` for a distance of your own. Source: Paddle API
    `paddle.nn.TripletMarginWithDistanceLoss`.

    >>> import minipaddle as paddle
    >>> x, far = paddle.to_tensor([[0.0]]), paddle.to_tensor([[0.25]])
    >>> loss = paddle.nn.TripletMarginWithDistanceLoss(lambda a, b: (a - b).abs().sum(axis=-1))
    >>> loss(x, x, far).item()
    0.75
    """


class SoftMarginLoss(Functional, function=F.soft_margin_loss, inputs=2):
    """log(1 + e^(-label · input)). Source: Paddle API `paddle.nn.SoftMarginLoss`.

    >>> import minipaddle as paddle
    >>> loss = paddle.nn.SoftMarginLoss()
    >>> round(loss(paddle.zeros([1]), paddle.ones([1])).item(), 4)  # log 2
    0.6931
    """


class MultiLabelSoftMarginLoss(Functional, function=F.multi_label_soft_margin_loss, inputs=2):
    """Binary cross-entropy, averaged over the classes. Source: Paddle API
    `paddle.nn.MultiLabelSoftMarginLoss`.

    >>> import minipaddle as paddle
    >>> loss = paddle.nn.MultiLabelSoftMarginLoss()
    >>> round(loss(paddle.zeros([1, 2]), paddle.ones([1, 2])).item(), 4)  # log 2
    0.6931
    """


class MultiLabelMarginLoss(Functional, function=F.multi_label_margin_loss, inputs=2):
    """Every right class should lead every wrong one by 1. Source: Paddle API
    `paddle.nn.MultiLabelMarginLoss`.

    >>> import minipaddle as paddle
    >>> x, label = paddle.to_tensor([[1.0, 0.5]]), paddle.to_tensor([[0, -1]])
    >>> paddle.nn.MultiLabelMarginLoss()(x, label).item()
    0.25
    """


class MultiMarginLoss(Functional, function=F.multi_margin_loss, inputs=2):
    """Mean of max(0, margin - x[label] + x[class])^p. Source: Paddle API
    `paddle.nn.MultiMarginLoss`.

    >>> import minipaddle as paddle
    >>> paddle.nn.MultiMarginLoss()(paddle.to_tensor([[1.0, 0.5]]), paddle.to_tensor([0])).item()
    0.25
    """


class CTCLoss(
    Functional, function=F.ctc_loss, inputs=4, fixed=("blank", "reduction", "zero_infinity")
):
    """-log of the probability of all alignments with the labels; see `functional.ctc_loss`.

    Source: Paddle API `paddle.nn.CTCLoss`; Graves et al. 2006.

    >>> import minipaddle as paddle
    >>> logits, label = paddle.zeros([2, 1, 2]), paddle.to_tensor([[1]])
    >>> loss = paddle.nn.CTCLoss()(logits, label, paddle.to_tensor([2]), paddle.to_tensor([1]))
    >>> round(loss.exp().item(), 4)  # 3 of 4 outputs of length 2 spell it
    1.3333
    """
