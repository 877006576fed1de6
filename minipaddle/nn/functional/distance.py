"""How far, and how alike, two tensors are."""

from ...engine.ops import elementwise as e
from ...tensor.norms import vector_norm

__all__ = ["cosine_similarity", "pairwise_distance"]


def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    """x1 · x2 / max(|x1| |x2|, eps) along `axis`.

    >>> x, y = paddle.to_tensor([[1.0, 0.0]]), paddle.to_tensor([[1.0, 1.0]])
    >>> round(paddle.nn.functional.cosine_similarity(x, y).item(), 4)
    0.7071
    """
    dot = (x1 * x2).sum(axis=axis)
    sizes = (x1 * x1).sum(axis=axis) * (x2 * x2).sum(axis=axis)
    return dot / e.sqrt(e.maximum(sizes, eps * eps))


def pairwise_distance(x, y, p=2.0, epsilon=1e-6, keepdim=False, name=None):
    """The p-norm of x - y + epsilon along the last axis.

    >>> x, y = paddle.to_tensor([[3.0, 4.0]]), paddle.zeros([1, 2])
    >>> paddle.nn.functional.pairwise_distance(x, y, epsilon=0.0).item()
    5.0
    """
    return vector_norm(x - y + epsilon, p, -1, keepdim)
