"""Normalisation: x less its mean, over its deviation, scaled and shifted; one operator for all.

Batch, layer, group, instance and RMS norm differ only in the axes that the moments are taken over
and in the shapes of scale and shift. With x̂ = (x - mean) / √(var + ε) and y = scale · x̂ + shift:

    ∂y/∂x:      gx = (h - ⟨h⟩ - x̂ ⟨h·x̂⟩) / √(var + ε)   with h = scale · g, ⟨·⟩ the mean over `axes`
    ∂y/∂scale:  Σ g · x̂

Source: Ioffe and Szegedy, "Batch Normalization", 2015, section 3.
"""

import math
from functools import partial
from math import prod

from ..engine.core.dim import same_shape
from ..engine.core.dtype import float64
from ..engine.core.op import opaque, spec_of_reduction
from ..engine.core.record import Spec
from ..engine.core.spec import broadcast_shapes, fits
from ..engine.eager.control_flow import cond
from ..engine.ops import reduction
from ..engine.ops.elementwise import abs, sign, square, where
from ..engine.ops.linalg import matmul
from ..engine.ops.linalg import matrix_transpose as mT
from ..engine.ops.reduction import mean, spread, sum
from .arithmetic import rsqrt

# ---- helpers of the bodies -------------------------------------------------------------------


def dot(m, a, b, axes):
    """Σ a·b over `axes`, which stay as 1."""
    letters = "abcdefghijklmnopqrstuvwxyz"[: a.ndim]
    kept = "".join(c for d, c in enumerate(letters) if d not in axes)
    return m.expand_dims(m.einsum(f"{letters},{letters}->{kept}", a, b), axes)


def count(shape, axes) -> int:
    """The number of elements that share a mean."""
    return prod(shape[d] for d in axes)


def constant_over(scale, x, axes) -> bool:
    """Whether all elements that share a mean have the same scale."""
    shape = getattr(scale, "shape", ())
    lead = x.ndim - len(shape)
    return all(d < lead or shape[d - lead] == 1 for d in axes)


def affine(m, x, factor, term):
    """factor · x + term, in the dtype of x."""
    y = x * factor
    y += term
    return y.astype(x.dtype, copy=False)


# ---- operators -------------------------------------------------------------------------------


@opaque
def moments(m, x, *, axes, centered):
    """Mean and variance (dividing by the count) over `axes`, which stay as 1.

    Not centered: zero and the mean of squares. They carry no gradient: `standardize` knows that
    its moments move with x.
    """
    n = max(count(x.shape, axes), 1)
    mean = m.sum(x, axis=axes, keepdims=True)
    if centered:
        mean /= n
        x = x - mean
    else:
        mean *= 0
    return mean, dot(m, x, x, axes) / n


@opaque
def standardize(m, x, scale, shift, mean, var, *, axes, epsilon, centered):
    """scale · (x - mean) / √(var + ε) + shift, where mean and var are the moments of x."""
    rate = 1 / m.sqrt(var + epsilon)
    if constant_over(scale, x, axes) and constant_over(shift, x, axes):
        rate = rate * scale
        return affine(m, x, rate, shift - mean * rate)
    y = affine(m, x, rate, -mean * rate)
    return affine(m, y, scale, shift)


@opaque
def standardize_grad(m, g, x, scale, mean, var, *, axes, epsilon, centered):
    """The derivative of `standardize` in x."""
    n, rate = count(x.shape, axes), 1 / m.sqrt(var + epsilon)
    if constant_over(scale, x, axes):
        weight = rate * scale
    else:
        g, weight = g * scale, rate
    total = m.sum(g, axis=axes, keepdims=True) if centered else 0
    along = dot(m, g, x - mean, axes) * rate / n  # ⟨g·x̂⟩; Σg·x - mean·Σg would cancel
    slope = -weight * rate * along
    gx = affine(m, x, slope, -mean * slope - weight * total / n)
    gx += g * weight
    return gx


@opaque
def scale_grad(m, g, x, mean, var, *, shape, axes, epsilon, centered):
    """The derivative of `standardize` in the scale: Σ g · x̂ over what `shape` repeats."""
    rate = 1 / m.sqrt(var + epsilon)
    lead = x.ndim - len(shape)
    repeated = tuple(d for d in range(x.ndim) if d < lead or shape[d - lead] == 1)
    if set(axes) <= set(repeated):
        along = dot(m, g, x - mean, axes) * rate
        rest = tuple(d for d in repeated if d not in axes)
        y = m.sum(along, axis=rest, keepdims=True)
    else:
        y = dot(m, g, affine(m, x, rate, -mean * rate), repeated)
    return y.reshape(shape).astype(x.dtype, copy=False)


# ---- shapes ----------------------------------------------------------------------------------


moments.shape(lambda x, axes, centered: (spec_of_reduction(x, axis=axes, keepdim=True),) * 2)


def shape_of_x(x, scale, **_):
    """The spec of x; scale must broadcast to it."""
    shape = getattr(scale, "shape", ())
    if not fits(shape, x.shape):
        raise ValueError(f"scale and shift of shape {list(shape)} do not fit x of shape {x.shape}")
    return x


for op in (moments, standardize, standardize_grad, scale_grad):
    op.composite = True
standardize.shape(lambda x, scale, shift, mean, var, **_: shape_of_x(shape_of_x(x, scale), shift))
standardize_grad.shape(lambda g, x, scale, mean, var, **_: shape_of_x(x, scale))
scale_grad.shape(lambda g, x, mean, var, *, shape, **_: Spec(shape, x.dtype))

# ---- derivatives -----------------------------------------------------------------------------


standardize.vjp(
    x=lambda g, x, scale, mean, var, **over: standardize_grad(g, x, scale, mean, var, **over),
    scale=lambda g, x, mean, var, scale_spec, **over: scale_grad(
        g, x, mean, var, shape=scale_spec.shape, **over
    ),
    shift=lambda g, shift_spec: g.sum_to(shift_spec.shape),
)
scale_grad.vjp(
    g=lambda u, x, mean, var, shape, **over: standardize(x, u, 0.0, mean, var, **over),
    x=lambda u, g, x, mean, var, shape, **over: standardize_grad(g, x, u, mean, var, **over),
)


def grad_of_standardize(u, x, mean, var, over):
    """The derivative of `standardize` in x for a scale of 1."""
    return standardize_grad(u, x, 1.0, mean, var, **over)


standardize_grad.vjp(
    g=lambda u, x, scale, mean, var, **over: scale * grad_of_standardize(u, x, mean, var, over),
    scale=lambda u, g, x, mean, var, scale_spec, **over: (
        g * grad_of_standardize(u, x, mean, var, over)
    ).sum_to(scale_spec.shape),
)


@standardize_grad.vjp("x")
def _(u, g, x, scale, axes, epsilon, centered):
    """With P v = (v - ⟨v⟩ - x̂⟨v·x̂⟩)·r and r = 1/√(var + ε), this operator is P h, h = scale·g:

    ∂⟨u, P h⟩/∂x = -r · (x̂ ⟨u·P h⟩ + P u ⟨h·x̂⟩ + P h ⟨u·x̂⟩)

    Written in x alone, for here the moments must be differentiated too.
    """
    n = count(x.spec.shape, axes)

    def avg(v):
        return sum(v, axis=axes, keepdim=True) / n

    def free(v):
        return v - avg(v) if centered else v

    def project_onto(v):
        return (free(v) - z * avg(v * z)) * rate

    d, h = free(x), g * scale
    rate = rsqrt(avg(d * d) + epsilon)
    z = d * rate
    pu, ph = project_onto(u), project_onto(h)
    return -rate * (z * avg(u * ph) + pu * avg(h * z) + ph * avg(u * z))


# ---- the norm of a vector ----------------------------------------------------------------------


@opaque
def p_norm(m, x, *, p, axis, keepdim):
    """(Σ |x|^p)^(1/p) over `axis`; its derivative at 0 is 0."""
    if p == 2:
        return m.sqrt(m.sum(x * x, axis=axis, keepdims=keepdim))
    return m.sum(m.abs(x) ** p, axis=axis, keepdims=keepdim) ** (1 / p)


p_norm.composite = True
p_norm.shape(lambda x, p, axis, keepdim: spec_of_reduction(x, axis=axis, keepdim=keepdim))


@p_norm.vjp
def _(g, out, x, p, axis):
    none = out == 0
    scale = where(none, 0.0, g / where(none, 1.0, out) ** (p - 1))
    direction = x if p == 2 else sign(x) * abs(x) ** (p - 1)
    return spread(scale, x.spec, axis) * direction


# ---- the standard deviation ---------------------------------------------------------------------


@opaque
def deviation(m, x, *, axis, keepdim, correction):
    """√(Σ (x - mean)² / (n - correction)) over `axis`, in double, as squares of 1e30 do not fit in
    float32. Its derivative is 0 where all elements are equal.
    """
    n, wide = count(x.shape, axis), x.astype(float64.numpy, copy=False)
    away = wide - m.sum(wide, axis=axis, keepdims=True) / n
    total = m.sum(away * away, axis=axis, keepdims=keepdim)
    return m.sqrt(total / max(n - correction, 0)).astype(x.dtype, copy=False)


deviation.composite = True
deviation.shape(
    lambda x, axis, keepdim, correction: spec_of_reduction(x, axis=axis, keepdim=keepdim)
)


@deviation.vjp
def _(g, out, x, axis, correction):
    n, wide, none = count(x.spec.shape, axis), x.astype(float64.numpy), out == 0
    away = wide - mean(wide, axis=axis, keepdim=True)
    scale = where(none, 0.0, g.astype(float64.numpy) / (where(none, 1.0, out) * (n - correction)))
    return (spread(scale, x.spec, axis) * away).astype(x.spec.dtype)


# ---- distances -------------------------------------------------------------------------------

WAYS = {"float32": (("float32", 2**-3), ("float64", 1e-6)), "float64": (("float64", math.inf),)}
"""By dtype: the dtypes of products, each with the part of their squares by which rows must differ.
"""
PIECE = 1 << 16
"""Elements of rows that are compared one by one at a time."""


@opaque(promote=True)
def distances(m, x, y):
    """√Σ (x[i] - y[j])² for each row of x and each row of y.

    |x|² + |y|² - 2x·y is exact enough unless rows are close, or infinite: then the sum is computed
    as it is written. Where that are many, products in double serve first.
    """
    for dtype, least in WAYS[x.dtype.name]:
        a, b = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
        squares = m.sum(a * a, -1)[..., None] + m.sum(b * b, -1)[..., None, :]
        result = m.matmul(-2 * a, m.swapaxes(b, -1, -2))
        result += squares
        squares *= least
        at = m.nonzero(~(result > squares))
        if at[0].size * 64 <= result.size:
            break
    pairs = (*result.shape, a.shape[-1])
    a, b = m.broadcast_to(a[..., None, :], pairs), m.broadcast_to(b[..., None, :, :], pairs)
    step = max(1, PIECE // max(1, pairs[-1]))
    for k in range(0, at[0].size, step):
        piece = tuple(places[k : k + step] for places in at)
        result[piece] = m.sum((a[piece] - b[piece]) ** 2, -1)
    return m.sqrt(result).astype(x.dtype, copy=False)


@distances.shape
def _(x, y):
    if x.ndim < 2 or y.ndim < 2 or not same_shape(x.shape[-1:], y.shape[-1:]):
        raise ValueError(f"distances of rows of {x} and of {y}: rows have equal sizes")
    return Spec((*broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2]), x.dtype)


def pull_back_to_rows(g, out, x, y, wide=float64.numpy):
    """Σ_j g[i, j] (x[i] - y[j]) / out[i, j], in double, as close rows differ by little."""
    none = out == 0
    share = where(none, 0.0, g / where(none, 1.0, out)).astype(wide)
    rows = sum(share, axis=(share.spec.ndim - 1,), keepdim=True) * x.astype(wide)
    return (rows - matmul(share, y.astype(wide))).sum_to(x.spec.shape).astype(x.spec.dtype)


def pull_back_by_distance(g, out, x, y):
    """`pull_back_to_rows`, in the dtype of x where no two rows that differ are close."""
    (_, least), *others = WAYS[x.spec.dtype.name]
    if not others:
        return pull_back_to_rows(g, out, x, y)
    a, b = (sum(square(z), axis=(z.spec.ndim - 1,), keepdim=True) for z in (x, y))
    close = (out > 0) & (square(out) <= least * (a + mT(b)))
    close = reduction.any(close, axis=tuple(range(close.spec.ndim)), keepdim=False)
    pull = partial(pull_back_to_rows, g, out, x, y)
    return cond(close, lambda: [pull()], lambda: [pull(x.spec.dtype)])[0]


distances.vjp(
    x=lambda g, out, x, y: pull_back_to_rows(g, out, x, y),
    y=lambda g, out, x, y: pull_back_to_rows(mT(g), mT(out), y, x),
)
BY_DISTANCE = {
    0: pull_back_by_distance,
    1: lambda g, out, x, y: pull_back_by_distance(mT(g), mT(out), y, x),
}
"""Derivatives of `distances` by the place of the input, for a kernel: they look at values."""
