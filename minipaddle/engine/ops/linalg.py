"""Matrix products."""

from __future__ import annotations

from math import prod

from ..core.dim import same
from ..core.op import names
from ..core.record import Spec
from ..core.spec import broadcast_shapes
from .contraction import contraction
from .movement import transpose


@contraction
def matmul(x, y):
    """Matrix product over the last two axes; leading axes broadcast, vectors are rows or columns.

    >>> paddle.matmul(paddle.ones([2, 3]), paddle.ones([3])).tolist()
    [3.0, 3.0]
    """
    row, column = "m" * (x.ndim > 1), "n" * (y.ndim > 1)
    lead = names(max(x.ndim, y.ndim, 2) - 2)
    first, second = (lead[len(lead) - max(each.ndim - 2, 0) :] for each in (x, y))
    return f"{first}{row}k,{second}k{column}->{lead}{row}{column}"


@matmul.compute
def _(m, x, y):
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


def matrix_transpose(x):
    """x with its last two axes exchanged."""
    n = x.spec.ndim
    return transpose(x, perm=(*range(n - 2), n - 1, n - 2))
