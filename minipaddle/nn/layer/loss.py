"""Losses as layers: each calls its function of `nn.functional` on (input, label, ...)."""

from .. import functional as F
from .functional import Functional


class CrossEntropyLoss(Functional, function=F.cross_entropy, inputs=2): ...


class NLLLoss(Functional, function=F.nll_loss, inputs=2): ...


class BCELoss(Functional, function=F.binary_cross_entropy, inputs=2): ...


class BCEWithLogitsLoss(Functional, function=F.binary_cross_entropy_with_logits, inputs=2): ...


class KLDivLoss(Functional, function=F.kl_div, inputs=2, fixed=("reduction", "log_target")): ...


class MSELoss(Functional, function=F.mse_loss, inputs=2, fixed=("reduction",)): ...


class L1Loss(Functional, function=F.l1_loss, inputs=2): ...


class SmoothL1Loss(Functional, function=F.smooth_l1_loss, inputs=2): ...


class GaussianNLLLoss(Functional, function=F.gaussian_nll_loss, inputs=3): ...


class PoissonNLLLoss(Functional, function=F.poisson_nll_loss, inputs=2): ...


class MarginRankingLoss(Functional, function=F.margin_ranking_loss, inputs=3): ...


class HingeEmbeddingLoss(Functional, function=F.hinge_embedding_loss, inputs=2): ...


class CosineEmbeddingLoss(Functional, function=F.cosine_embedding_loss, inputs=3): ...


class TripletMarginLoss(Functional, function=F.triplet_margin_loss, inputs=3): ...


class TripletMarginWithDistanceLoss(
    Functional, function=F.triplet_margin_with_distance_loss, inputs=3
): ...


class SoftMarginLoss(Functional, function=F.soft_margin_loss, inputs=2): ...


class MultiLabelSoftMarginLoss(Functional, function=F.multi_label_soft_margin_loss, inputs=2): ...


class MultiLabelMarginLoss(Functional, function=F.multi_label_margin_loss, inputs=2): ...


class MultiMarginLoss(Functional, function=F.multi_margin_loss, inputs=2): ...


class CTCLoss(
    Functional, function=F.ctc_loss, inputs=4, fixed=("blank", "reduction", "zero_infinity")
): ...


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip
