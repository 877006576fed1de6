"""Sums, products and extrema over axes, and the running ones along an axis."""

from ..core.axes import axis_of, no_out, number, whole_numbers, write_into
from ..core.prelude import Var, elementwise, normalize_axes, reduction, value_error
from ..engine.core.dtype import resolve
from ..ops import reductions, scan
from ..ops.scatter import take_along
from .search import ensure_axis


def reduce_over(op, x, axis, keepdim, dtype=None, out=None):
    """`op` over what users write for an axis: a number, a list, a tensor, or None for all.

    With a `dtype` x is cast to it first; the result is written into `out`, if that is given.
    """
    x = x if dtype is None else x.astype(dtype)
    if isinstance(axis, Var):
        axis = [number(d) for d in whole_numbers(axis, "axis")]
    y = op(x, axis=normalize_axes(axis, len(x.spec.shape)), keepdim=bool(keepdim))
    return y if out is None else write_into(out, y)


# ---- over axes -------------------------------------------------------------------------------


def sum(x, axis=None, dtype=None, keepdim=False, name=None, *, out=None):
    """Sum over `axis` (a number, a list, or None for all).

    Booleans and int32 are summed in int64, unless `dtype` says otherwise.

    >>> paddle.sum(paddle.ones([2, 3]), axis=1).tolist()
    [3.0, 3.0]
    """
    return reduce_over(reduction.sum, x, axis, keepdim, dtype, out)


def nansum(x, axis=None, dtype=None, keepdim=False, name=None):
    """Sum over `axis` that passes over nan.

    >>> paddle.nansum(paddle.to_tensor([1.0, float("nan"), 2.0])).item()
    3.0
    """
    return sum(elementwise.where(x == x, x, 0), axis, dtype, keepdim)


def prod(x, axis=None, keepdim=False, dtype=None, out=None, name=None):
    """Product over `axis`.

    >>> paddle.prod(paddle.to_tensor([[1, 2], [3, 4]]), axis=0).tolist()
    [3, 8]
    """
    return reduce_over(reductions.prod, x, axis, keepdim, dtype, out)


def max(x, axis=None, keepdim=False, name=None, *, out=None):
    """Largest value over `axis`; equal values share the gradient evenly.

    Raises ValueError when the axis has size 0.

    >>> paddle.max(paddle.to_tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1).tolist()
    [5.0, 7.0]
    """
    return reduce_over(reduction.max, x, axis, keepdim, out=out)


def min(x, axis=None, keepdim=False, name=None, *, out=None):
    """Smallest value over `axis`; equal values share the gradient evenly.

    Raises ValueError when the axis has size 0.

    >>> paddle.min(paddle.to_tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1).tolist()
    [1.0, 3.0]
    """
    return reduce_over(reduction.min, x, axis, keepdim, out=out)


def amax(x, axis=None, keepdim=False, name=None, *, out=None):
    """The same as `max`.

    >>> paddle.amax(paddle.to_tensor([3.0, 7.0])).item()
    7.0
    """
    return reduce_over(reduction.max, x, axis, keepdim, out=out)


def amin(x, axis=None, keepdim=False, name=None, *, out=None):
    """The same as `min`.

    >>> paddle.amin(paddle.to_tensor([3.0, 7.0])).item()
    3.0
    """
    return reduce_over(reduction.min, x, axis, keepdim, out=out)


def logsumexp(x, axis=None, keepdim=False, name=None, *, out=None):
    """log Σ eˣ over `axis`, without overflow.

    >>> paddle.logsumexp(paddle.to_tensor([1000.0, -1000.0])).item()
    1000.0
    """
    dtype = "float32" if x.spec.dtype.kind in "biu" else None
    return reduce_over(reductions.logsumexp, x, axis, keepdim, dtype, out)


def count_nonzero(x, axis=None, keepdim=False, name=None):
    """The number of elements over `axis` that are not 0, in int64.

    >>> paddle.count_nonzero(paddle.to_tensor([0.0, 2.0, 3.0])).item()
    2
    """
    return reduce_over(reduction.sum, x != 0, axis, keepdim)


def all(x, axis=None, keepdim=False, name=None, *, out=None):
    """Is every element over `axis` true (not 0)?

    >>> paddle.all(paddle.to_tensor([True, False])).item()
    False
    """
    return reduce_over(reduction.all, x, axis, keepdim, out=out)


def any(x, axis=None, keepdim=False, name=None, *, out=None):
    """Is any element over `axis` true (not 0)?

    >>> paddle.any(paddle.to_tensor([True, False])).item()
    True
    """
    return reduce_over(reduction.any, x, axis, keepdim, out=out)


def argmax(x, axis=None, keepdim=False, dtype="int64", name=None):
    """The place of the (first) largest element along `axis`, or in the flattened x.

    >>> paddle.argmax(paddle.to_tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1).tolist()
    [1, 0]
    """
    return find_place(reductions.argmax, x, axis, keepdim, dtype)


def argmin(x, axis=None, keepdim=False, dtype="int64", name=None):
    """The place of the (first) smallest element along `axis`, or in the flattened x.

    >>> paddle.argmin(paddle.to_tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1).tolist()
    [0, 1]
    """
    return find_place(reductions.argmin, x, axis, keepdim, dtype)


def find_place(op, x, axis, keepdim, dtype):
    """`op` gives places in int64; Paddle's users may want int32."""
    axis = None if axis is None or not x.spec.ndim else axis_of(axis, x.spec.ndim)
    return place_dtype(op(x, axis=axis, keepdim=bool(keepdim)), dtype)


def place_dtype(place, dtype):
    """Places in the dtype asked for: int64 or int32."""
    if dtype is None or resolve(dtype).name not in ("int32", "int64"):
        raise value_error(f"dtype={dtype!r} for places", '"int64" or "int32"')
    return place if resolve(dtype) == place.spec.dtype else place.astype(dtype)


# ---- along an axis ---------------------------------------------------------------------------


def flatten_for_scan(x, axis, dtype=None, out=None):
    """(x, axis, back) for a scan: without an axis x is flattened; `back` is as in `ensure_axis`."""
    if out is not None:
        raise no_out()
    x = x if dtype is None else x.astype(dtype)
    if axis is None:
        return x.reshape([-1]), 0, lambda y: y
    x, back = ensure_axis(x)
    return x, axis_of(axis, x.spec.ndim), back


def cumsum(x, axis=None, dtype=None, name=None, *, out=None):
    """Running sum along `axis` (of the flattened x, if None); of whole numbers in int64.

    >>> paddle.cumsum(paddle.to_tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    """
    default = "int64" if x.spec.dtype.kind in "biu" else None
    x, axis, back = flatten_for_scan(x, axis, default if dtype is None else dtype, out)
    return back(scan.cumsum(x, axis=axis))


def cumprod(x, dim=None, *, dtype=None, out=None, name=None):
    """Running product along `dim` (of the flattened x, if None).

    >>> paddle.cumprod(paddle.to_tensor([1.0, 2.0, 3.0]), dim=0).tolist()
    [1.0, 2.0, 6.0]
    """
    x, dim, back = flatten_for_scan(x, dim, dtype, out)
    return back(scan.cumprod(x, axis=dim))


def logcumsumexp(x, axis=None, dtype=None, name=None):
    """log of the running sum of eˣ along `axis`, without overflow.

    >>> paddle.logcumsumexp(paddle.to_tensor([1000.0, 0.0])).tolist()
    [1000.0, 1000.0]
    """
    default = "float32" if x.spec.dtype.kind in "biu" else None
    x, axis, back = flatten_for_scan(x, axis, default if dtype is None else dtype)
    return back(scan.logcumsumexp(x, axis=axis))


def cummax(x, axis=None, dtype="int64", name=None):
    """(Largest element so far, its place) along `axis`; of equals the latest.

    >>> values, places = paddle.cummax(paddle.to_tensor([1.0, 3.0, 2.0]))
    >>> values.tolist(), places.tolist()
    ([1.0, 3.0, 3.0], [0, 1, 1])
    """
    return running(scan.cummax_index, x, axis, dtype)


def cummin(x, axis=None, dtype="int64", name=None):
    """(Smallest element so far, its place) along `axis`; of equals the latest.

    >>> values, places = paddle.cummin(paddle.to_tensor([2.0, 1.0, 3.0]))
    >>> values.tolist(), places.tolist()
    ([2.0, 1.0, 1.0], [0, 1, 1])
    """
    return running(scan.cummin_index, x, axis, dtype)


def running(op, x, axis, dtype):
    """The values at the places that `op` finds, and the places."""
    x, axis, back = flatten_for_scan(x, axis)
    place = op(x, axis=axis)
    results = take_along(x, place, axis), place_dtype(place, dtype)
    return tuple(map(back, results))


__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cummax", "cummin",
    "cumprod", "cumsum", "logcumsumexp", "logsumexp", "max", "min", "nansum", "prod", "sum",
]  # fmt: skip
