"""More reductions: products, logarithms of sums of exponentials, the place of an extreme."""

import math

from ..engine.core.dtype import int64
from ..engine.core.op import opaque, reduction, spec_of_reduction
from ..engine.core.record import Spec
from ..engine.ops.elementwise import exp, where
from ..engine.ops.nn import same_spec
from ..engine.ops.reduction import nonempty_reduced_spec, spread, sum


@opaque
def logsumexp(m, x, *, axis, keepdim):
    """log Σ eˣ over `axis`, without overflow; -inf of nothing."""
    top = (m.max if x.size else m.sum)(x, axis, keepdims=True)
    top = m.where(m.isfinite(top), top, 0)
    y = m.log(m.sum(m.exp(x - top), axis, keepdims=True)) + top
    return y if keepdim else y.reshape([n for d, n in enumerate(x.shape) if d not in axis])


logsumexp.shape(spec_of_reduction)
logsumexp.composite = True


@logsumexp.vjp
def _(g, out, x, axis):
    ceiling = where(out == -math.inf, 0.0, out)  # all are -inf: none gets a share
    return spread(g, x.spec, axis) * exp(x - spread(ceiling, x.spec, axis))


def spec_of_place(x, *, axis, keepdim) -> Spec:
    """The spec of the place of an element along `axis` (a number; None: in the flat array)."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,)
    return nonempty_reduced_spec(x, axis=axes, keepdim=keepdim).astype(int64.numpy)


@opaque
def argmax(m, x, *, axis, keepdim):
    """The place of the (first) largest element along `axis`."""
    return m.asarray(m.argmax(x, axis, keepdims=keepdim))


@opaque
def argmin(m, x, *, axis, keepdim):
    """The place of the (first) smallest element along `axis`."""
    return m.asarray(m.argmin(x, axis, keepdims=keepdim))


argmax.shape(spec_of_place)
argmin.shape(spec_of_place)


@opaque
def log_softmax(m, x, *, axis=-1):
    """x - log Σ e^x along `axis`: the logarithm of softmax, without its overflow."""
    z = x - (x.max(axis=axis, keepdims=True) if x.size else 0)
    z -= m.log(m.exp(z).sum(axis=axis, keepdims=True))
    return z


log_softmax.vjp(lambda g, out, axis: g - exp(out) * sum(g, axis=(axis,), keepdim=True))
log_softmax.shape(same_spec)
log_softmax.composite = True


@reduction(identity=1, combine=lambda m, a, b: a * b)
def prod(m, x, *, axis, keepdim):
    """Product over `axis`."""
    return m.prod(x, axis, dtype=x.dtype, keepdims=keepdim)
