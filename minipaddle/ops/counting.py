"""Counts of values: histograms. They have no derivatives."""

from ..engine.core import dtype as dt
from ..engine.core.op import opaque
from ..engine.core.record import Spec


@opaque
def bincount(m, x, *weights, size):
    """How often 0, 1, …, size - 1 occur in x, or the sums of their weights."""
    y = m.bincount(x, *weights, minlength=size)
    return y.astype(weights[0].dtype) if weights else y


bincount.shape(lambda x, *weights, size: Spec((size,), weights[0].dtype if weights else WHOLE))
WHOLE, FLOAT = dt.int64.numpy, dt.float32.numpy


@opaque
def histogram(m, x, *weights, bins, low, high, density):
    """How many elements fall into each of `bins` equal parts of [low, high], or of what x spans."""
    weight = weights[0].reshape(-1) if weights else None
    span = None if low is None else (low, high)
    y, _ = m.histogram(x.reshape(-1), bins, span, weights=weight, density=density)
    return y.astype(FLOAT if weights or density else WHOLE)


@histogram.shape
def _(x, *weights, bins, low, high, density):
    return Spec((bins,), FLOAT if weights or density else WHOLE)


@opaque
def histogramdd(m, x, *weights, bins, ranges, density):
    """How many rows of x [rows, d] fall into each cell of a grid of `bins` parts over `ranges`;
    None is what a column spans.
    """
    weight = weights[0] if weights else None
    y, _ = m.histogramdd(x, list(bins), list(ranges), weights=weight, density=density)
    return y.astype(x.dtype)


histogramdd.shape(lambda x, *weights, bins, ranges, density: Spec(tuple(bins), x.dtype))
