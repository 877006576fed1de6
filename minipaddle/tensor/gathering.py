"""Gather and scatter: reading and changing the places that tensors of indices or masks name.

Nothing here changes x: each `scatter` gives a new tensor.
"""

import math

from ..core.prelude import (
    Dim,
    as_operator,
    axis_of,
    indexing,
    int64,
    type_error,
    value_error,
    whole_numbers,
)
from ..engine.ops import creation, elementwise, movement
from ..engine.ops.subscripts import getitem, setitem
from ..ops import index_arrays
from .arranging import broadcast_tensors
from .shaping import flatten

# ---- slices along one axis -------------------------------------------------------------------


def gather(x, index, axis=None, name=None):
    """The slices of x at the places `index` (0-D, 1-D, or one column) along `axis`, 0 if None.

    >>> paddle.gather(paddle.to_tensor([[1, 2], [3, 4], [5, 6]]), paddle.to_tensor([0, 2])).tolist()
    [[1, 2], [5, 6]]
    """
    axis = 0 if axis is None else axis_of(axis, x.spec.ndim)
    return indexing.take(x, row(index) if index.spec.ndim else index, axis=axis)


def row(index):
    """A vector of places from a vector or one column of them."""
    shape = index.spec.shape
    if len(shape) == 1:
        return index
    if len(shape) != 2 or shape[1] != 1:
        raise value_error(f"places {index.spec}", "a vector, or a single column")
    return movement.reshape(index, shape=shape[:1])


def index_select(x, index, axis=0, name=None):
    """The slices of x at the places `index` (1-D) along `axis`.

    >>> x = paddle.to_tensor([[1, 2, 3], [4, 5, 6]])
    >>> paddle.index_select(x, paddle.to_tensor([2, 0]), axis=1).tolist()
    [[3, 1], [6, 4]]
    """
    if not x.spec.ndim:
        raise value_error(
            f"index_select of {x.spec}", "an axis to select along", hint="x.reshape([1])"
        )
    return indexing.take(x, row(index), axis=axis_of(axis, x.spec.ndim))


def index_add(x, index, axis, value, alpha=1, name=None):
    """x with the slices of alpha · `value` added at the places `index` along `axis`.

    >>> i = paddle.to_tensor([0, 0])
    >>> paddle.index_add(paddle.zeros([3]), i, 0, paddle.to_tensor([1.0, 2.0])).tolist()
    [3.0, 0.0, 0.0]
    """
    axis = axis_of(axis, x.spec.ndim)
    value = value if alpha == 1 else value * alpha
    return x + indexing.scatter_sum(value, row(index), shape=x.spec.shape, axis=axis)


def index_fill(x, index, axis, value, name=None):
    """x with `value` in the slices `index` along `axis`.

    >>> paddle.index_fill(paddle.zeros([3]), paddle.to_tensor([0, 2]), 0, 7).tolist()
    [7.0, 0.0, 7.0]
    """
    return indexing.put(x, row(index), value, axis=axis_of(axis, x.spec.ndim))


@as_operator("scatter")
def scatter(x, index, updates, overwrite=True, name=None):
    """x with its rows `index` replaced by the rows of `updates`.

    Of rows named twice the last one stays; with `overwrite=False` they are added up instead.

    >>> i, updates = paddle.to_tensor([1, 1]), paddle.to_tensor([2.0, 3.0])
    >>> paddle.scatter(paddle.ones([3]), i, updates).tolist()
    [1.0, 3.0, 1.0]
    >>> paddle.scatter(paddle.ones([3]), i, updates, overwrite=False).tolist()
    [1.0, 5.0, 1.0]
    """
    index = row(index) if index.spec.ndim else movement.reshape(index, shape=(1,))
    if overwrite:
        return indexing.put(x, index, updates, axis=0)
    rest = indexing.put(x, index, 0, axis=0)
    return rest + indexing.scatter_sum(updates, index, shape=x.spec.shape, axis=0)


# ---- one index vector for each place -----------------------------------------------------------


def nd_index(index, shape: tuple):
    """Positions in the merged leading axes of `shape`, from index vectors as the last axis."""
    depth = index.spec.shape[-1]
    if depth > len(shape):
        raise value_error(
            f"index vectors of {depth} numbers into {len(shape)} dimensions {list(shape)}"
        )
    return index_arrays.flat_index(
        *movement.unstack(index, axis=index.spec.ndim - 1), shape=shape[:depth]
    )


def gather_nd(x, index, name=None):
    """`x[i, j, …]` for each vector (i, j, …) in the last axis of `index`.

    >>> x = paddle.to_tensor([[1, 2], [3, 4]])
    >>> paddle.gather_nd(x, paddle.to_tensor([[0, 1], [1, 0]])).tolist()
    [2, 3]
    """
    shape, places = x.spec.shape, index.spec.shape
    if not places[-1]:
        return movement.broadcast_to(x, shape=(*places[:-1], *shape))
    depth = places[-1]
    flat = movement.reshape(x, shape=(math.prod(shape[:depth]), *shape[depth:]))
    return indexing.take(flat, nd_index(index, shape), axis=0)


def scatter_nd(index, updates, shape, name=None):
    """Zeros of `shape` with `updates` added at the places of the vectors in `index`.

    >>> i = paddle.to_tensor([[1], [1]])
    >>> paddle.scatter_nd(i, paddle.to_tensor([2.0, 3.0]), [3]).tolist()
    [0.0, 5.0, 0.0]
    """
    shape, depth = whole_numbers(shape), index.spec.shape[-1]
    merged = (math.prod(shape[:depth]), *shape[depth:])
    sums = indexing.scatter_sum(updates, nd_index(index, shape), shape=merged, axis=0)
    return movement.reshape(sums, shape=shape)


def scatter_nd_add(x, index, updates, name=None):
    """x with `updates` added at the places of the vectors in `index`.

    >>> i = paddle.to_tensor([[1], [1]])
    >>> paddle.scatter_nd_add(paddle.ones([3]), i, paddle.to_tensor([2.0, 3.0])).tolist()
    [1.0, 6.0, 1.0]
    """
    return x + scatter_nd(index, updates, x.spec.shape)


def index_put(x, indices, value, accumulate=False, name=None):
    """x with `value` at `x[indices]`, or added there.

    >>> i = paddle.to_tensor([0, 1])
    >>> paddle.index_put(paddle.zeros([2, 2]), (i, i), paddle.to_tensor(5.0)).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    key = tuple(indices)
    if not accumulate:
        return setitem(x, key, value)
    size = math.prod(x.spec.shape)
    positions = movement.reshape(
        creation.arange(size=size, start=0, step=1, dtype=int64.numpy), shape=x.spec.shape
    )
    positions = getitem(positions, key)
    value = movement.broadcast_to(value, shape=positions.spec.shape)
    sums = indexing.scatter_sum(value, positions, shape=(size,), axis=0)
    return x + movement.reshape(sums, shape=x.spec.shape)


# ---- masks -----------------------------------------------------------------------------------


def masked_select(x, mask, name=None):
    """The elements of x where the mask holds, in row-major order; both broadcast.

    A program knows the shape when it runs.

    >>> x = paddle.to_tensor([1, 2, 3])
    >>> paddle.masked_select(x, x > 1).tolist()
    [2, 3]
    """
    x, mask = broadcast_mask(x, mask)
    return indexing.take(flatten(x), index_arrays.flatnonzero(mask), axis=0)


def broadcast_mask(x, mask):
    """x and a mask, expanded to the shape they have together."""
    if mask.spec.dtype.kind != "b":
        raise type_error(f"a mask {mask.spec}", "a boolean tensor", hint="mask != 0")
    return broadcast_tensors([x, mask])


def masked_fill(x, mask, value, name=None):
    """x with `value` where the mask holds; both broadcast.

    >>> x = paddle.to_tensor([1.0, 2.0, 3.0])
    >>> paddle.masked_fill(x, x > 1, 0.0).tolist()
    [1.0, 0.0, 0.0]
    """
    return index_arrays.where_masked(x, mask, value)


def masked_scatter(x, mask, value, name=None):
    """x with the elements of `value`, in order, where the mask holds.

    >>> x = paddle.to_tensor([1, 2, 3])
    >>> paddle.masked_scatter(x, x > 1, paddle.to_tensor([7, 8, 9])).tolist()
    [1, 7, 8]
    """
    x, mask = broadcast_mask(x, mask)
    places, value = index_arrays.flatnonzero(mask), flatten(value)
    count = places.spec.size
    if isinstance(count, Dim):
        value = indexing.take(value, creation.arange(size=count, dtype=int64.numpy), axis=0)
    elif value.spec.size < count:
        raise value_error(f"masked_scatter of {value.spec.size} values into {count} places")
    else:
        value = movement.slice_(value, index=((0, count, 1),))
    flat = indexing.put(flatten(x), places, value, axis=0)
    return movement.reshape(flat, shape=x.spec.shape)


def shard_index(input, index_num, nshards, shard_id, ignore_value=-1):
    """Whole numbers below `index_num`, split into `nshards` blocks, as numbers within their block.

    Numbers of another shard become `ignore_value`.

    >>> paddle.shard_index(paddle.to_tensor([[16], [1]]), 20, 2, 0).tolist()
    [[-1], [1]]
    """
    if not 0 <= shard_id < nshards:
        raise value_error(f"shard_id={shard_id}", f"a number from 0 to {nshards - 1}")
    size = -(-index_num // nshards)
    return elementwise.where(input // size == shard_id, input % size, ignore_value)


__all__ = [
    "gather", "gather_nd", "index_add", "index_fill", "index_put", "index_select", "masked_fill",
    "masked_scatter", "masked_select", "scatter", "scatter_nd", "scatter_nd_add", "shard_index",
]  # fmt: skip
