"""Gather and scatter: places named by arrays of whole numbers.

Three operators do the work, on one axis: `take` reads, `put` overwrites, and `scatter_sum`, the
adjoint of `take`, adds up. `take` and `put` are movements without an index map: the data say where
an element comes from.
"""

from __future__ import annotations

import math
from functools import partial

from ..core.dim import create_unknown
from ..core.dtype import bool_
from ..core.errors import value_error
from ..core.op import movement, names, opaque
from ..core.record import Spec
from .movement import check_fits, replace_axis, sum_to_spec

# ---- read, overwrite, add up -----------------------------------------------------------------


@movement
def take(m, x, index, *, axis):
    """The slices of x at the places `index` along `axis`, which takes the shape of `index`.

    Negative numbers count from the end. A place outside the axis is an IndexError.
    """
    if not x.size:  # NumPy checks places only if something is moved
        wrap_negative(m, index, x.shape[axis])
    return x.take(index, axis)


@take.shape
def _(x, index, *, axis):
    if index.dtype.kind not in "iu":
        raise TypeError(f"indices are whole numbers, not {index}")
    return Spec(replace_axis(x.shape, axis, *index.shape), x.dtype)


take.vjp(x=lambda g, x_spec, index, axis: scatter_sum(g, index, shape=x_spec.shape, axis=axis))


@partial(take.shards, linear="x")
def _(x, index, *, axis):
    own, at = names(x.ndim), names(26)[x.ndim : x.ndim + index.ndim]
    return f"{own[:axis]}.{own[axis + 1 :]},{at}->{own[:axis]}{at}{own[axis + 1 :]}"


@opaque
def scatter_sum(m, x, index, *, shape, axis):
    """Zeros of `shape` with the slices of x added at the places `index` along `axis`."""
    scatter_sum.infer(x, index, shape=shape, axis=axis)  # an update of another shape might fit too
    size, rest = shape[axis], replace_axis(shape, axis)
    rows = m.moveaxis(x.reshape(replace_axis(shape, axis, index.size)), axis, 0)
    rows = rows.reshape(index.size, math.prod(rest))
    y = add_rows(m, rows, wrap_negative(m, index.reshape(-1), size), size)
    return m.moveaxis(y.reshape(size, *rest), 0, axis)


@scatter_sum.shape
def _(x, index, *, shape, axis):
    if x.shape != replace_axis(shape, axis, *index.shape):
        raise ValueError(
            f"updates of shape {list(x.shape)} for places {list(index.shape)} of axis {axis} of "
            f"{list(shape)}: {list(replace_axis(shape, axis, *index.shape))} is needed"
        )
    return Spec(tuple(shape), x.dtype)


scatter_sum.vjp(x=lambda g, index, axis: take(g, index, axis=axis))


@partial(scatter_sum.shards, linear="x")
def _(x, index, *, shape, axis):
    own, at = names(len(shape)), names(26)[len(shape) : len(shape) + index.ndim]
    return f"{own[:axis]}{at}{own[axis + 1 :]},{at}->{own[:axis]}.{own[axis + 1 :]}", "shape"


def add_rows(m, rows, index, size: int):
    """y[index[k]] += rows[k] on `size` rows of zeros.

    A large sum is the product with the sparse matrix that has a one at (index[k], k): five to
    ten times as fast as adding one by one.
    """
    if m.name == "numpy" and rows.size > FEW and rows.dtype.kind in "fiu":
        n = len(index)
        ones, starts = m.ones(n, dtype=rows.dtype), m.arange(n + 1)
        return m.sparse.csc_array((ones, index, starts), shape=(size, n)) @ rows
    y = m.zeros((size, rows.shape[1]), dtype=rows.dtype)
    m.add.at(y, index, rows)
    return y


FEW = 1024


def wrap_negative(m, index, size: int):
    """Places counted from the front; raises IndexError for one outside [-size, size).

    On a GPU there is no such check, since each operator would have to wait for the values. (A
    compiled program checks once in a run.)
    """
    if m.name == "numpy" and index.size:
        if index.view(f"u{index.itemsize}").max() < size:  # as unsigned, negative ones are huge
            return index
        low, high = index.min(), index.max()
        if low < -size or high >= size:
            bad = low if low < -size else high
            raise IndexError(f"index {bad} is out of range for an axis of size {size}")
    return m.where(index < 0, index + size, index)


@movement
def put(m, x, index, value, *, axis):
    """A copy of x with `value`, broadcast, in the places `index` along `axis`.

    A place that is named twice keeps the last value. The gradient goes to every value put there.
    """
    y = x.copy()
    y[(*(slice(None),) * axis, index, ...)] = value
    return y


@put.shape
def _(x, index, value, *, axis):
    check_fits(value, take.infer(x, index, axis=axis).shape)
    return x


put.vjp(
    x=lambda g, index, axis: put(g, index, 0, axis=axis),
    value=lambda g, index, value_spec, axis: sum_to_spec(take(g, index, axis=axis), value_spec),
)

# ---- a value as a size -----------------------------------------------------------------------


@opaque
def extent(m, count):
    """An array of `count` empty places: it turns a value into a size."""
    count = int(count)
    if count < 0:
        hint = "the -1 of a reshape must be a number of Python: which size remains is known then"
        raise value_error(f"a size of {count}", expected="0 or more", hint=hint)
    return m.broadcast_to(m.zeros((), dtype=bool), (count,))


extent.shape(lambda count: Spec((create_unknown(),), bool_.numpy))
