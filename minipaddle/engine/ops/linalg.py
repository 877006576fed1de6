"""Matrix products."""

from __future__ import annotations

from functools import partial
from math import prod

from ..core.dim import same
from ..core.op import names, opaque
from ..core.record import Spec
from ..core.spec import broadcast_shapes
from .movement import reshape, transpose


@opaque(promote=True)
def matmul(m, x, y):
    """Matrix product over the last two axes; leading axes broadcast, vectors are rows or columns.

    >>> paddle.matmul(paddle.ones([2, 3]), paddle.ones([3])).tolist()
    [3.0, 3.0]
    """
    if x.ndim > 2 and y.ndim == 2:  # one product of tall matrices instead of many small ones
        rows = x.reshape(prod(x.shape[:-1]), x.shape[-1])
        return m.matmul(rows, y).reshape(*x.shape[:-1], y.shape[-1])
    return m.matmul(x, y)


@matmul.shape
def _(x, y):
    if not x.ndim or not y.ndim:
        raise ValueError("matmul needs at least one dimension on both sides; use * for a scalar")
    inner = x.shape[-1], y.shape[-2] if y.ndim > 1 else y.shape[0]
    if not same(*inner):
        raise ValueError(
            f"the last dimension of x ({inner[0]}) must equal the second to last of y ({inner[1]})"
        )
    lead = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    rows = x.shape[-2:-1] if x.ndim > 1 else ()
    columns = y.shape[-1:] if y.ndim > 1 else ()
    return Spec(lead + rows + columns, x.dtype)


@partial(matmul.shards, linear=("x", "y"))
def _(x, y):
    row, column = "m" * (x.ndim > 1), "n" * (y.ndim > 1)
    lead = names(max(x.ndim, y.ndim, 2) - 2)
    first, second = (lead[len(lead) - max(each.ndim - 2, 0) :] for each in (x, y))
    return f"{first}{row}k,{second}k{column}->{lead}{row}{column}"


def matrix_transpose(x):
    """x with its last two axes exchanged."""
    n = x.spec.ndim
    return transpose(x, perm=(*range(n - 2), n - 1, n - 2))


def as_row(x):
    """A vector as a matrix of one row; a matrix as it is."""
    return reshape(x, shape=(1, *x.spec.shape)) if x.spec.ndim == 1 else x


def as_column(x):
    """A vector as a matrix of one column; a matrix as it is."""
    return reshape(x, shape=(*x.spec.shape, 1)) if x.spec.ndim == 1 else x


def as_product(g, x, y):
    """The cotangent of x @ y with the axes back in that a vector x or y leaves out."""
    shape = g.spec.shape
    if y.ndim == 1:
        shape = (*shape, 1)
    if x.ndim == 1:
        shape = (*shape[:-1], 1, shape[-1])
    return reshape(g, shape=shape) if shape != g.spec.shape else g


@matmul.vjp("x")
def _(g, x_spec, y):
    if x_spec.ndim > 1 and y.spec.ndim == 2:
        return matmul(g, matrix_transpose(y))
    gx = matmul(as_product(g, x_spec, y.spec), matrix_transpose(as_column(y)))
    return fold(gx, x_spec, (1, *x_spec.shape))


@matmul.vjp("y")
def _(g, x, y_spec):
    if x.spec.ndim > 1 and y_spec.ndim == 2:
        tall = x.spec.ndim == 2
        return matmul(matrix_transpose(x if tall else rows(x)), g if tall else rows(g))
    gy = matmul(matrix_transpose(as_row(x)), as_product(g, x.spec, y_spec))
    return fold(gy, y_spec, (*y_spec.shape, 1))


def rows(x):
    """A stack of matrices as one tall matrix."""
    *lead, n = x.spec.shape
    return reshape(x, shape=(prod(lead), n))


def fold(g, spec, as_matrix):
    """A cotangent summed over broadcast axes, in the shape of the input it belongs to."""
    if spec.ndim > 1:
        return g.sum_to(spec.shape)
    return reshape(g.sum_to(as_matrix), shape=spec.shape)
