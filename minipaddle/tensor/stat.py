"""Statistics: averages, spreads, quantiles, histograms."""

import math

from ..core.checks import require_one_of
from ..core.prelude import Var, larger, normalize_axes, type_error, value_error, whole
from ..engine.core.dtype import FLOATS, float32
from ..engine.ops import creation, elementwise, movement, reduction
from ..ops import counting, reductions, rounding, sorting
from ..ops.norm import deviation
from ..ops.scatter import take_along
from .math import floating
from .reduce import reduce_over


def mean(x, axis=None, keepdim=False, name=None, *, dtype=None, out=None):
    """Average over `axis`; whole numbers stay whole unless `dtype` says otherwise.

    >>> paddle.mean(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [2.0, 3.0]
    """
    return reduce_over(reduction.mean, x, axis, keepdim, dtype, out)


def nanmean(x, axis=None, keepdim=False, name=None):
    """Average over `axis` of the elements that are not nan.

    >>> paddle.nanmean(paddle.to_tensor([1.0, float("nan"), 3.0])).item()
    2.0
    """
    x = floating(x)
    known = x == x
    total = reduce_over(reduction.sum, elementwise.where(known, x, 0.0), axis, keepdim)
    return total / reduce_over(reduction.sum, known, axis, keepdim).astype(x.spec.dtype)


def var(x, axis=None, unbiased=None, keepdim=False, name=None, *, correction=1):
    """Variance over `axis`: Σ(x - mean)² / (n - correction), in floating point.

    `unbiased` is the older way to say correction=1 (True) or 0 (False).

    >>> paddle.var(paddle.to_tensor([1.0, 2.0, 3.0])).item()
    1.0
    """
    x = floating(x)
    correction = correction if unbiased is None else int(unbiased)
    axes = normalize_axes(axis, x.spec.ndim)
    count = math.prod(x.spec.shape[d] for d in axes)
    away = x - reduction.mean(x, axis=axes, keepdim=True)
    total = reduction.sum(elementwise.square(away), axis=axes, keepdim=bool(keepdim))
    return total / max(count - correction, 0)


def std(x, axis=None, unbiased=True, keepdim=False, name=None):
    """Standard deviation over `axis`, the root of `var`, computed in double precision.

    Where all elements are equal the derivative is 0.

    >>> paddle.std(paddle.to_tensor([1.0, 2.0, 3.0])).item()
    1.0
    """
    x = floating(x)
    axes = normalize_axes(axis, x.spec.ndim)
    return deviation(x, axis=axes, keepdim=bool(keepdim), correction=int(unbiased))


# ---- by order --------------------------------------------------------------------------------


def rows_of(x, axis):
    """x with `axis` (all, if None) as its one last axis, and its shape with `axis` kept as 1."""
    spec = x.spec
    axes = normalize_axes(axis, spec.ndim)
    rest = tuple(d for d in range(spec.ndim) if d not in axes)
    size = math.prod(spec.shape[d] for d in axes)
    if size == 0:
        raise value_error(f"{spec} has nothing along axis {axis} to put in order")
    x = movement.transpose(x, perm=(*rest, *axes))
    x = movement.reshape(x, shape=(*(spec.shape[d] for d in rest), size))
    return x, reduction.keepdim_shape(spec, axes)


BETWEEN = {  # where to read, given the places below and above the wanted one
    "linear": lambda low, high, way: (low, high, way - low),
    "midpoint": lambda low, high, way: (low, high, 0.5),
    "lower": lambda low, high, way: (low, low, None),
    "higher": lambda low, high, way: (high, high, None),
    "nearest": lambda low, high, way: (rounding.round(way), rounding.round(way), None),
}


def read_quantile(x, known, share: float, between):
    """The value at `share` of the first `known` elements of the sorted last axis."""
    way = elementwise.maximum(known.astype("float64") - 1, 0.0) * share
    low, high, part = between(rounding.floor(way), rounding.ceil(way), way)
    last = x.spec.ndim - 1
    below = take_along(x, low.astype("int64"), last)
    if part is None:
        return below
    above = take_along(x, high.astype("int64"), last)
    if isinstance(part, float):
        met = below * (1 - part) + above * part  # of infinities too
    else:
        part, rise = part.astype(x.spec.dtype), above - below
        met = elementwise.where(part < 0.5, below + rise * part, above - rise * (1 - part))
    return elementwise.where(low == high, below, met)  # not inf - inf


def quantiles(x, shares, axis, keepdim, interpolation, skip_nan) -> list:
    """The values at each of `shares`; a nan makes them nan, unless it is to be skipped."""
    x, kept = rows_of(x, axis)
    last = x.spec.ndim - 1
    x = sorting.sort(x, axis=last, descending=False)  # nan comes last
    known = reduction.sum(x == x, axis=(last,), keepdim=True)
    clean = known == x.spec.shape[last]
    shape = kept if keepdim else x.spec.shape[:last]
    if not skip_nan:
        known = known * 0 + x.spec.shape[last]
    results = []
    for share in shares:
        y = read_quantile(x, known, share, BETWEEN[interpolation])
        y = y if skip_nan or y.spec.dtype.kind in "biu" else elementwise.where(clean, y, math.nan)
        results.append(movement.reshape(y, shape=shape))
    return results


def quantile(x, q, axis=None, keepdim=False, interpolation="linear", name=None):
    """The value below which a share `q` of the elements over `axis` lies; a list of them, stacked.

    `interpolation` between two neighbours: linear, lower, higher, midpoint or nearest.

    >>> paddle.quantile(paddle.to_tensor([3.0, 1.0, 2.0]), [0.5, 0.75]).tolist()
    [2.0, 2.5]
    """
    return quantile_of_each(x, q, axis, keepdim, interpolation, False)


def nanquantile(x, q, axis=None, keepdim=False, interpolation="linear"):
    """`quantile` of the elements that are not nan.

    >>> paddle.nanquantile(paddle.to_tensor([3.0, float("nan"), 2.0]), 0.5).item()
    2.5
    """
    return quantile_of_each(x, q, axis, keepdim, interpolation, True)


def quantile_of_each(x, q, axis, keepdim, interpolation, skip_nan):
    """The quantile at a number `q`, or those at a list or tensor of them, stacked."""
    if interpolation not in BETWEEN:
        raise value_error(f"interpolation={interpolation!r}", ", ".join(BETWEEN))
    q = q.tolist() if isinstance(q, Var) else q
    shares = q if isinstance(q, list | tuple) else [q]
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise value_error(f"q={q}", "one or more shares between 0 and 1")
    results = quantiles(floating(x), shares, axis, keepdim, interpolation, skip_nan)
    return movement.stack(*results, axis=0) if shares is q else results[0]


def median(x, axis=None, keepdim=False, mode="avg", name=None):
    """The middle of the elements over `axis`, in floating point; nan if one is nan.

    Of two middle ones the average; with mode="min" the smaller, and its place too if `axis` is
    given.

    >>> paddle.median(paddle.to_tensor([4.0, 1.0, 2.0, 3.0])).item()
    2.5
    """
    return middle(x, axis, keepdim, mode, False)


def nanmedian(x, axis=None, keepdim=False, mode="avg", name=None):
    """`median` of the elements that are not nan.

    >>> paddle.nanmedian(paddle.to_tensor([3.0, float("nan"), 2.0])).item()
    2.5
    """
    return middle(x, axis, keepdim, mode, True)


def middle(x, axis, keepdim, mode, skip_nan):
    """`median` and `nanmedian`."""
    require_one_of("median", ("avg", "min"), mode=mode)
    if mode == "avg" and not x.spec.size:  # of nothing it is nan, as a mean is
        return reduction.mean(floating(x), axis=normalize_axes(axis, x.spec.ndim), keepdim=keepdim)
    if mode == "avg":
        x = x if x.spec.dtype.name == "float64" else x.astype("float32")
        value = quantiles(x, [0.5], axis, keepdim, "midpoint", skip_nan)[0]
        return value if skip_nan else replace_nan_results(x, value, axis)
    (value,) = quantiles(x, [0.5], axis, keepdim, "lower", skip_nan)
    if axis is None or (skip_nan and isinstance(axis, list | tuple)):
        return value if skip_nan else replace_nan_results(x, value, axis)
    rows, _ = rows_of(x, axis)
    last, column = rows.spec.ndim - 1, (*rows.spec.shape[:-1], 1)
    wanted = movement.reshape(value, shape=column)
    same = (rows == wanted) | ((rows != rows) & (wanted != wanted))
    first = reductions.argmax(same, axis=last, keepdim=True)
    value, shape = take_along(rows, first, last), value.spec.shape
    if skip_nan:  # as in Paddle -1 marks a row of nan, unless there is nothing else
        first = elementwise.where((value != value) & (x == x).any(), -1, first)
    return movement.reshape(value, shape=shape), movement.reshape(first, shape=shape)


def replace_nan_results(x, value, axis):
    """A median of x; where it is nan its gradient goes to the elements that are, in equal parts."""
    if x.spec.dtype not in FLOATS:
        return value
    rows, _ = rows_of(x, axis)
    last, nans = (rows.spec.ndim - 1,), rows != rows
    count = reduction.sum(nans.astype(rows.spec.dtype), axis=last, keepdim=False)
    total = reduction.sum(elementwise.where(nans, rows, 0.0), axis=last, keepdim=False)
    own = movement.reshape(total / count, shape=value.spec.shape)
    return elementwise.where(value != value, own, value)


# ---- counting --------------------------------------------------------------------------------


def bincount(x, weights=None, minlength=0, name=None):
    """How often 0, 1, 2, … occur in a vector of whole numbers, or the sums of their weights.

    Raises ValueError for negative numbers.

    >>> paddle.bincount(paddle.to_tensor([1, 1, 3])).tolist()
    [0, 2, 0, 1]
    """
    if x.spec.dtype.kind not in "iu" or x.spec.ndim != 1:
        raise value_error(f"bincount of {x.spec}", "a vector of whole numbers")
    size = whole(reduction.max(x, axis=(0,), keepdim=False)) + 1 if x.spec.size else 0
    inputs = () if weights is None else (weights,)
    return counting.bincount(x, *inputs, size=larger(size, whole(minlength)))


def limits(low, high) -> tuple:
    """(low, high) of a histogram; (None, None), what the data spans, where they meet."""
    if low > high:
        raise value_error(f"a histogram from {low} to {high}", "min <= max")
    return (None, None) if low == high else (float(low), float(high))


def histogram(input, bins=100, min=0.0, max=0.0, weight=None, density=False, name=None):
    """The number of elements in each of `bins` equal parts of [min, max]; of what the data spans,
    if these two are equal.

    Counts in int64; sums of weights, or a density, in float32.

    >>> paddle.histogram(paddle.to_tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist()
    [0, 2, 1, 0]
    """
    low, high = limits(min, max)
    inputs = () if weight is None else (weight,)
    attrs = {"bins": int(bins), "low": low, "high": high, "density": bool(density)}
    return counting.histogram(input, *inputs, **attrs)


def histogram_bin_edges(input, bins=100, min=0.0, max=0.0, name=None):
    """The bins + 1 ends of the parts `histogram` counts in; around min, if it is max and not 0.

    >>> paddle.histogram_bin_edges(paddle.to_tensor([1.0, 3.0]), bins=2).tolist()
    [1.0, 2.0, 3.0]
    """
    around = (min - 0.5, max + 0.5) if min == max and min else limits(min, max)
    return edges(*around, bins, input)


def edges(low: float | None, high: float | None, bins: int, x):
    """The ends of `bins` equal parts of [low, high]; without these, of what x spans."""
    dtype = x.spec.dtype if x.spec.dtype.kind == "f" else float32.numpy
    if low is None and x.spec.size:
        x, ends = x.astype("float64"), (reduction.min, reduction.max)
        low, high = (op(x, axis=(*range(x.spec.ndim),), keepdim=False) for op in ends)
        wider = (low == high).astype("float64") * 0.5
        steps = creation.arange(size=bins + 1, dtype=x.spec.dtype, start=0.0, step=1.0)
        return (low - wider + steps * ((high - low + 2 * wider) / bins)).astype(dtype)
    low, high = (-0.5, 0.5) if low is None else (low, high)
    return creation.arange(size=bins + 1, dtype=dtype, start=low, step=(high - low) / bins)


def histogramdd(x, bins=10, ranges=None, density=False, weights=None, name=None):
    """(counts on a grid, the ends along each axis) of the rows of x, of shape [rows, d].

    `bins` is a number or one for each axis; `ranges` is low, high for one axis after another.

    >>> counts, ends = paddle.histogramdd(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]), bins=2)
    >>> counts.tolist(), ends[0].tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0, 3.0])
    """
    if isinstance(bins, Var):
        raise type_error("histogramdd with tensors of ends", "bins as numbers")
    size = x.spec.shape[-1]
    bins = tuple(bins) if isinstance(bins, list | tuple) else (bins,) * size
    flat = movement.reshape(x, shape=(-1 if size == 0 else x.spec.size // size, size))
    columns = [movement.slice_(flat, index=((0, None, 1), k)) for k in range(size)]
    if ranges is None:
        spans = [None] * size
    else:
        spans = [(float(a), float(b)) for a, b in zip(ranges[::2], ranges[1::2], strict=True)]
    inputs = () if weights is None else (weights,)
    attrs = {"bins": bins, "ranges": tuple(spans), "density": bool(density)}
    counts = counting.histogramdd(flat, *inputs, **attrs)
    parts = zip(spans, bins, columns, strict=True)
    return counts, [edges(*(span or (None, None)), n, column) for span, n, column in parts]


__all__ = [
    "bincount", "histogram", "histogram_bin_edges", "histogramdd", "mean", "median", "nanmean",
    "nanmedian", "nanquantile", "quantile", "std", "var",
]  # fmt: skip
