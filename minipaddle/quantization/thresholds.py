"""Where to clip: a magnitude chosen from a histogram.

All functions take the counts of magnitudes in bins of one width, from 0 up, and the number of
levels that a magnitude can be rounded to (128 for 8 bits). They give a number of bins: what lies
above is clipped.
"""

from ..engine.core.slots import slot
from ..engine.eager.device import NUMPY as m


@slot("quantization.percentile_threshold")
def percentile_threshold(counts, levels: int, percent: float) -> int:
    """The fewest bins with the share `percent` of all values."""
    return int(m.searchsorted(m.cumsum(counts), percent * counts.sum())) + 1


@slot("quantization.kl_threshold")
def kl_threshold(counts, levels: int) -> int:
    """The number of bins whose distribution changes least when it is rounded to `levels`.

    Least is the divergence Σ p log(p / q): p holds the bins, with all that is clipped in the last
    one; q spreads the sum of each level evenly over its bins that are not empty.
    Source: Migacz 2017, "8-bit Inference with TensorRT".
    """
    best, least = len(counts), m.inf
    for size in range(levels, len(counts) + 1):
        p = counts[:size].astype("float64")
        level = m.arange(size) * levels // size
        full = p > 0
        filled = m.bincount(level, full, levels)
        q = (m.bincount(level, p, levels) / m.maximum(filled, 1))[level] * full
        p[-1] += counts[size:].sum()
        apart = divergence(p, q)
        if apart < least:
            best, least = size, apart
    return best


def divergence(p, q) -> float:
    """Σ p log(p / q) of two histograms, each divided by its sum; infinite if q lacks a bin of p."""
    p, q = p / max(p.sum(), 1), q / max(q.sum(), 1)
    there = p > 0
    if (q[there] == 0).any():
        return m.inf
    return float((p[there] * m.log(p[there] / q[there])).sum())


@slot("quantization.mse_threshold")
def mse_threshold(counts, levels: int) -> int:
    """The number of bins for which the mean square of rounding and clipping is least."""
    middle = m.arange(len(counts)) + 0.5
    sizes = m.arange(1, len(counts) + 1)[:, None]
    step = sizes / (levels - 1)
    error = middle - m.minimum(m.round(middle / step), levels - 1) * step
    return int(m.argmin((counts * error**2).sum(1))) + 1
