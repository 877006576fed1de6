"""Forms of movements, and of arrays made from nothing."""

from math import prod

import numpy

from ...engine.core.dim import Dim
from ...engine.core.op import OPS
from ...engine.core.record import Spec
from ...engine.ops.movement import reshape
from ..graph import INT64, OnnxGraph, OnnxValue
from ..rows import WRITTEN
from ..table import FORMS, LAST, form, numbers


def reshape_to(g: OnnxGraph, x: OnnxValue, shape) -> OnnxValue:
    """x in another shape; one open size is -1, one that x has at this axis 0."""
    shape, old = tuple(shape), x.shape or ()
    if -1 in shape:
        return g("Reshape", x, shape, shape=None)
    copied = [d < len(old) and isinstance(n, Dim) and n == old[d] for d, n in enumerate(shape)]
    plain = tuple(0 if same else n for n, same in zip(shape, copied, strict=True))
    unknown = [d for d, n in enumerate(plain) if isinstance(n, Dim)]
    if 0 not in shape and len(unknown) < 2:
        plain = tuple(-1 if d in unknown else n for d, n in enumerate(plain))
        return g("Reshape", x, plain, shape=shape)
    return g("Reshape", x, shape, allowzero=1, shape=shape)


@form("reshape")
def _(g, x, *, shape):
    return reshape_to(g, x, g.record.shape)


@form("slice")
def slice_(g, x, *, index):
    """Slice for ranges, Squeeze for numbers, Unsqueeze for new axes."""
    axes, dropped, new, axis, out = [], [], [], 0, 0
    for k in index:
        if k is None:
            new.append(out)
            out += 1
            continue
        if isinstance(k, int | Dim):
            dropped.append(axis)
            last = isinstance(k, int) and k == -1
            axes.append((axis, k, LAST if last else k + 1, 1))
        else:
            out += 1
            step = 1 if k[2] is None else k[2]
            start = (0 if step > 0 else LAST) if k[0] is None else k[0]
            stop = (LAST if step > 0 else -LAST) if k[1] is None else k[1]
            if (start, stop, step) != (0, LAST, 1):
                axes.append((axis, start, stop, step))
        axis += 1
    if axes:
        at, start, stop, step = zip(*axes, strict=True)
        x = g("Slice", x, start, stop, at, step)
    x = g("Squeeze", x, tuple(dropped)) if dropped else x
    return g("Unsqueeze", x, tuple(new)) if new else same(g, x)


def same(g: OnnxGraph, x: OnnxValue) -> OnnxValue:
    return g("Identity", x)


def vector_in(g: OnnxGraph, value: OnnxValue) -> OnnxValue | None:
    """The vector that a value reshapes; None if there is none."""
    record = value.record
    if record is None or record.op is not reshape or record.inputs[0].spec.ndim != 1:
        return None
    return g.read(record.inputs[0])


def positions(g: OnnxGraph, shape, index) -> OnnxValue:
    """The row-major positions, in an array of `shape`, of the part that `index` names."""
    if not any(isinstance(n, Dim) for n in shape) and not has_dim(index):
        numbers = numpy.arange(prod(shape), dtype=INT64).reshape(shape)
        return g.constant(numpy.ascontiguousarray(OPS["slice"].body(numpy, numbers, index=index)))
    count = g("Squeeze", g("ReduceProd", g.size_vector(shape), keepdims=1), (0,))
    places = g("Range", g.constant(numpy.int64(0)), count, g.constant(numpy.int64(1)))
    return slice_(g, reshape_to(g, places, shape), index=index)


def has_dim(index) -> bool:
    return any(isinstance(n, Dim) for k in index for n in (k if type(k) is tuple else (k,)))


def overwritten(g: OnnxGraph, x: OnnxValue, at: OnnxValue, value, shape) -> OnnxValue:
    """x with a value, broadcast, at flat positions."""
    value = g.value(value, x.dtype).astype(x.dtype)
    value = g("Expand", value, g("Shape", at, dtype=INT64))
    flat = [g("Reshape", part, (-1,)) for part in (x, at, value)]
    return reshape_to(g, g("ScatterElements", *flat, axis=0), shape)


@form("slice_assign")
def _(g, x, value, *, index):
    if isinstance(value, OnnxValue) and value.shape is not None:
        at = OPS["slice"].infer(Spec(x.shape, x.dtype), index=index)
        extra = len(value.shape) - at.ndim
        value = g("Squeeze", value, tuple(range(extra))) if extra > 0 else value
    return overwritten(g, x, positions(g, x.shape, index), value, x.shape)


@form("unslice")
def _(g, x, *, shape, index):
    return overwritten(g, fill_shape(g, shape, 0, x.dtype), positions(g, shape, index), x, shape)


@form("take")
def take(g, x, index, *, axis):
    return g("Gather", x, whole(index), axis=axis)


def whole(index: OnnxValue) -> OnnxValue:
    """Places as int64 (int32 stays)."""
    return index if index.dtype.name in ("int32", "int64") else index.astype(INT64)


def to_front(n: int, axis: int) -> tuple:
    return (axis, *(d for d in range(n) if d != axis))


def scatter(
    g: OnnxGraph, x: OnnxValue, index: OnnxValue, value: OnnxValue, axis: int, **how
) -> OnnxValue:
    """ScatterND of slices along `axis`; `value` has the axes of `index` in its place."""
    n, many = len(x.shape), len(index.shape)
    front = to_front(n, axis)
    back = tuple(front.index(d) for d in range(n))
    places = g("Unsqueeze", whole(index).astype(INT64), (-1,))
    if axis:
        moved = (*range(axis, axis + many), *range(axis), *range(axis + many, n + many - 1))
        x, value = g("Transpose", x, perm=front), g("Transpose", value, perm=moved)
    y = g("ScatterND", x, places, value, **how)
    return g("Transpose", y, perm=back) if axis else y


@form("put")
def _(g, x, index, value, *, axis):
    target = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    value = g.value(value, x.dtype).astype(x.dtype)
    if value.shape is not None and len(value.shape) > len(target):
        value = g("Squeeze", value, tuple(range(len(value.shape) - len(target))))
    return scatter(g, x, index, g("Expand", value, target), axis)


@form("scatter_sum")
def _(g, x, index, *, shape, axis):
    zeros = fill_shape(g, shape, 0, x.dtype)
    return scatter(g, zeros, index, x, axis, reduction="add")


for _name, _kind in {"prod": "mul", "max": "max", "min": "min"}.items():
    FORMS[f"scatter_{_name}"] = lambda g, x, index, value, kind=_kind: g(
        "ScatterElements", x, whole(index), g("Expand", g.value(value, x.dtype), g("Shape", index)),
        axis=0, reduction=kind,
    )  # fmt: skip


@form("unstack")
def _(g, x, *, axis):
    count = len(g.record.shape)
    if count == 1:
        return (g("Squeeze", x, (axis,)),)
    parts = g("Split", x, (1,) * count, axis=axis, results=count)
    return tuple(g("Squeeze", part, (axis,)) for part in parts)


@form("split")
def _(g, x, *, sizes, axis):
    parts = g("Split", x, tuple(sizes), axis=axis, results=len(sizes))
    return parts if len(sizes) > 1 else (parts,)


@form("concat")
def _(g, *xs, axis):
    return g("Concat", *(x.astype(g.record.dtype) for x in xs), axis=axis)


@form("stack")
def _(g, *xs, axis):
    parts = [g("Unsqueeze", g.value(x, g.record.dtype).astype(g.record.dtype), (axis,)) for x in xs]
    return g("Concat", *parts, axis=axis)


@form("flip")
def _(g, x, *, axis):
    n = len(axis)
    return g("Slice", x, (-1,) * n, (-LAST,) * n, tuple(axis), (-1,) * n) if n else same(g, x)


@form("roll")
def _(g, x, *, shifts, axis):
    y = same(g, x)
    for shift, d in zip(shifts, axis, strict=True):
        n = x.shape[d]
        shift = shift % n if isinstance(n, int) and n else shift
        if shift:
            ends = g("Slice", y, (-shift,), (LAST,), (d,)), g("Slice", y, (0,), (-shift,), (d,))
            y = g("Concat", *ends, axis=d)
    return y


@form("pad")
def _(g, x, *, widths, value):
    sides = tuple(w[0] for w in widths) + tuple(w[1] for w in widths)
    return g("Pad", x, sides, g.constant(numpy.array(value, x.dtype)))


def gather_by_map(g: OnnxGraph, *inputs, **attrs) -> OnnxValue:
    """A movement of known sizes: its body, applied to the numbers of places, says what to gather;
    number 0 is the constant that fills the other places.
    """
    (x,), record = inputs, g.record
    numbers(x.shape, "sizes")
    fill = attrs.get("fill", 0)
    places = numpy.arange(1, prod(x.shape) + 1).reshape(x.shape)
    at = record.op.body(numpy, places, **(attrs | ({"fill": 0} if "fill" in attrs else {})))
    flat = [g.constant(numpy.full(1, fill, x.dtype)), g("Reshape", x, (-1,))]
    return g("Gather", g("Concat", *flat, axis=0), numpy.ascontiguousarray(at), axis=0)


FORMS |= dict.fromkeys(("diagonal", "embed_diagonal", "as_strided"), gather_by_map)
TRANSPOSE = WRITTEN["transpose"].write
FORMS |= {
    "transpose": lambda g, x, perm: TRANSPOSE(g, x, perm=perm) if perm else same(g, x),
    "broadcast_to": lambda g, x, shape: g("Expand", x, tuple(shape)),
    "assign": same,
    "remap": lambda g, x, axis, index: g("Gather", x, numpy.array(index, INT64), axis=axis),
}


def fill_shape(g: OnnxGraph, shape, value, dtype) -> OnnxValue:
    one = numpy.full(1, value, dtype)
    tensor = g.constant(one)
    return OnnxValue(g, g("Expand", tensor, tuple(shape)).name, dtype, tuple(shape))


@form("full")
def _(g, *, shape, value, dtype):
    if isinstance(value, Dim):
        return g("Expand", g.size(value).astype(dtype), tuple(shape))
    return g("Expand", g.constant(numpy.array(value, dtype)), tuple(shape), dtype=dtype)


@form("arange")
def _(g, *, size, dtype, start=0, step=1):
    if not any(isinstance(n, Dim) for n in (size, start, step)):
        return g.constant(OPS["arange"].body(numpy, size=size, dtype=dtype, start=start, step=step))
    wide = INT64 if all(isinstance(n, int | Dim) for n in (start, step)) else dtype
    i = g("Range", g.constant(numpy.int64(0)), g("Squeeze", g.size(size), (0,)),
          g.constant(numpy.int64(1))).astype(wide)  # fmt: skip
    i = i if step == 1 else g("Mul", i, g.value(step, wide))
    i = i if start == 0 else g("Add", i, g.value(start, wide))
    return i.astype(dtype)


@form("eye")
def _(g, *, rows, columns, dtype):
    return g.constant(numpy.eye(*numbers((rows, columns), "sizes"), dtype=dtype))


@form("extent")
def _(g, count):
    no = g.constant(numpy.zeros((), bool))
    return g("Expand", no, g("Reshape", count.astype(INT64), (1,)))
