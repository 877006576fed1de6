"""Reductions: a combining function reduces an axis, starting from its identity.

Here `axis` is always a sorted tuple of numbers that are not negative; the public functions in
`minipaddle.tensor` accept the axes that Paddle accepts.
"""

from __future__ import annotations

import math

from ..core.dtype import bool_, int64
from ..core.op import opaque, reduction, spec_of_reduction
from ..core.record import Spec
from .elementwise import cast
from .movement import broadcast_to, reshape


def keepdim_shape(spec, axis) -> tuple:
    """The shape with the reduced axes left in as 1."""
    return tuple(1 if d in axis else n for d, n in enumerate(spec.shape))


def spread(g, x_spec, axis):
    """A reduced value repeated along the reduced axes: the adjoint of a sum."""
    if g.array.shape:  # () is repeated along any axes
        g = reshape(g, shape=keepdim_shape(x_spec, axis))
    return broadcast_to(g, shape=x_spec.shape)


def sum_dtype(dtype):
    """Booleans and int32 are summed in int64, as in Paddle; other dtypes in themselves."""
    return int64.numpy if dtype.name in ("bool", "int32") else dtype


def nonempty_reduced_spec(x, *, axis, keepdim) -> Spec:
    """The same for a reduction without identity: it refuses an axis of size 0."""
    if 0 in [x.shape[d] for d in axis]:  # `any` is an operator here
        raise ValueError(f"{x} has nothing along an axis to take one from: its size is 0")
    return spec_of_reduction(x, axis=axis, keepdim=keepdim)


# ---- sums ------------------------------------------------------------------------------------


@reduction(identity=0, combine=lambda m, a, b: a + b, blocked=True, result=sum_dtype)
def sum(m, x, *, axis, keepdim):
    """Sum over `axis`."""
    return x.sum(axis, keepdims=keepdim)


sum.vjp(spread)
sum.shards(linear="x")


@opaque
def mean(m, x, *, axis, keepdim):
    """Sum over `axis` divided by the count; whole numbers stay whole, rounded to 0."""
    y = x.sum(axis, keepdims=keepdim) / math.prod(x.shape[d] for d in axis)
    return y if x.dtype.kind == "f" else y.astype(x.dtype)


mean.shape(spec_of_reduction)
mean.composite = True


@mean.vjp
def _(g, x_spec, axis):
    count = math.prod(x_spec.shape[d] for d in axis)
    return spread(g * (1 / count) if count else g, x_spec, axis)


# ---- products --------------------------------------------------------------------------------


# ---- the largest and the smallest ------------------------------------------------------------


@reduction(identity=-math.inf, combine=lambda m, a, b: m.maximum(a, b))
def max(m, x, *, axis, keepdim):
    """Largest value over `axis`; equal values share the gradient evenly."""
    return x.max(axis, keepdims=keepdim)


@reduction(identity=math.inf, combine=lambda m, a, b: m.minimum(a, b))
def min(m, x, *, axis, keepdim):
    """Smallest value over `axis`; equal values share the gradient evenly."""
    return x.min(axis, keepdims=keepdim)


max.shape(nonempty_reduced_spec)
min.shape(nonempty_reduced_spec)


def extremum_cotangent(g, out, x, axis):
    """The cotangent at the places of the extremum, which share it; 0 elsewhere."""
    spec = x.spec
    chosen = cast(x == spread(out, spec, axis), dtype=spec.dtype)
    share = chosen / sum(chosen, axis=axis, keepdim=True)
    return spread(g, spec, axis) * share


max.vjp(extremum_cotangent)
min.vjp(extremum_cotangent)


# ---- truth -----------------------------------------------------------------------------------


@reduction(identity=True, combine=lambda m, a, b: a & b, result=lambda _: bool_.numpy)
def all(m, x, *, axis, keepdim):
    """Whether every element is true."""
    return m.all(x, axis, keepdims=keepdim)


@reduction(identity=False, combine=lambda m, a, b: a | b, result=lambda _: bool_.numpy)
def any(m, x, *, axis, keepdim):
    """Whether an element is true."""
    return m.any(x, axis, keepdims=keepdim)


max.exact = min.exact = True
