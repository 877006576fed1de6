"""Diagonals and triangles of matrices."""

from __future__ import annotations

from ..core.errors import teach
from ..ops import arrangement
from .axes import axis_of
from .shaping import flatten

__all__ = ["diag", "diag_embed", "diagflat", "diagonal", "tril", "triu"]


def diag(x, offset=0, padding_value=0, name=None):
    """A square matrix with the vector x on a diagonal, or that diagonal of a matrix x.

    `offset` > 0 lies above the main diagonal; `padding_value` fills the rest of the new matrix.
    Source: Paddle API `paddle.diag`.

    >>> import minipaddle as paddle
    >>> paddle.diag(paddle.to_tensor([1, 2]), offset=1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    if x.spec.ndim == 2:
        return diagonal(x, offset)
    if x.spec.ndim != 1:
        raise ValueError(
            teach(f"diag of {x.spec}", expected="a vector or a matrix", hint="paddle.diag_embed")
        )
    return embedded(x, offset, 0, 1, padding_value)


def embedded(x, offset: int, axis1: int, axis2: int, fill=0):
    """Square matrices in the plane (axis1, axis2) with the last axis of x on a diagonal."""
    *shape, n = x.spec.shape
    for d in sorted((axis1, axis2)):
        shape.insert(d, n + abs(offset))
    return arrangement.embed_diagonal(
        x, shape=tuple(shape), offset=offset, axis1=axis1, axis2=axis2, fill=fill
    )


def diagflat(x, offset=0, name=None):
    """A square matrix with all elements of x on a diagonal. Source: Paddle API `paddle.diagflat`.

    >>> import minipaddle as paddle
    >>> paddle.diagflat(paddle.to_tensor([[1, 2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return embedded(flatten(x), offset, 0, 1)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """The last axis of x on the diagonals of square matrices with the axes `dim1` and `dim2`.

    Source: Paddle API `paddle.diag_embed`.

    >>> import minipaddle as paddle
    >>> paddle.diag_embed(paddle.to_tensor([[1, 2], [3, 4]])).tolist()
    [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
    """
    ndim = input.spec.ndim + 1
    axis1, axis2 = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if axis1 == axis2:
        raise ValueError(f"diag_embed with dim1={dim1} and dim2={dim2}: they must differ")
    return embedded(input, offset, axis1, axis2)


def diagonal(x, offset=0, axis1=0, axis2=1, name=None):
    """The diagonals of the planes (axis1, axis2), as the last axis.

    Source: Paddle API `paddle.diagonal`.

    >>> import minipaddle as paddle
    >>> paddle.diagonal(paddle.to_tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    a, b = axis_of(axis1, x.spec.ndim), axis_of(axis2, x.spec.ndim)
    if a == b:
        raise ValueError(f"diagonal with axis1={axis1} and axis2={axis2}: they must differ")
    return arrangement.diagonal(x, offset=offset, axis1=a, axis2=b)


def tril(x, diagonal=0, name=None):
    """The lower triangles: zeros above the diagonal. Source: Paddle API `paddle.tril`.

    >>> import minipaddle as paddle
    >>> paddle.tril(paddle.ones([2, 2])).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return arrangement.tril(matrices(x, "tril"), diagonal=diagonal)


def triu(x, diagonal=0, name=None):
    """The upper triangles: zeros below the diagonal. Source: Paddle API `paddle.triu`.

    >>> import minipaddle as paddle
    >>> paddle.triu(paddle.ones([2, 2])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return arrangement.triu(matrices(x, "triu"), diagonal=diagonal)


def matrices(x, what: str):
    """x, when it has two dimensions or more."""
    if x.spec.ndim < 2:
        raise ValueError(teach(f"{what} of {x.spec}", expected="two dimensions or more"))
    return x
