"""Matrix products and decompositions."""

from __future__ import annotations

from ..core.op import opaque
from ..core.record import Spec
from ..core.spec import broadcast_shapes
from .movement import reshape, transpose


@opaque(promote=True)
def matmul(m, x, y):
    """Matrix product over the last two axes; leading axes broadcast, vectors are rows or columns."""
    return m.matmul(x, y)


@matmul.shape
def _(x, y):
    if not x.ndim or not y.ndim:
        raise ValueError("matmul needs at least one dimension on both sides; use * for a scalar")
    inner = x.shape[-1], y.shape[-2] if y.ndim > 1 else y.shape[0]
    if inner[0] != inner[1]:
        raise ValueError(
            f"the last dimension of x ({inner[0]}) must equal the last but one of y ({inner[1]})"
        )
    lead = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return Spec(lead + x.shape[:-1][-1:] + y.shape[1:][-1:], x.dtype)


def matrix_transpose(x):
    """x with its last two axes exchanged."""
    n = x.spec.ndim
    return transpose(x, perm=(*range(n - 2), n - 1, n - 2))


def as_matrices(g, x, y):
    """The three of them with vectors written as matrices of one row or column."""
    xs, ys, gs = x.shape, y.shape, g.spec.shape
    if len(xs) == 1:
        gs = (*gs[:-1], 1, *gs[-1:]) if len(ys) > 1 else (*gs, 1)
    if len(ys) == 1:
        gs = (*gs, 1)
    return reshape(g, shape=gs) if gs != g.spec.shape else g


@matmul.vjp("x")
def _(g, x_spec, y):
    ys = y.spec
    g = as_matrices(g, x_spec, ys)
    y = reshape(y, shape=(*ys.shape, 1)) if ys.ndim == 1 else y
    gx = matmul(g, matrix_transpose(y))
    return reshape(gx.sum_to((1, *x_spec.shape)), shape=x_spec.shape) if x_spec.ndim == 1 else (
        gx.sum_to(x_spec.shape)
    )


@matmul.vjp("y")
def _(g, x, y_spec):
    xs = x.spec
    g = as_matrices(g, xs, y_spec)
    x = reshape(x, shape=(1, *xs.shape)) if xs.ndim == 1 else x
    gy = matmul(matrix_transpose(x), g)
    return reshape(gy.sum_to((*y_spec.shape, 1)), shape=y_spec.shape) if y_spec.ndim == 1 else (
        gy.sum_to(y_spec.shape)
    )
