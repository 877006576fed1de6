"""Filters: which channels matter least.

A channel is made by one filter, so to drop a channel is to drop a filter. Which one? Each filter
gets a score, and the least scores go. `filters` is an array [n, size], a row for each filter; the
scores are an array [n] of its dtype. Write three functions; none may change what it is given.

- `l1_scores(filters)`: the sum of the absolute values of each filter.
- `fpgm_scores(filters)`: the sum of the (Euclidean) distances of each filter to all the others. A
  filter in the middle has a small one: the others can stand in for it, however large it is.
- `least(scores, ratio)`: a list of the numbers (Python's int) of the filters that go, the least
  score first, of equal scores the first. There are `round(ratio * n)` of them; but one filter
  stays, whatever the ratio.

    l1_scores([[1, -2], [0, 1]])           ->  [3, 1]
    fpgm_scores([[0, 0], [3, 4], [0, 8]])  ->  [13, 10, 13]
    least([13, 10, 13], 2 / 3)             ->  [1, 0]

Sources: Li et al., "Pruning filters for efficient ConvNets", 2017; He et al., "Filter pruning via
geometric median", 2019.
"""

import numpy as np


def l1_scores(filters):
    """The sum of the absolute values of each filter."""
    return np.abs(filters).sum(axis=1)


def fpgm_scores(filters):
    """The sum of the distances of each filter to all the others."""
    apart = filters[:, None] - filters[None]  # [n, n, size]: each minus each other
    return np.sqrt((apart**2).sum(axis=2)).sum(axis=1)


def least(scores, ratio):
    """The numbers of the filters that go."""
    n = len(scores)
    count = min(round(ratio * n), n - 1)
    return np.argsort(scores, kind="stable")[:count].tolist()
