"""Sorting, searching, and the places of elements.

Orders are stable: equal elements stay in the order they came in; nan counts as the largest.
"""

from ..core.prelude import Var, axis_of, dt, elementwise, movement, type_error, value_error, whole
from ..ops import index_arrays, sorting
from ..ops.scatter import take_along
from .shaping import squeeze


def where(condition, x=None, y=None, name=None):
    """x where the condition holds, otherwise y; all three broadcast.

    Without x and y, the places where it holds, as `nonzero(condition, as_tuple=True)`.

    >>> paddle.where(paddle.to_tensor([True, False]), 1.0, paddle.zeros([2])).tolist()
    [1.0, 0.0]
    """
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise value_error("where with one of x and y", "both of them, or neither")
    if not isinstance(condition, Var):
        raise type_error(
            f"where was given the condition {condition!r:.60}",
            "a tensor of booleans",
            hint="of a Python value: x if condition else y",
        )
    if condition.spec.dtype.kind != "b":
        raise value_error(
            f"where was given a condition of {condition.spec}", "booleans", hint="condition != 0"
        )
    return elementwise.where(condition, x, y)


def nonzero(x, as_tuple=False):
    """The index of each element that is not zero, as the rows of a matrix [count, ndim].

    With `as_tuple`, a vector for each axis. A program knows the count when it runs.

    >>> paddle.nonzero(paddle.to_tensor([[1, 0], [0, 2]])).tolist()
    [[0, 0], [1, 1]]
    """
    places = index_arrays.nonzero(x)
    return movement.unstack(places, axis=1) if as_tuple else places


# ---- order -----------------------------------------------------------------------------------


def sort(x, axis=-1, descending=False, stable=False, name=None):
    """The elements in rising (or falling) order along `axis`.

    >>> paddle.sort(paddle.to_tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    x, back = ensure_axis(x)
    return back(sorting.sort(x, axis=axis_of(axis, x.spec.ndim), descending=descending))


def argsort(x, axis=-1, descending=False, stable=False, name=None):
    """The places of the elements in rising (or falling) order along `axis`; always stable.

    >>> paddle.argsort(paddle.to_tensor([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    x, back = ensure_axis(x)
    return back(sorting.argsort(x, axis=axis_of(axis, x.spec.ndim), descending=descending))


def ensure_axis(x):
    """x with at least one axis, and a function that removes the axis from results of a 0-D x."""
    if x.spec.shape:
        return x, lambda y: y
    return movement.reshape(x, shape=(1,)), lambda y: movement.reshape(y, shape=())


def topk(x, k, axis=None, largest=True, sorted=True, name=None):
    """The `k` largest (or smallest) elements along `axis` (the last), best first; their places.

    Raises ValueError when there are fewer than k.

    >>> values, places = paddle.topk(paddle.to_tensor([1, 5, 3]), 2)
    >>> values.tolist(), places.tolist()
    ([5, 3], [1, 2])
    """
    x, back = ensure_axis(x)
    axis = axis_of(-1 if axis is None else axis, x.spec.ndim)
    places = sorting.topk_index(x, k=whole(k), axis=axis, largest=largest)
    return back(take_along(x, places, axis)), back(places)


def kthvalue(x, k, axis=None, keepdim=False, name=None):
    """The `k`-th smallest element along `axis` (the last), counted from 1, and its place.

    >>> value, place = paddle.kthvalue(paddle.to_tensor([5, 1, 3]), 2)
    >>> value.item(), place.item()
    (3, 2)
    """
    x, back = ensure_axis(x)
    axis = axis_of(-1 if axis is None else axis, x.spec.ndim)
    places = sorting.topk_index(x, k=whole(k), axis=axis, largest=False)
    return choose(x, movement.slice_(places, index=last(axis, k)), axis, keepdim, back)


def last(axis: int, k: int) -> tuple:
    """The slice that keeps place k - 1 of an axis."""
    return (*movement.WHOLE[:axis], (k - 1, k, 1))


def choose(x, places, axis: int, keepdim: bool, back):
    """The elements at one place along `axis` each, and the places; without the axis if wanted."""
    pair = take_along(x, places, axis), places
    return tuple(back(y) if keepdim else back(squeeze(y, axis)) for y in pair)


def mode(x, axis=-1, keepdim=False, name=None):
    """The most frequent element along `axis` and its last place; of several, the smallest.

    >>> value, place = paddle.mode(paddle.to_tensor([2, 1, 2, 3]))
    >>> value.item(), place.item()
    (2, 2)
    """
    x, back = ensure_axis(x)
    axis = axis_of(axis, x.spec.ndim)
    return choose(x, sorting.mode_index(x, axis=axis), axis, keepdim, back)


def searchsorted(
    sorted_sequence, values, out_int32=False, right=False, name=None, *, side=None, sorter=None
):
    """Where to insert `values` so that each row of `sorted_sequence` stays sorted.

    The leftmost place, or the right one (`right`, or `side="right"`). A vector serves values of any
    shape; `sorter` holds the places that sort a sequence which is not.

    >>> row = paddle.to_tensor([1, 3, 5])
    >>> paddle.searchsorted(row, paddle.to_tensor([[3, 6]])).tolist()
    [[1, 3]]
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise value_error(f"searchsorted with side={side!r}, right={right}")
    right = right or side == "right"
    if sorter is not None:
        sorted_sequence = take_along(sorted_sequence, sorter, sorter.spec.ndim - 1)
    sorting.searchsorted.infer(sorted_sequence.spec, values.spec, right=right)
    places = sorting.searchsorted(sorted_sequence, values, right=right)
    return places.astype("int32") if out_int32 else places


def bucketize(x, sorted_sequence, out_int32=False, right=False, name=None):
    """Between which entries of a sorted vector each element of x falls.

    >>> paddle.bucketize(paddle.to_tensor([2, 9]), paddle.to_tensor([1, 3, 5])).tolist()
    [1, 3]
    """
    if sorted_sequence.spec.ndim != 1:
        raise value_error(f"bucketize into {sorted_sequence.spec}", "a vector")
    return searchsorted(sorted_sequence, x, out_int32, right)


# ---- distinct values -------------------------------------------------------------------------


def unique(
    x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64",
    sorted=True, name=None,
):  # fmt: skip
    """The distinct elements (slices, with an axis), in rising order.

    On request with: the first place of each, which of them every element is, how often it comes;
    these in `dtype`. No gradient; a program knows the shape when it runs.

    >>> values, counts = paddle.unique(paddle.to_tensor([3, 1, 3]), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """
    axis = None if axis is None else axis_of(axis, x.spec.ndim)
    values, *more = sorting.unique(x, axis=axis)
    return add_extras(values, more, (return_index, return_inverse, return_counts), dtype)


def add_extras(values, more, wanted, dtype):
    """The values alone, or a tuple of them and the `more` that is wanted, cast to `dtype`."""
    dtype = dt.resolve(dtype)
    more = [y.astype(dtype) for y, take in zip(more, wanted, strict=True) if take]
    return (values, *more) if more else values


def unique_consecutive(
    x, return_inverse=False, return_counts=False, axis=None, dtype="int64", name=None
):
    """x (flattened without an axis) without elements that equal the one before.

    On request with: which run every element was in, and how long each run was.

    >>> paddle.unique_consecutive(paddle.to_tensor([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    axis = None if axis is None else axis_of(axis, x.spec.ndim)
    values, *more = sorting.unique_consecutive(x, axis=axis)
    return add_extras(values, more, (return_inverse, return_counts), dtype)


__all__ = [
    "argsort", "bucketize", "kthvalue", "mode", "nonzero", "searchsorted", "sort", "topk", "unique",
    "unique_consecutive", "where",
]  # fmt: skip
