"""How far, and how alike, two tensors are, as layers."""

from .. import functional as F
from .functional import Functional

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Functional, function=F.cosine_similarity, inputs=2): ...


class PairwiseDistance(Functional, function=F.pairwise_distance, inputs=2): ...
