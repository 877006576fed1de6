"""Affine maps. As one operator each they cost one dispatch, and fewer passes over memory."""

from ..engine.core.dim import same
from ..engine.core.op import names, opaque
from ..engine.core.record import Spec
from ..engine.ops.contraction import contraction
from ..engine.ops.nn import rows


@contraction
def linear(x, weight, *, transpose=False):
    """x @ weight over the last axis of x (or x @ weightᵀ), as one product of two matrices."""
    rows = names(x.ndim - 1)
    return f"{rows}k,{'nk' if transpose else 'kn'}->{rows}n"


@linear.compute
def _(m, x, weight, *, transpose=False):
    y = m.matmul(x if x.ndim == 2 else rows(m, x), weight.T if transpose else weight)
    return y if x.ndim == 2 else m.reshape(y, (*x.shape[:-1], y.shape[-1]))


@linear.shape
def _(x, weight, *, transpose=False):
    inner = weight.shape[1 if transpose else 0] if weight.ndim == 2 else None
    if inner is None or not x.ndim or not same(x.shape[-1], inner):
        raise ValueError(
            f"the last dimension of x {list(x.shape)} must equal the first of the weight "
            f"{list(weight.shape)}, which is [in_features, out_features]"
        )
    return Spec((*x.shape[:-1], weight.shape[0 if transpose else 1]), x.dtype)


@contraction
def summed_outer(x, y):
    """Σ xᵢ yᵢᵀ over all rows of x and y: the derivative of a product by its weight."""
    return f"{names(x.ndim - 1)}m,{names(x.ndim - 1)}n->mn"


@summed_outer.compute
def _(m, x, y):
    return m.matmul(x.T, y) if x.ndim == 2 else m.matmul(rows(m, x).T, rows(m, y))


# The two are closed under differentiation: each is the other's derivative.
linear.vjp(
    x=lambda g, weight, transpose: linear(g, weight, transpose=not transpose),
    weight=lambda g, x, transpose: summed_outer(g, x) if transpose else summed_outer(x, g),
)
summed_outer.vjp(x=lambda g, y: linear(y, g, transpose=True), y=lambda g, x: linear(x, g))


@opaque(promote=True)
def affine(m, x, weight, bias):
    """x @ weight + bias, for x of shape [..., in], a weight of [in, out] and a bias of [out]."""
    y = linear.body(m, x, weight)
    y += bias
    return y


linear.composite = summed_outer.composite = affine.composite = affine.integral = True


@affine.shape
def _(x, weight, bias):
    spec = linear.infer(x, weight)
    if bias.shape not in (weight.shape[1:], (1,)):
        raise ValueError(f"the bias {list(bias.shape)} must be [{weight.shape[1]}], one per output")
    return spec


affine.vjp(
    x=lambda g, weight: linear(g, weight, transpose=True),
    weight=lambda g, x: summed_outer(x, g),
    bias=lambda g, bias_spec: g.sum_to(bias_spec.shape),
)
