"""Forms of what reads and writes at places, of labels and of orders."""

import numpy

from ..graph import INT64, OnnxGraph, OnnxValue
from ..table import FORMS, form, numbers
from .movement import fill_shape, scatter, whole

ZERO, ONE = numpy.int64(0), numpy.int64(1)


def count_from_front(g: OnnxGraph, index: OnnxValue, size) -> OnnxValue:
    """Places counted from the front."""
    at = index.astype(INT64)
    negative = g("Less", at, 0, dtype=bool)
    return g("Where", negative, g("Add", at, g.size(size)), at, dtype=INT64)


def flat_positions(g: OnnxGraph, indices, shape) -> OnnxValue:
    """Σ index · stride, in row-major order."""
    total, stride = None, 1
    for index, n in reversed([*zip(indices, shape, strict=True)]):
        part = (
            g("Mul", index, g.size(stride)) if not isinstance(stride, int) or stride != 1 else index
        )
        total = part if total is None else g("Add", part, total)
        stride = stride * n
    return total


@form("flat_index")
def _(g, *indices, shape):
    pairs = zip(indices, shape, strict=True)
    at = flat_positions(g, [count_from_front(g, i, n) for i, n in pairs], shape)
    return g("Expand", at, g.record.shape)


@form("along_index")
def _(g, index, *, shape, axis):
    n, rows = len(shape), []
    for d, k in enumerate(index.shape):
        places = count_up(g, k)
        rows.append(g("Reshape", places, (-1, *(1,) * (n - d - 1))))
    rows[axis] = count_from_front(g, index, shape[axis])
    return g("Expand", flat_positions(g, rows, shape), g.record.shape)


def count_up(g: OnnxGraph, n) -> OnnxValue:
    """0, 1, …, n - 1."""
    if isinstance(n, int):
        return g.constant(numpy.arange(n))
    return g("Range", g.constant(ZERO), g("Squeeze", g.size(n), (0,)), g.constant(ONE))


@form("nonzero")
def _(g, x):
    return g("Transpose", g("NonZero", x, dtype=INT64), perm=(1, 0))


@form("flatnonzero")
def _(g, x):
    return g("Squeeze", g("NonZero", g("Reshape", x, (-1,)), dtype=INT64), (0,))


@form("repeated")
def _(g, repeats):
    ends = g("CumSum", repeats.astype(INT64), g.constant(ZERO))
    count = g("Squeeze", g("ReduceSum", repeats.astype(INT64), (0,), keepdims=1), (0,))
    places = g("Unsqueeze", g("Range", g.constant(ZERO), count, g.constant(ONE)), (1,))
    return counts(g, g("LessOrEqual", ends, places, dtype=bool))


def counts(g: OnnxGraph, truth: OnnxValue) -> OnnxValue:
    """How many are true along the last axis."""
    return g("ReduceSum", truth.astype(INT64), (-1,), keepdims=0)


@form("searchsorted")
def _(g, x, values, *, right):
    kind = "LessOrEqual" if right else "Less"
    rows = g("Unsqueeze", x, (-2,)) if len(x.shape) > 1 else x
    return counts(g, g(kind, rows, g("Unsqueeze", values, (-1,)), dtype=bool))


@form("remap_grad")
def _(g, x, *, axis, index, size):
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    at = g.constant(numpy.array(index, INT64))
    return scatter(g, fill_shape(g, shape, 0, x.dtype), at, x, axis, reduction="add")


@form("strided_sum")
def _(g, x, *, size, strides, offset):
    places = numpy.full(x.shape, offset, INT64)
    for d, (n, step) in enumerate(zip(numbers(x.shape, "sizes"), strides, strict=True)):
        places += (numpy.arange(n) * step).reshape(-1, *(1,) * (len(x.shape) - d - 1))
    zeros, flat = fill_shape(g, (size,), 0, x.dtype), g("Reshape", x, (-1,))
    return g("ScatterElements", zeros, places.reshape(-1), flat, axis=0, reduction="add")


@form("bincount")
def _(g, x, *weights, size):
    dtype = g.record.dtype
    ones = weights[0] if weights else g("Expand", g.constant(ONE), g("Shape", x, dtype=INT64))
    zeros = fill_shape(g, (size,), 0, dtype)
    return g("ScatterElements", zeros, whole(x), ones.astype(dtype), axis=0, reduction="add")


def counting(g: OnnxGraph, label: OnnxValue, ignore_index) -> OnnxValue:
    """The labels that are not to be ignored."""
    return g("Not", g("Equal", label, ignore_index, dtype=bool))


def safe(g: OnnxGraph, label: OnnxValue, valid: OnnxValue) -> OnnxValue:
    zero = g.constant(numpy.zeros((), label.dtype))
    return g("Where", valid, label, zero, dtype=label.dtype)


@form("pick")
def _(g, x, label, *, ignore_index):
    label = whole(label)
    valid = None if ignore_index is None else counting(g, label, ignore_index)
    at = label if valid is None else safe(g, label, valid)
    y = g("GatherElements", x, g("Unsqueeze", at, (-1,)), axis=len(x.shape) - 1)
    y = g("Squeeze", y, (-1,))
    return y if valid is None else g("Where", valid, y, g.value(0, x.dtype), dtype=x.dtype)


def hot(g: OnnxGraph, label: OnnxValue, classes, dtype) -> OnnxValue:
    """1 in the place of the label along a new last axis."""
    labels, every = g("Unsqueeze", label.astype(INT64), (-1,)), count_up(g, classes)
    return g("Equal", labels, every, dtype=bool).astype(dtype)


@form("place")
def _(g, x, label, *, classes, ignore_index):
    ones = hot(g, label, classes, x.dtype)
    y = g("Mul", g("Unsqueeze", x, (-1,)), ones)
    if ignore_index is None:
        return y
    valid = g("Unsqueeze", counting(g, label, ignore_index), (-1,))
    return g("Where", valid, y, g.value(0, x.dtype), dtype=x.dtype)


@form("sparse_embedding")
@form("embedding")
def _(g, x, weight, *, padding_idx):
    y = g("Gather", weight, whole(x), axis=0)
    if padding_idx is None:
        return y
    there = g("Unsqueeze", counting(g, x, padding_idx), (-1,))
    return g("Where", there, y, g.value(0, weight.dtype), dtype=y.dtype)


FORMS["one_hot"] = lambda g, x, classes, dtype: hot(g, x, classes, dtype)


def sort_first(
    g: OnnxGraph, x: OnnxValue, k, axis: int, descending: bool
) -> tuple[OnnxValue, OnnxValue]:
    """The first k elements in order along an axis, and their places."""
    x = x.astype(numpy.int32) if x.dtype.itemsize < 4 and x.dtype.kind in "iub" else x
    how = {"axis": axis, "largest": int(descending), "sorted": 1}
    values, at = g("TopK", x, g.size(k), results=2, **how)
    return values, OnnxValue(g, at.name, INT64)


@form("sort")
def _(g, x, *, axis, descending):
    return sort_first(g, x, x.shape[axis], axis, descending)[0].astype(x.dtype)


@form("argsort")
def _(g, x, *, axis, descending):
    return sort_first(g, x, x.shape[axis], axis, descending)[1]


@form("topk_index")
def _(g, x, *, k, axis, largest):
    return sort_first(g, x, k, axis, largest)[1]


@form("unique")
def _(g, x, *, axis):
    y, *places = g("Unique", x, results=4, axis=axis, sorted=1)
    return y, *(OnnxValue(g, at.name, INT64) for at in places)
