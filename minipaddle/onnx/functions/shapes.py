"""Operators of ONNX that move elements, or make arrays."""

from math import prod

import numpy

from ...core.prelude import Dim, Tensor, creation, dt, larger, movement, normalize_axis
from ...engine.core.dim import suppose
from ...engine.ops.movement import WHOLE, replace_axis
from ..rows import axes_of
from ..table import (
    FLOAT,
    INT64,
    UnreadableNode,
    apply,
    as_known,
    dtype_of,
    number,
    reads,
    size,
    sizes,
    tensor,
)

LAST = numpy.iinfo(numpy.int32).max


@reads("Shape")
def _(x, *, start=0, end=None):
    shape = x.spec.shape if isinstance(x, Tensor) else x.shape
    return numpy.array([*shape[start:end], None], object)[:-1]


@reads("Size")
def _(x):
    shape = x.spec.shape if isinstance(x, Tensor) else x.shape
    return numpy.array([prod(shape), None], object)[0:1].reshape(())


@reads("Reshape")
def reshape(x, /, shape, *, allowzero=0):
    wanted = [
        x.spec.shape[d] if isinstance(n, int) and n == 0 and not allowzero else n
        for d, n in enumerate(sizes(shape))
    ]
    if any(isinstance(n, int) and n == -1 for n in wanted):
        k = [isinstance(n, int) and n == -1 for n in wanted].index(True)
        rest = prod([*wanted[:k], *wanted[k + 1 :]])
        wanted[k] = prod(x.spec.shape) // rest if not isinstance(rest, int) or rest else 0
    return movement.reshape(x, shape=tuple(wanted))


@reads("Flatten")
def _(x, /, *, axis=1):
    n = x.spec.ndim
    axis = axis + n if axis < 0 else axis
    shape = x.spec.shape
    return movement.reshape(x, shape=(prod(shape[:axis]), prod(shape[axis:])))


@reads("Squeeze")
def _(x, /, axes=None):
    shape = x.spec.shape
    ones = tuple(d for d, n in enumerate(shape) if n == 1)
    gone = ones if axes is None else axes_of(axes, x.spec.ndim)
    return movement.reshape(x, shape=tuple(n for d, n in enumerate(shape) if d not in gone))


@reads("Unsqueeze")
def _(x, /, axes):
    shape = list(x.spec.shape)
    new = as_known(axes, "axes")
    for axis in axes_of(new, x.spec.ndim + len(new)):
        shape.insert(axis, 1)
    return movement.reshape(x, shape=tuple(shape))


@reads("Expand")
def expand(x, shape):
    x, wanted = tensor(x), sizes(shape)
    own = (1,) * (len(wanted) - x.spec.ndim) + tuple(x.spec.shape)
    wanted = (1,) * (len(own) - len(wanted)) + tuple(wanted)
    shape = tuple(n if isinstance(k, int) and k == 1 else k for n, k in zip(own, wanted))
    return movement.broadcast_to(x, shape=shape)


@reads("Split")
def _(x, /, split=None, *, axis=0, num_outputs=None, node):
    axis = normalize_axis(axis, x.spec.ndim)
    if split is None:
        count, n = node.results, x.spec.shape[axis]
        each = -(-n // count)
        pieces = [each] * (count - 1) + [n - each * (count - 1)]
    else:
        pieces = sizes(split)
    return tuple(movement.split(x, sizes=tuple(pieces), axis=axis))


@reads("Slice")
def _(x, starts, ends, axes=None, steps=None):
    x, starts, ends = tensor(x), sizes(starts), sizes(ends)
    axes = range(len(starts)) if axes is None else as_known(axes, "axes")
    steps = [1] * len(starts) if steps is None else as_known(steps, "steps")
    index = [(None, None, None)] * x.spec.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = normalize_axis(axis, x.spec.ndim)
        index[axis] = (clip_bound(start), clip_bound(end, step), step)
    return movement.slice_(x, index=tuple(index))


def clip_bound(n, step: int = 1):
    """A bound of a slice as Python writes it: parts beyond the ends are left out."""
    return None if isinstance(n, int) and (n >= LAST or n < -LAST) else n


@reads("Pad")
def _(x, pads, value=None, axes=None, *, mode="constant", node):
    x, sides = tensor(x), sizes(pads)
    value = 0.0 if value is None else value
    axes = range(x.spec.ndim) if axes is None else axes_of(axes, x.spec.ndim)
    n, widths = len(sides) // 2, [(0, 0)] * x.spec.ndim
    for k, axis in enumerate(axes):
        widths[axis] = sides[k], sides[n + k]
    cut = [(larger(-a, 0), larger(-b, 0)) for a, b in widths]
    if any(not isinstance(c, int) or c for pair in cut for c in pair):
        index = tuple((a, m - b, 1) for m, (a, b) in zip(x.spec.shape, cut, strict=True))
        x = movement.slice_(x, index=index)
        widths = [(larger(a, 0), larger(b, 0)) for a, b in widths]
    if mode == "constant":
        fill = x.spec.dtype.type(number(value)).item()
        return apply("pad", x, widths=tuple(widths), value=fill)
    for axis, (low, high) in enumerate(widths):
        low, high = as_known(numpy.array([low, high], object), "widths")
        if max(low, high) > MOST_PLACES:
            raise UnreadableNode(f"it pads by more than {MOST_PLACES} places")
        if low or high:
            x = pad_axis(x, axis, low, high, mode)
    return x


MOST_PLACES = 1 << 16
"""Of an axis whose border repeats what is inside."""


def pad_axis(x, axis: int, low: int, high: int, mode: str) -> Tensor:
    """An axis with a border of `low` and `high` places that repeats what is inside."""
    n = x.spec.shape[axis]
    if isinstance(n, int) and n <= MOST_PLACES:
        index = numpy.pad(numpy.arange(n), (low, high), mode)
        return apply("remap", x, axis=axis, index=tuple(map(int, index)))
    if mode != "edge":
        suppose(n, ">", max(low, high) - (mode == "wrap"))
    pick = lambda *places: movement.slice_(x, index=(*WHOLE[:axis], (*places, 1)))
    turn = lambda *places: apply("flip", pick(*places), axis=(axis,))
    grow = lambda k, *places: movement.broadcast_to(
        pick(*places), shape=replace_axis(x.spec.shape, axis, k)
    )
    before, after = {
        "reflect": (lambda: turn(1, 1 + low), lambda: turn(n - 1 - high, n - 1)),
        "wrap": (lambda: pick(n - low, n), lambda: pick(0, high)),
        "edge": (lambda: grow(low, 0, 1), lambda: grow(high, n - 1, n)),
    }[mode]
    parts = [*([before()] if low else []), x, *([after()] if high else [])]
    return movement.concat(*parts, axis=axis)


@reads("Constant")
def _(*, value=None, value_float=None, value_int=None, value_floats=None, value_ints=None):
    if value is not None:
        return value
    if value_float is not None or value_floats is not None:
        return numpy.array(value_floats if value_float is None else value_float, FLOAT)
    if value_int is None and value_ints is None:
        raise UnreadableNode("its value is a string or sparse")
    return numpy.array(value_ints if value_int is None else value_int, INT64)


@reads("ConstantOfShape")
def _(shape, *, value=None):
    fill = numpy.zeros(1, FLOAT) if value is None else value
    return creation.full(shape=tuple(sizes(shape)), value=fill.item(), dtype=dt.resolve(fill.dtype))


@reads("Range")
def _(start, limit, delta):
    values = [size(v) if is_whole(v) else number(v) for v in (start, limit, delta)]
    first, last, step = values
    integral = all(isinstance(v, int | Dim) for v in values)
    dtype = INT64 if integral else FLOAT
    for v in (start, limit, delta):
        own = v.spec.dtype if isinstance(v, Tensor) else v.dtype
        dtype = dtype if own.kind == "O" else own
    count = (
        larger(-((first - last) // step), 0)
        if integral
        else max(0, int(numpy.ceil((last - first) / step)))
    )
    return creation.arange(size=count, dtype=dtype, start=first, step=step)


def is_whole(v) -> bool:
    dtype = v.spec.dtype if isinstance(v, Tensor) else v.dtype
    return dtype.kind in "Oiu"


@reads("EyeLike")
def _(x, /, *, dtype=None, k=0):
    own = x.spec.dtype if dtype is None else dtype_of(dtype)
    if k:
        raise UnreadableNode("its ones are not on the main diagonal")
    return apply("eye", rows=x.spec.shape[0], columns=x.spec.shape[1], dtype=own)
