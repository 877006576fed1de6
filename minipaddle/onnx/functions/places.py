"""Reductions of ONNX, and what reads and writes at places."""

from math import prod

import numpy

from ...core.prelude import Tensor, creation, indexing, movement, normalize_axis
from ...nn import functional as F
from ...tensor import manipulation
from ..rows import ROWS, apply_row
from ..table import UnreadableNode, apply, as_known, beside, reads, size, sizes, tensor

SQUARES = lambda x: x * x
BEFORE = {"ReduceL1": lambda x: apply("abs", x), "ReduceL2": SQUARES, "ReduceSumSquare": SQUARES}
AFTER = {"ReduceL2": lambda y: apply("sqrt", y), "ReduceLogSum": lambda y: apply("log", y)}
SUMS = {*BEFORE, *AFTER}
"""Functions before and after a sum."""


@reads(*SUMS, *(r.kind for r in ROWS if r.kind.startswith("Reduce")))
def _(x, /, axes=None, *, keepdims=1, noop_with_empty_axes=0, node):
    if noop_with_empty_axes and (axes is None or not as_known(axes, "axes")):
        return x
    about = node._replace(kind="ReduceSum") if node.kind in SUMS else node
    y = apply_row(BEFORE.get(node.kind, tensor)(x), node=about, axes=axes, keepdims=keepdims)
    return AFTER.get(node.kind, tensor)(y).astype(x.spec.dtype)


@reads("ArgMax", "ArgMin")
def _(x, *, axis=0, keepdims=1, select_last_index=0, node):
    x, name = tensor(x), node.kind.lower()
    axis = normalize_axis(axis, x.spec.ndim)
    if not select_last_index:
        return apply(name, x, axis=axis, keepdim=bool(keepdims))
    back = apply(name, apply("flip", x, axis=(axis,)), axis=axis, keepdim=bool(keepdims))
    return back * -1 + (x.spec.shape[axis] - 1)


@reads("CumSum")
def _(x, /, axis, *, exclusive=0, reverse=0, node):
    y = apply_row(x, axis, node=node, reverse=reverse)
    return y - x if exclusive else y


@reads("TopK")
def _(x, /, k=None, *, axis=-1, largest=1, sorted=1):
    axis = normalize_axis(axis, x.spec.ndim)
    at = apply("topk_index", x, k=size(k), axis=axis, largest=bool(largest))
    return manipulation.take_along_axis(x, at, axis, broadcast=False), at


@reads("Unique")
def _(x, *, axis=None, sorted=1):
    if not sorted:
        raise UnreadableNode("its values stand in the order of their first places")
    axis = None if axis is None else normalize_axis(axis, tensor(x).spec.ndim)
    return tuple(apply("unique", tensor(x), axis=axis))


@reads("Gather")
def _(x, index, *, axis=0):
    x, at = tensor(x), index
    axis = normalize_axis(axis, x.spec.ndim)
    if not isinstance(at, Tensor) and at.ndim == 0:
        return movement.slice_(x, index=((None, None, None),) * axis + (size(at),))
    return indexing.take(x, tensor(at), axis=axis)


@reads("GatherElements")
def _(x, /, index, *, axis=0):
    axis = normalize_axis(axis, x.spec.ndim)
    return manipulation.take_along_axis(x, tensor(index), axis, broadcast=False)


@reads("GatherND")
def _(x, index, *, batch_dims=0):
    if batch_dims:
        raise UnreadableNode("it has batch_dims")
    return manipulation.gather_nd(tensor(x), tensor(index))


@reads("ScatterElements", "Scatter")
def _(x, /, index, value, *, axis=0, reduction="none"):
    how = {"none": "assign", "add": "add", "mul": "multiply", "max": "amax", "min": "amin"}
    axis = normalize_axis(axis, x.spec.ndim)
    return manipulation.put_along_axis(
        x, tensor(index), tensor(value), axis, how[reduction], broadcast=False
    )


@reads("ScatterND")
def _(x, index, value, *, reduction="none"):
    x, index, value = tensor(x), tensor(index), tensor(value)
    depth = as_known(numpy.array(index.spec.shape[-1:], object), "index")[0]
    shape = x.spec.shape
    first, rest = shape[:depth], shape[depth:]
    places = apply(
        "flat_index",
        *(movement.slice_(index, index=(*WHOLE[: index.spec.ndim - 1], k)) for k in range(depth)),
        shape=tuple(first),
    )
    flat = movement.reshape(x, shape=(prod(first), *rest))
    if reduction == "none":
        y = indexing.put(flat, places, value, axis=0)
    elif reduction == "add":
        y = flat + indexing.scatter_sum(value, places, shape=flat.spec.shape, axis=0)
    else:
        raise UnreadableNode(f"it reduces by {reduction}")
    return movement.reshape(y, shape=shape)


WHOLE = ((None, None, None),) * 32


@reads("OneHot")
def _(index, depth, values, *, axis=-1):
    index, n = tensor(index), size(depth)
    off, on = (beside(v, None) for v in split_pair(values))
    at = apply("where", apply("less_than", index, 0), index + n, index)
    axis = normalize_axis(axis, index.spec.ndim + 1)
    shape = (*index.spec.shape[:axis], 1, *index.spec.shape[axis:])
    column = (-1, *(1,) * (index.spec.ndim - axis))
    every = movement.reshape(creation.arange(size=n, dtype=index.spec.dtype), shape=column)
    hit = apply("equal", movement.reshape(at, shape=shape), every)
    return apply("where", hit, on, off)


def split_pair(values) -> tuple:
    values = tensor(values)
    return tuple(movement.slice_(values, index=(k,)) for k in (0, 1))


@reads("NonZero")
def _(x):
    return movement.transpose(apply("nonzero", tensor(x)), perm=(1, 0))


@reads("Compress")
def _(x, condition, *, axis=None):
    x, at = tensor(x), apply("flatnonzero", tensor(condition))
    x = movement.reshape(x, shape=(prod(x.spec.shape),)) if axis is None else x
    return indexing.take(x, at, axis=normalize_axis(axis or 0, x.spec.ndim))


@reads("GridSample")
def _(x, grid, *, mode="bilinear", padding_mode="zeros", align_corners=0):
    mode = {"linear": "bilinear"}.get(mode, mode)
    return F.grid_sample(tensor(x), tensor(grid), mode, padding_mode, bool(align_corners))


@reads("Col2Im")
def _(x, image, block, *, dilations=None, pads=None, strides=None):
    kernel, n = as_known(block, "kernel sizes"), len(as_known(block, "kernel sizes"))
    pads = pads or (0,) * (2 * n)
    return apply(
        "fold", tensor(x), size=tuple(sizes(image)), kernel=tuple(kernel),
        stride=tuple(strides or (1,) * n), dilation=tuple(dilations or (1,) * n),
        padding=tuple(zip(pads[:n], pads[n:], strict=True)),
    )  # fmt: skip
