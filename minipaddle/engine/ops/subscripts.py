"""Indexing: `x[key]`, and x with other values at `key`, as slices, takes and puts.

A key is read in two steps. Its numbers, slices, None and Ellipsis give a slice of x. Its arrays of
whole numbers and its masks give positions along axes of that slice. As in NumPy, the new axes stand
where the arrays stand if these are neighbours, else in front. As in Paddle and PyTorch, numbers do
not count as arrays.
"""

from __future__ import annotations

import math
from operator import index
from typing import NamedTuple

from ..core.dim import Dim, same_shape
from ..core.dispatch import current
from ..core.errors import teach, type_error
from ..core.record import Spec
from . import elementwise, movement
from . import gather as indexing
from .axes import whole
from .var import Var

WHOLE = movement.WHOLE[0]


class ParsedKey(NamedTuple):
    """A slice (None: all of x), and the arrays that index axes of that slice."""

    slice: tuple | None
    arrays: list  # pairs (first axis it indexes, Var of whole numbers or booleans)


READINGS: list = []
"""Functions that give the entries of a key another form before they are read."""

# ---- reading a key ---------------------------------------------------------------------------


def parse_key(x, key) -> ParsedKey:
    """The two parts of `key` for x; raises IndexError or TypeError with an explanation."""
    index = basic_index(key)
    if index is not None:
        return ParsedKey(index, [])
    keys = key if type(key) is tuple else (key,)
    for read in READINGS:
        keys = read(keys)
    parts = [parse_entry(k) for k in keys]
    spoken, ndim = sum([n for _, n in parts]), x.spec.ndim
    if spoken > ndim:
        raise IndexError(
            teach(
                f"too many indices: {spoken} for the {ndim} dimensions of {x.spec}",
                hint="None makes a new axis",
            )
        )
    entries, arrays, axis, dots = [], [], 0, 0
    for k, n in parts:
        if k is ...:
            dots += 1
            new = movement.WHOLE[: ndim - spoken]
        elif isinstance(k, Var):
            arrays.append((axis, k))
            new = movement.WHOLE[:n] or (None,)
        else:
            new = (k,)
        entries += new
        axis += 0 if isinstance(k, int | Dim) else len(new)
    if dots > 1:
        raise IndexError(teach("an index has more than one ...", expected="at most one"))
    return ParsedKey(tuple(entries) if any(k != WHOLE for k in entries) else None, arrays)


def basic_index(key) -> tuple | None:
    """The index of a slice if the key has only numbers, slices and None: the frequent case."""
    index = []
    for k in key if type(key) is tuple else (key,):
        if type(k) is slice:
            k = k.start, k.stop, k.step
            if not (type(k[0]) in BOUNDS and type(k[1]) in BOUNDS and type(k[2]) in BOUNDS):
                return None
        elif type(k) not in BOUNDS:
            return None
        index.append(k)
    return tuple(index)


BOUNDS = (int, type(None))


def parse_entry(k) -> tuple:
    """One entry of a key, and the number of axes that it indexes.

    It is an int, None, Ellipsis, a triple for a slice, or a Var of at least one axis.
    """
    if not isinstance(k, Var):
        if k is None or k is ...:
            return k, 0
        if type(k) is slice:
            return tuple([v if v is None else whole(v) for v in (k.start, k.stop, k.step)]), 1
        k = list(k) if isinstance(k, range) else k
        if isinstance(k, list | tuple) or hasattr(k, "dtype"):
            k = current.top.constant(k, "int64" if not hasattr(k, "dtype") and not len(k) else None)
        elif type(k) is bool:
            return new_axis(k)
        elif hasattr(k, "__index__"):
            return whole(k), 1
    spec = k.spec if isinstance(k, Var) else None
    kind = spec.dtype.kind if spec else ""
    if kind == "b":
        if spec.ndim or current.top.tracing:  # a mask without axes gets a new one
            return (k if spec.ndim else movement.reshape(k, shape=(1,))), spec.ndim
        return new_axis(bool(k))
    if kind and kind in "iu":
        known = not spec.ndim and not current.top.tracing  # else the run gives its value
        return (index(k) if known else k), 1
    raise type_error(
        f"an index of {spec or repr(k)!s:.60}",
        expected="a whole number, slice, None, ..., list or tensor of whole numbers or "
        "booleans, or a tuple of these",
    )


def new_axis(wanted: bool) -> tuple:
    """True makes a new axis of size 1, False one of size 0: a mask that selects nothing."""
    return None if wanted else current.top.constant([False]), 0


# ---- from arrays to positions along one axis --------------------------------------------------


class Positions(NamedTuple):
    """Positions along the one axis into which several axes of an array are merged."""

    order: tuple | None  # of the array's axes before they are merged
    axis: int  # where the merged axes begin
    count: int  # how many they are
    index: Var


def locate(x: Spec, arrays) -> Positions:
    """The positions in the slice x that the arrays of a key name."""
    axes, indices = [], []
    for axis, k in arrays:
        if k.spec.dtype.kind != "b":
            axes.append(axis)
            indices.append(k)
            continue
        span = k.spec.ndim
        if not same_shape(k.spec.shape, x.shape[axis : axis + span]):
            raise IndexError(
                teach(
                    f"a mask of shape {list(k.spec.shape)} at axis {axis} of {x}",
                    expected=f"shape {list(x.shape[axis : axis + span])}",
                )
            )
        if len(arrays) == 1:
            return Positions(None, axis, span, indexing.flatnonzero(k))
        axes += range(axis, axis + span)
        indices += movement.unstack(indexing.nonzero(k), axis=1)
    first, count = axes[0], len(axes)
    sizes = tuple([x.shape[d] for d in axes])
    flat = indices[0] if count == 1 else indexing.flat_index(*indices, shape=sizes)
    if axes == list(range(first, first + count)):
        return Positions(None, first, count, flat)
    others = [d for d in range(len(x.shape)) if d not in axes]
    return Positions((*axes, *others), 0, count, flat)


def merge_axes(x, positions: Positions):
    """x with its axes in order, and the indexed ones merged into one."""
    x = x if positions.order is None else movement.transpose(x, perm=positions.order)
    if positions.count == 1:
        return x
    shape, end = x.spec.shape, positions.axis + positions.count
    size = math.prod(shape[positions.axis : end])
    return movement.reshape(x, shape=(*shape[: positions.axis], size, *shape[end:]))


def split_axes(y, positions: Positions, shape: tuple):
    """The inverse of `merge_axes`, for an x of `shape`."""
    order = positions.order
    y = movement.reshape(y, shape=shape if order is None else tuple([shape[d] for d in order]))
    return y if order is None else movement.transpose(y, perm=movement.inverse(order))


# ---- x[key], and x with x[key] = value --------------------------------------------------------


def getitem(x, key):
    """`x[key]`."""
    if isinstance(key, Var) and key.spec.shape and key.spec.dtype.kind != "b":
        return indexing.take(x, parse_entry(key)[0], axis=0)
    index, arrays = parse_key(x, key)
    if index is not None or not arrays:
        x = movement.slice_(x, index=index or ())
    if not arrays:
        return x
    positions = locate(x.spec, arrays)
    y = indexing.take(merge_axes(x, positions), positions.index, axis=positions.axis)
    if not any(k.spec.ndim and not k.slides for _, k in arrays):
        current.top.note_view(x, y)
    return y


def setitem(x, key, value):
    """A copy of x with `value`, broadcast and in x's dtype, at `key`."""
    index, arrays = parse_key(x, key)
    if not arrays:
        return movement.slice_assign(x, value, index=index or ())
    inner = x if index is None else movement.slice_(x, index=index)
    inner = put(inner, arrays, value)
    return inner if index is None else movement.slice_assign(x, inner, index=index)


def put(x, arrays, value):
    """A copy of x with `value` at the places that a key's arrays name."""
    axis, mask = arrays[0]
    if len(arrays) == 1 and mask.spec.dtype.kind == "b" and not getattr(value, "ndim", 0):
        return put_masked(x, axis, mask, value)
    positions = locate(x.spec, arrays)
    y = indexing.put(merge_axes(x, positions), positions.index, value, axis=positions.axis)
    if positions.count == 1 and positions.order is None:
        return y
    return split_axes(y, positions, x.spec.shape)


def put_masked(x, axis: int, mask, value):
    """A copy of x with one value where the mask holds, whose first axis is `axis` of x. No shape
    depends on the data, so this works in programs too.
    """
    shape, span = mask.spec.shape, mask.spec.ndim
    if not same_shape(shape, x.spec.shape[axis : axis + span]):
        locate(x.spec, [(axis, mask)])
    after = x.spec.ndim - axis - span
    mask = movement.reshape(mask, shape=(*shape, *(1,) * after)) if after else mask
    return where_masked(x, mask, value)


def where_masked(x, mask, value):
    """x with `value` where the mask holds, in the dtype of x; all three broadcast."""
    value = value.astype(x.spec.dtype) if isinstance(value, Var) else value
    return elementwise.where(mask, value, x).astype(x.spec.dtype)
