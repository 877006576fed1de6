"""Names nobody chose: `linear_0` for a layer, `linear_0.w_0` for its first weight."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager

from ..core.rank import per_rank

_counts = per_rank(Counter())


def unique(prefix: str) -> str:
    """`prefix_0`, then `prefix_1`, …: a name given to nothing else of this rank.

    >>> from minipaddle.nn.names import guard, unique
    >>> with guard():
    ...     unique("linear"), unique("linear"), unique("conv2d")
    ('linear_0', 'linear_1', 'conv2d_0')
    """
    number = _counts.now[prefix]
    _counts.now[prefix] += 1
    return f"{prefix}_{number}"


@contextmanager
def guard():
    """Count from zero inside the block: two models built alike get the same names."""
    before, _counts.now = _counts.now, Counter()
    try:
        yield
    finally:
        _counts.now = before


def snake(name: str) -> str:
    """`LSTMCell` as `lstm_cell`, `Conv2D` as `conv2d`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()
