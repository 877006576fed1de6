"""The KL threshold: clip where the distribution changes least.

A histogram has the counts of magnitudes in bins of one width. If all up to the largest one is to be
said in `levels` steps, a few large magnitudes make the steps wide for all. So clip: choose the
number of bins, `size`, that are kept. Write `kl_threshold(counts, levels)`, which returns the best
size. For each size from `levels` to `len(counts)` compare two distributions over the first `size`
bins.

- P is what there is: the counts, as float64. What lies above is clipped, so its count is added to
  the last bin.
- Q is what is left after rounding to the levels. Level k has the bins i with i · levels // size
  equal to k. Take the counts of the first `size` bins (without what is clipped), and spread the sum
  of each level evenly over those of its bins that are not empty; empty bins stay empty.
- Divide each by its sum (a sum of 0 by 1), and compute Σ p log(p / q) over the bins with p > 0. If
  one of them has q = 0, the divergence is infinite.

Return the size with the least divergence, the smallest such size if there are several, and
`len(counts)` if all are infinite. `counts` is an array of NumPy, of any dtype, with at least
`levels` bins; it stays as it is.

    counts = [40, 30, 20, 10, 0, 0, 0, 1], levels = 2  ->  4

Source: Migacz, "8-bit Inference with TensorRT", 2017.
"""

import numpy as np


def kl_threshold(counts, levels):
    """The number of bins to keep."""
    best, least = len(counts), np.inf
    for size in range(levels, len(counts) + 1):
        kept = counts[:size].astype("float64")
        level = np.arange(size) * levels // size
        full = kept > 0
        share = np.bincount(level, kept) / np.maximum(np.bincount(level, full), 1)
        q = share[level] * full
        p = kept.copy()
        p[-1] += counts[size:].sum()
        p, q = p / max(p.sum(), 1), q / max(q.sum(), 1)
        there = p > 0
        if (q[there] > 0).all():
            apart = (p[there] * np.log(p[there] / q[there])).sum()
            if apart < least:
                best, least = size, apart
    return best
