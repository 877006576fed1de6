"""One place along an axis for each element, and places in row-major order."""

import math

from ..core.checks import require_one_of
from ..core.prelude import Spec, Var, axis_of, broadcast_shapes, indexing, same, value_error
from ..engine.ops import creation, elementwise, movement
from ..ops.scatter import along_index, scatter_max, scatter_min, scatter_prod, take_along
from .shaping import flatten

# ---- one place along an axis for each element --------------------------------------------------


def take_along_axis(arr, indices, axis, broadcast=True):
    """`arr[i]` with `i[axis]` replaced by `indices[i]`.

    With `broadcast` the other axes of `indices` are expanded to those of `arr`; without, they may
    be shorter.

    >>> x = paddle.to_tensor([[1, 2, 3], [4, 5, 6]])
    >>> paddle.take_along_axis(x, paddle.to_tensor([[2], [0]]), 1).tolist()
    [[3], [4]]
    """
    axis = axis_of(axis, arr.spec.ndim)
    if broadcast:
        indices = spread_along(indices, arr.spec, axis)
    return take_along(arr, indices, axis)


def spread_along(indices, x: Spec, axis: int):
    """Indices expanded to the sizes of x, except along `axis`."""
    if indices.spec.ndim != x.ndim:
        raise value_error(
            f"indices {indices.spec} for {x}", f"as many dimensions as x has, {x.ndim}"
        )
    size = indices.spec.shape[axis]
    one = movement.replace_axis(x.shape, axis, 1)
    shape = movement.replace_axis(broadcast_shapes(indices.spec.shape, one), axis, size)
    if shape != movement.replace_axis(x.shape, axis, size):
        raise ValueError(f"indices {indices.spec} do not broadcast to {x} along axis {axis}")
    return movement.broadcast_to(indices, shape=shape)


FOLDS = {
    "mul": (scatter_prod, lambda dtype: 1),
    "amin": (scatter_min, lambda dtype: limits(dtype)[1]),
    "amax": (scatter_max, lambda dtype: limits(dtype)[0]),
}
"""Ways to fold values into a place, each with the value that changes nothing."""


def limits(dtype) -> tuple:
    """The lowest and the highest value of a dtype."""
    bits = 8 * dtype.itemsize
    ranges = {"u": (0, 2**bits - 1), "i": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)}
    return ranges.get(dtype.kind, (-math.inf, math.inf))


def put_along_axis(arr, indices, values, axis, reduce="assign", include_self=True, broadcast=True):
    """`arr` with `values` folded in at the places `take_along_axis` reads.

    `reduce` is "assign" (the last value stays), "add", "mul" ("multiply"), "mean", "amin" or
    "amax"; without `include_self`, what stood there before does not count.

    >>> x, i = paddle.to_tensor([[1.0, 2.0]]), paddle.to_tensor([[0, 0]])
    >>> paddle.put_along_axis(x, i, paddle.to_tensor([[4.0, 5.0]]), 1, "add").tolist()
    [[10.0, 2.0]]
    """
    reduce = {"multiply": "mul"}.get(reduce, reduce)
    require_one_of("put_along_axis", ("assign", "add", "mean", *FOLDS), reduce=reduce)
    spec = arr.spec
    axis = axis_of(axis, spec.ndim)
    if broadcast:
        indices = spread_along(indices, spec, axis)
    places = flatten(along_index(indices, shape=spec.shape, axis=axis))
    flat = fold_values(
        flatten(arr), places, spread_values(values, indices.spec.shape, spec), reduce, include_self
    )
    return movement.reshape(flat, shape=spec.shape)


def spread_values(values, shape: tuple, x: Spec):
    """A vector with one value, in the dtype of x, for each place; further values are left out."""
    if not isinstance(values, Var):
        return creation.full(shape=(math.prod(shape),), value=values, dtype=x.dtype)
    own = values.spec.shape
    if len(own) == len(shape) and any(n > k for n, k in zip(own, shape, strict=True)):
        values = movement.slice_(values, index=tuple((0, k, 1) for k in shape))
    return flatten(movement.broadcast_to(values.astype(x.dtype), shape=shape))


def fold_values(x, places, values, reduce: str, include_self: bool):
    """The vector x with values folded in at places."""
    size = x.spec.shape
    if reduce == "assign":
        return indexing.put(x, places, values, axis=0)
    if reduce in FOLDS:
        fold, neutral = FOLDS[reduce]
        if not include_self:
            x = indexing.put(x, places, neutral(x.spec.dtype), axis=0)
        return fold(x, places, values)
    if not include_self:
        x = indexing.put(x, places, 0, axis=0)
    total = x + indexing.scatter_sum(values, places, shape=size, axis=0)
    if reduce == "add":
        return total
    ones = creation.full(shape=values.spec.shape, value=1, dtype=x.spec.dtype)
    count = indexing.scatter_sum(ones, places, shape=size, axis=0)
    count = count + 1 if include_self else elementwise.maximum(count, 1)
    return total / count if x.spec.dtype.kind not in "iu" else total // count


REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "mean", "amax": "amax", "amin": "amin"}


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """`input` with `src[i]` folded in at `i`, its place along `dim` replaced by `index[i]`.

    `reduce` is sum, prod, mean, amax or amin.

    >>> x, i = paddle.zeros([2]), paddle.to_tensor([0, 0, 1])
    >>> paddle.scatter_reduce(x, 0, i, paddle.to_tensor([1.0, 2.0, 3.0]), "sum").tolist()
    [3.0, 3.0]
    """
    if reduce not in REDUCTIONS:
        raise value_error(f"scatter_reduce by {reduce!r}", ", ".join(REDUCTIONS))
    how = REDUCTIONS[reduce]
    return put_along_axis(input, index, src, dim, how, include_self, broadcast=False)


def scatter_add(input, dim, index, src):
    """`scatter_reduce` by "sum".

    >>> i = paddle.to_tensor([1, 1])
    >>> paddle.scatter_add(paddle.ones([2]), 0, i, paddle.ones([2])).tolist()
    [1.0, 3.0]
    """
    return scatter_reduce(input, dim, index, src, "sum")


def index_sample(x, index):
    """`x[i, index[i, j]]` for two matrices.

    >>> x = paddle.to_tensor([[1, 2, 3], [4, 5, 6]])
    >>> paddle.index_sample(x, paddle.to_tensor([[0, 2], [1, 1]])).tolist()
    [[1, 3], [5, 5]]
    """
    matrices = x.spec.ndim == index.spec.ndim == 2
    if not matrices or not same(x.spec.shape[0], index.spec.shape[0]):
        raise value_error(f"index_sample of {x.spec} by {index.spec}", "matrices of as many rows")
    return take_along(x, index, 1)


def take(x, index, mode="raise", name=None):
    """The elements of x at row-major positions `index`.

    `mode` says what a position outside does: "raise" an error, "wrap" around, or "clip" to the ends
    (then negative ones too).

    >>> paddle.take(paddle.arange(6).reshape([2, 3]), paddle.to_tensor([0, -1])).tolist()
    [0, 5]
    """
    size = x.spec.size
    if mode not in ("raise", "wrap", "clip"):
        raise value_error(f"take with mode={mode!r}", "raise, wrap or clip")
    if mode == "wrap":
        index = index % size
    elif mode == "clip":
        index = elementwise.maximum(elementwise.minimum(index, size - 1), 0)
    return indexing.take(flatten(x), index, axis=0)


__all__ = [
    "index_sample", "put_along_axis", "scatter_add", "scatter_reduce", "take", "take_along_axis",
]  # fmt: skip
