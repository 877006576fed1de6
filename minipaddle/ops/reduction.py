"""Reductions: an axis is folded with a combining function, starting from its identity.

`axis` is always a sorted tuple of non-negative numbers here; the public functions in
`minipaddle.tensor` accept what Paddle accepts.
"""

from __future__ import annotations

import math

from ..core.dtype import bool_, int64
from ..core.op import reduction
from .elementwise import cast, equal
from .movement import broadcast_to, reshape


def kept_shape(spec, axis) -> tuple:
    """The shape with the reduced axes left in as 1."""
    return tuple(1 if d in axis else n for d, n in enumerate(spec.shape))


def spread(g, x_spec, axis):
    """A reduced value repeated along the reduced axes: the adjoint of a sum."""
    return broadcast_to(reshape(g, shape=kept_shape(x_spec, axis)), shape=x_spec.shape)


def widest_int(dtype):
    """Sums of whole numbers and booleans are counted in int64, as in Paddle."""
    return int64.numpy if dtype.kind in "biu" else dtype


@reduction(identity=0, combine=lambda m, a, b: a + b, result=widest_int)
def sum(m, x, *, axis, keepdim):
    """Sum over `axis`."""
    return m.sum(x, axis=axis, keepdims=keepdim)


sum.vjp(spread)


@reduction(identity=-math.inf, combine=lambda m, a, b: m.maximum(a, b))
def max(m, x, *, axis, keepdim):
    """Largest value over `axis`; equal values share the gradient evenly."""
    return m.max(x, axis=axis, keepdims=keepdim)


@reduction(identity=math.inf, combine=lambda m, a, b: m.minimum(a, b))
def min(m, x, *, axis, keepdim):
    """Smallest value over `axis`; equal values share the gradient evenly."""
    return m.min(x, axis=axis, keepdims=keepdim)


def at_extremum(g, out, x, axis):
    """Send the gradient to where the extremum stands."""
    chosen = cast(equal(x, spread(out, x.spec, axis)), dtype=x.spec.dtype)
    share = chosen / sum(chosen, axis=axis, keepdim=True)
    return spread(g, x.spec, axis) * share


max.vjp(at_extremum)
min.vjp(at_extremum)


@reduction(identity=True, combine=lambda m, a, b: a & b, result=lambda _: bool_.numpy)
def all(m, x, *, axis, keepdim):
    """Is every element true?"""
    return m.all(x, axis=axis, keepdims=keepdim)


@reduction(identity=False, combine=lambda m, a, b: a | b, result=lambda _: bool_.numpy)
def any(m, x, *, axis, keepdim):
    """Is any element true?"""
    return m.any(x, axis=axis, keepdims=keepdim)
