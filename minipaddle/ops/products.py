"""Matrix products of transposed arrays, as one operator: passes make every contraction one."""

from ..engine.core.dtype import HALVES, float32
from ..engine.core.op import names, opaque
from ..engine.core.record import Spec
from ..engine.ops.contraction import contraction


@contraction
def product(x, y, *, x_perm, y_perm, out_perm):
    """The matrix product of two transposed arrays, transposed.

    Both operands have the same number of axes, two at least; leading axes of size 1 broadcast.
    """
    ndim = len(x.shape)
    if ndim != len(y.shape) or ndim < 2:
        raise ValueError(f"{x} and {y} must have the same number of axes, two or more")
    lead = names(ndim - 2)
    first, second = (
        "".join([c for _, c in sorted(zip(perm, lead + own))])
        for perm, own in ((x_perm, "mk"), (y_perm, "kn"))
    )
    return f"{first},{second}->{''.join([(lead + 'mn')[d] for d in out_perm])}"


@product.compute
def _(m, x, y, *, x_perm, y_perm, out_perm):
    return m.matmul(x.transpose(x_perm), y.transpose(y_perm)).transpose(out_perm)


product.by_rows = True


@opaque(promote=True)
def wide_product(m, x, y, *, x_perm, y_perm, out_perm):
    """`product`; of half precision it is float32, and is not rounded."""
    return product.body(m, x, y, x_perm=x_perm, y_perm=y_perm, out_perm=out_perm)


@wide_product.shape
def _(x, y, **perms):
    dtype = float32.numpy if x.dtype in HALVES else x.dtype
    return Spec(product.infer(x, y, **perms).shape, dtype)


wide_product.letters, wide_product.linear = product.letters, product.linear
wide_product.by_rows = True
