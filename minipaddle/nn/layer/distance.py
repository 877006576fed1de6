"""How far, and how alike, two tensors are, as layers."""

from __future__ import annotations

from .. import functional as F
from .functional import Functional

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Functional, function=F.cosine_similarity, inputs=2):
    """x1 · x2 / (|x1| |x2|) along `axis`. Source: Paddle API `paddle.nn.CosineSimilarity`.

    >>> import minipaddle as paddle
    >>> x, y = paddle.to_tensor([[2.0, 0.0]]), paddle.to_tensor([[3.0, 0.0]])
    >>> paddle.nn.CosineSimilarity()(x, y).tolist()
    [1.0]
    """


class PairwiseDistance(Functional, function=F.pairwise_distance, inputs=2):
    """The p-norm of x - y along the last axis. Source: Paddle API `paddle.nn.PairwiseDistance`.

    >>> import minipaddle as paddle
    >>> x, y = paddle.to_tensor([[3.0, 4.0]]), paddle.zeros([1, 2])
    >>> paddle.nn.PairwiseDistance(epsilon=0.0)(x, y).tolist()
    [5.0]
    """
