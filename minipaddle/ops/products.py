"""Matrix products of transposed arrays, as one operator: passes make it of `matmul`."""

from __future__ import annotations

from functools import partial

from ..engine.core.op import names, opaque
from ..engine.ops.linalg import matmul, matrix_transpose
from ..engine.ops.movement import inverse, transpose
from ..engine.sharding.letters import TAKES_NOTHING


@opaque(promote=True)
def product(m, x, y, *, x_perm, y_perm, out_perm):
    """The matrix product of two transposed arrays, transposed: what passes make of `matmul`.

    Both operands have the same number of axes, two at least; leading axes of size 1 broadcast.
    """
    return m.matmul(x.transpose(x_perm), y.transpose(y_perm)).transpose(out_perm)


@product.shape
def _(x, y, *, x_perm, y_perm, out_perm):
    x, y = transpose.infer(x, perm=x_perm), transpose.infer(y, perm=y_perm)
    if x.ndim != y.ndim or x.ndim < 2:
        raise ValueError(f"{x} and {y} must have the same number of axes, two or more")
    return transpose.infer(matmul.infer(x, y), perm=out_perm)


product.by_rows = True


@product.vjp("x")
def _(g, x_spec, y, x_perm, y_perm, out_perm):
    gx = matmul(transpose(g, perm=inverse(out_perm)), matrix_transpose(transpose(y, perm=y_perm)))
    whole = transpose.infer(x_spec, perm=x_perm).shape
    return transpose(gx.sum_to(whole), perm=inverse(x_perm))


@product.vjp("y")
def _(g, x, y_spec, x_perm, y_perm, out_perm):
    gy = matmul(matrix_transpose(transpose(x, perm=x_perm)), transpose(g, perm=inverse(out_perm)))
    whole = transpose.infer(y_spec, perm=y_perm).shape
    return transpose(gy.sum_to(whole), perm=inverse(y_perm))


@partial(product.shards, linear=("x", "y"))
def _(x, y, *, x_perm, y_perm, out_perm):
    lead = names(x.ndim - 2)
    first, second = (
        "".join(c for _, c in sorted(zip(perm, lead + own)))
        for perm, own in ((x_perm, "mk"), (y_perm, "kn"))
    )
    return f"{first},{second}->{''.join((lead + 'mn')[d] for d in out_perm)}"


TAKES_NOTHING.add(product)
