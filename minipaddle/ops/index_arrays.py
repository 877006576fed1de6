"""Masks, and several arrays, in `x[key]`: they become positions along one axis.

Axes that arrays index are merged into one; `take` and `put` work on it. As in NumPy, the new axes
stand where the arrays stand if these are neighbours, else in front. A mask with one value to put
needs no positions.
"""

import math
from typing import NamedTuple

from ..engine.core.dim import create_unknown, same_shape
from ..engine.core.dtype import int64
from ..engine.core.errors import teach
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.core.spec import broadcast_shapes
from ..engine.ops import elementwise, movement
from ..engine.ops.gather import put, take, wrap_negative
from ..engine.ops.subscripts import BY_ARRAYS
from ..engine.ops.var import Var

# ---- positions -------------------------------------------------------------------------------


@opaque
def flat_index(m, *indices, shape):
    """The positions in a row-major array of `shape` of the places given by one array per axis."""
    pairs = zip(indices, shape, strict=True)
    places = [wrap_negative(m, i.astype("int64", copy=False), n) for i, n in pairs]
    return movement.ravel(places, shape)


@flat_index.shape
def _(*indices, shape):
    if any(i.dtype.kind not in "iu" for i in indices):
        raise TypeError(f"indices are whole numbers, not {', '.join(map(str, indices))}")
    return Spec(broadcast_shapes(*(i.shape for i in indices)), int64.numpy)


@opaque
def nonzero(m, x):
    """The index of every element that is not zero, one a row."""
    return m.argwhere(x)


nonzero.shape(lambda x: Spec((create_unknown(), x.ndim), int64.numpy))


@opaque
def flatnonzero(m, x):
    """The row-major position of every element that is not zero."""
    return m.flatnonzero(x)


flatnonzero.shape(lambda x: Spec((create_unknown(),), int64.numpy))


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
            return Positions(None, axis, span, flatnonzero(k))
        axes += range(axis, axis + span)
        indices += movement.unstack(nonzero(k), axis=1)
    first, count = axes[0], len(axes)
    sizes = tuple([x.shape[d] for d in axes])
    flat = indices[0] if count == 1 else flat_index(*indices, shape=sizes)
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


# ---- reading and writing ---------------------------------------------------------------------


def take_at_arrays(x, arrays):
    """x at the places that a key's arrays name."""
    positions = locate(x.spec, arrays)
    return take(merge_axes(x, positions), positions.index, axis=positions.axis)


def put_at_arrays(x, arrays, value):
    """A copy of x with `value` at the places that a key's arrays name."""
    axis, mask = arrays[0]
    if len(arrays) == 1 and mask.spec.dtype.kind == "b" and not getattr(value, "ndim", 0):
        return put_masked(x, axis, mask, value)
    positions = locate(x.spec, arrays)
    y = put(merge_axes(x, positions), positions.index, value, axis=positions.axis)
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


BY_ARRAYS.update(take=take_at_arrays, put=put_at_arrays)
