"""Scans: every element of the result reduces all elements up to its place along one axis.

All derivatives rest on one operator, the linear recurrence h[i] = a[i] · h[i-1] + x[i], which is
closed under differentiation and needs no division: zeros in a product are no special case.
Source: Blelloch, "Prefix Sums and Their Applications", section 1.4.
"""

import math

from ..engine.core.dispatch import current
from ..engine.core.dtype import int64
from ..engine.core.op import names, opaque
from ..engine.core.record import Spec
from ..engine.ops.elementwise import exp, where
from ..engine.ops.movement import inverse, replace_axis, reshape, slice_, transpose
from ..engine.ops.reduction import spread
from .arithmetic import clip
from .arrangement import pad
from .reductions import prod


def slice_axis(axis: int, start, stop) -> tuple:
    """A key that takes places start to stop of `axis`."""
    return (*(slice(None),) * axis, slice(start, stop))


def shift(x, axis: int, by: int, fill):
    """x moved `by` = ±1 places along `axis`; `fill` enters at the end."""
    n = x.spec.shape[axis]
    widths = [(0, 0)] * x.spec.ndim
    widths[axis] = (1, 0) if by > 0 else (0, 1)
    start = (0, n, 1) if by > 0 else (1, n + 1, 1)
    return slice_(pad(x, widths=tuple(widths), value=fill), index=((0, None, 1),) * axis + (start,))


def same(x, *_, **__) -> Spec:
    """The spec of a scan is the spec of its (first) input."""
    return x


def lines(x, *, axis, **_) -> str:
    """The sharding rule of what works along one axis: the others may be cut."""
    own = replace_axis(names(x.ndim), axis, ".")
    return f"{''.join(own)}->{''.join(own)}"


def doubling(m, xs, axis: int, combine) -> list:
    """All elements up to each place along `axis`, combined. The distance doubles: after step k a
    place holds what `combine(early, late)` makes of the last 2ᵏ places. `xs` are several arrays.
    """
    n, step = xs[0].shape[axis], 1
    while step < n:
        head, early, late = (
            [x[slice_axis(axis, *ends)] for x in xs]
            for ends in ((0, step), (0, n - step), (step, n))
        )
        xs = [m.concatenate(pair, axis) for pair in zip(head, combine(early, late))]
        step *= 2
    return xs


# ---- the linear recurrence -------------------------------------------------------------------


@opaque(promote=True)
def recurrence(m, a, x, *, axis, reverse):
    """h[i] = a[i] · h[i-1] + x[i] along `axis`, from the last to the first place if `reverse`."""

    def combine(early, late):
        (a, x), (b, y) = early, late
        return b * a, y + b * x

    pair = (m.flip(a, axis), m.flip(x, axis)) if reverse else (a, x)
    _, h = doubling(m, pair, axis, combine)
    if not m.isfinite(h).all():  # a product of factors may be 0 · inf where no step of the line is
        h = one_by_one(m, *pair, axis)
    return m.flip(h, axis) if reverse else h


def one_by_one(m, a, x, axis: int):
    """The recurrence as it is written."""
    h = x.copy()
    a, line = m.moveaxis(a, axis, 0), m.moveaxis(h, axis, 0)
    for i in range(1, len(line)):
        line[i] += a[i] * line[i - 1]
    return h


recurrence.shape(lambda a, x, axis, reverse: x)


def adjoint(g, a, axis, reverse):
    """The recurrence run backwards gives the cotangent of x."""
    back = 1 if reverse else -1
    return recurrence(shift(a, axis, back, 0), g, axis=axis, reverse=not reverse)


@recurrence.vjp("a")
def _(g, out, a, axis, reverse):
    before = shift(out, axis, -1 if reverse else 1, 0)
    return adjoint(g, a, axis, reverse) * before


recurrence.vjp(x=lambda g, a, **to: adjoint(g, a, **to))


# ---- running sums, products, log-sums --------------------------------------------------------


@opaque
def cumsum(m, x, *, axis, reverse=False):
    """Running sum along `axis`; from the end if `reverse`."""
    if reverse:
        return m.flip(m.cumsum(m.flip(x, axis), axis, dtype=x.dtype), axis)
    return m.cumsum(x, axis, dtype=x.dtype)


cumsum.shape(same)
cumsum.vjp(lambda g, axis, reverse: cumsum(g, axis=axis, reverse=not reverse))


@opaque
def cumprod(m, x, *, axis, reverse=False):
    """Running product along `axis`; from the end if `reverse`."""
    if reverse:
        return m.flip(m.cumprod(m.flip(x, axis), axis, dtype=x.dtype), axis)
    return m.cumprod(x, axis, dtype=x.dtype)


cumprod.shape(same)


@cumprod.vjp
def _(g, out, x, axis, reverse):
    before = shift(out, axis, -1 if reverse else 1, 1)
    return adjoint(g, x, axis, reverse) * before


def others(x, axis: int):
    """For each element along `axis` the product of all others."""
    before = shift(cumprod(x, axis=axis), axis, 1, 1)
    after = shift(cumprod(x, axis=axis, reverse=True), axis, -1, 1)
    return before * after


@prod.vjp
def _(g, out, x, axis):
    """The product divided by each factor; by one that is 0, the product of the others."""
    none = x == 0
    if not current.top.tracing and not current.top.by_hand and not none.any():
        return spread(g * out, x.spec, axis) / x
    quotient = spread(out, x.spec, axis) / where(none, 1.0, x)
    return spread(g, x.spec, axis) * where(none, product_of_others(x, axis), quotient)


def product_of_others(x, axis):
    """For each element of x the product of the others over `axis`, without a division."""
    shape = x.spec.shape
    perm = (*(d for d in range(len(shape)) if d not in axis), *axis)
    kept = len(shape) - len(axis)
    moved = tuple(shape[d] for d in perm)
    rows = (*moved[:kept], math.prod(moved[kept:]))  # all reduced axes as one, the last
    rest = others(reshape(transpose(x, perm=perm), shape=rows), kept)
    return transpose(reshape(rest, shape=moved), perm=inverse(perm))


@opaque
def logcumsumexp(m, x, *, axis):
    """log of the running sum of eˣ along `axis`, without overflow."""
    return doubling(m, [x], axis, lambda early, late: [m.logaddexp(*late, *early)])[0]


logcumsumexp.shape(same)


@logcumsumexp.vjp
def _(g, out, x, axis):
    """The share of x[i] in out[j] is exp(x[i] - out[i]) times what the sum shrank by up to j."""
    level = where(out == -math.inf, 0.0, out)  # so far all are -inf: none has a share
    before = shift(level, axis, 1, 0)
    shrunk = where(before == level, 0.0, before - level)  # not inf - inf
    decay = exp(clip(shrunk, max=0.0))  # at most 1, the unused one too
    return exp(x - level) * adjoint(g, decay, axis, False)


# ---- running extrema -------------------------------------------------------------------------


def running_place(m, x, axis: int, ahead):
    """The place of the best element so far: the latest of equal ones, and a nan for good."""

    def combine(early, late):
        won = ahead(early[0], late[0]) | (early[0] != early[0])
        return [m.where(won, a, b) for a, b in zip(early, late)]

    places = m.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return doubling(m, [x, m.broadcast_to(places, x.shape)], axis, combine)[1]


@opaque
def cummax_index(m, x, *, axis):
    """The place of the largest element up to each place along `axis`."""
    return running_place(m, x, axis, lambda a, b: a > b)


@opaque
def cummin_index(m, x, *, axis):
    """The place of the smallest element up to each place along `axis`."""
    return running_place(m, x, axis, lambda a, b: a < b)


cummax_index.shape(lambda x, axis: x.astype(int64.numpy))
cummin_index.shape(lambda x, axis: x.astype(int64.numpy))

cumsum.shards(lines, linear="x")
for op in (cumprod, logcumsumexp, cummax_index, cummin_index):
    op.shards(lines)
