"""A mark on gradients that several ranks are to average.

A trace marks the gradients of a model that is trained on several ranks; the pass `data_parallel`
puts averages in the place of the marks.
"""

from __future__ import annotations

from ..core.op import opaque
from ..core.rank import per_rank

AVERAGING = per_rank(True)
"""Are gradients averaged that are computed now? Not in `no_sync`."""


@opaque
def gradient(m, x, *, group, megabytes):
    """x, a gradient that ranks of `group` average, in buckets of so many MB (0: each alone)."""
    return x


gradient.shape(lambda x, *, group, megabytes: x)
gradient.vjp(lambda g: g)
gradient.view = True
