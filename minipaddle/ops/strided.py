"""Windows: an array read through strides, and its adjoint."""

import math

from ..engine.core.dim import never
from ..engine.core.op import movement, opaque
from ..engine.core.record import Spec
from ..engine.ops.gather import add_rows
from ..engine.ops.movement import reshape, unravel


def spread_axes(vectors) -> list:
    """Vectors, each along an axis of its own: together they broadcast to an index of all places."""
    count = len(vectors)
    return [v.reshape(-1, *(1,) * (count - d - 1)) for d, v in enumerate(vectors)]


def strides_of(shape) -> tuple:
    """Steps between neighbours along each axis of a row-major array, in elements."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(out[::-1])


@movement
def as_strided(m, x, *, shape, strides, offset):
    """Element `i` is element `offset + Σ i[d]·strides[d]` of x in row-major order."""
    require_inside(x.shape, shape, strides, offset)
    flat = m.ascontiguousarray(x).reshape(-1)[offset:]
    steps = [s * x.dtype.itemsize for s in strides]
    return m.lib.stride_tricks.as_strided(flat, shape, steps)


@as_strided.shape
def _(x, *, shape, strides, offset):
    require_inside(x.shape, shape, strides, offset)
    return Spec(tuple(shape), x.dtype)


def require_inside(whole, shape, strides, offset) -> None:
    """Raise ValueError if strides lead out of the memory of an array of shape `whole`."""
    size = math.prod(whole)
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if 0 not in shape and (offset < 0 or never(last, "<", size) or never(offset, "<=", last)):
        raise ValueError(
            f"shape {list(shape)} with strides {list(strides)}, from element {offset} on, reaches "
            f"element {last} of {size}"
        )


@as_strided.index
def _(i, x, *, shape, strides, offset):
    return unravel(offset + sum(k * s for k, s in zip(i, strides, strict=True)), x.shape)


@as_strided.vjp
def _(g, x_spec, strides, offset):
    flat = strided_sum(g, size=x_spec.size, strides=strides, offset=offset)
    return reshape(flat, shape=x_spec.shape)


@opaque
def strided_sum(m, x, *, size, strides, offset):
    """`size` zeros with element `i` of x added at place offset + Σ i[d]·strides[d]."""
    places = m.full(x.shape, offset)
    for along in spread_axes(
        [m.arange(n) * step for n, step in zip(x.shape, strides, strict=True)]
    ):
        places += along
    return add_rows(m, x.reshape(-1, 1), places.reshape(-1), size).reshape(size)


strided_sum.shape(lambda x, size, strides, offset: Spec((size,), x.dtype))


@strided_sum.vjp
def _(g, x_spec, strides, offset):
    return as_strided(g, shape=x_spec.shape, strides=strides, offset=offset)
