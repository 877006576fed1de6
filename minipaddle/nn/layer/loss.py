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
    """-input at the label, for log-probabilities. Source: Paddle API `paddle.nn.NLLLoss`."""


class BCELoss(Functional, function=F.binary_cross_entropy, inputs=2):
    """-(y log p + (1 - y) log(1 - p)). Source: Paddle API `paddle.nn.BCELoss`."""


class BCEWithLogitsLoss(Functional, function=F.binary_cross_entropy_with_logits, inputs=2):
    """Binary cross-entropy of sigmoid(logit). Source: Paddle API `paddle.nn.BCEWithLogitsLoss`."""


class KLDivLoss(Functional, function=F.kl_div, inputs=2, fixed=("reduction", "log_target")):
    """label · (log label - input). Source: Paddle API `paddle.nn.KLDivLoss`."""


class MSELoss(Functional, function=F.mse_loss, inputs=2, fixed=("reduction",)):
    """(input - label)². Source: Paddle API `paddle.nn.MSELoss`."""


class L1Loss(Functional, function=F.l1_loss, inputs=2):
    """|input - label|. Source: Paddle API `paddle.nn.L1Loss`."""


class SmoothL1Loss(Functional, function=F.smooth_l1_loss, inputs=2):
    """½ d² where |d| is small, |d| beyond. Source: Paddle API `paddle.nn.SmoothL1Loss`."""


class GaussianNLLLoss(Functional, function=F.gaussian_nll_loss, inputs=3):
    """-log of a Gaussian's density. Source: Paddle API `paddle.nn.GaussianNLLLoss`."""


class PoissonNLLLoss(Functional, function=F.poisson_nll_loss, inputs=2):
    """-log of a Poisson probability. Source: Paddle API `paddle.nn.PoissonNLLLoss`."""


class MarginRankingLoss(Functional, function=F.margin_ranking_loss, inputs=3):
    """max(0, margin - label · (input - other)). Source: Paddle API
    `paddle.nn.MarginRankingLoss`.
    """


class HingeEmbeddingLoss(Functional, function=F.hinge_embedding_loss, inputs=2):
    """input where the label is 1, max(0, margin - input) where it is -1.

    Source: Paddle API `paddle.nn.HingeEmbeddingLoss`.
    """


class CosineEmbeddingLoss(Functional, function=F.cosine_embedding_loss, inputs=3):
    """1 - cos for pairs that belong together. Source: Paddle API
    `paddle.nn.CosineEmbeddingLoss`.
    """


class TripletMarginLoss(Functional, function=F.triplet_margin_loss, inputs=3):
    """max(0, d(input, positive) - d(input, negative) + margin). Source: Paddle API
    `paddle.nn.TripletMarginLoss`.
    """


class TripletMarginWithDistanceLoss(
    Functional, function=F.triplet_margin_with_distance_loss, inputs=3
):
    """`TripletMarginLoss` for a distance of your own. Source: Paddle API
    `paddle.nn.TripletMarginWithDistanceLoss`.
    """


class SoftMarginLoss(Functional, function=F.soft_margin_loss, inputs=2):
    """log(1 + e^(-label · input)). Source: Paddle API `paddle.nn.SoftMarginLoss`."""


class MultiLabelSoftMarginLoss(Functional, function=F.multi_label_soft_margin_loss, inputs=2):
    """Binary cross-entropy, averaged over the classes. Source: Paddle API
    `paddle.nn.MultiLabelSoftMarginLoss`.
    """


class MultiLabelMarginLoss(Functional, function=F.multi_label_margin_loss, inputs=2):
    """Every right class should lead every wrong one by 1. Source: Paddle API
    `paddle.nn.MultiLabelMarginLoss`.
    """


class MultiMarginLoss(Functional, function=F.multi_margin_loss, inputs=2):
    """Mean of max(0, margin - x[label] + x[class])^p. Source: Paddle API
    `paddle.nn.MultiMarginLoss`.
    """


class CTCLoss(
    Functional, function=F.ctc_loss, inputs=4, fixed=("blank", "reduction", "zero_infinity")
):
    """-log of the probability of all alignments with the labels; see `functional.ctc_loss`.

    Source: Paddle API `paddle.nn.CTCLoss`; Graves et al. 2006.
    """
