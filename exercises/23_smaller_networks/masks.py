"""Masks: which weights stay.

A mask is an array of ones and zeros in the shape of a weight: where it is 0 the weight is 0, and
stays so. Write three functions of NumPy arrays; none may change what it is given.

- `mask_smallest(scores, count)`: a float32 mask of the shape of `scores`, with zeros at the `count`
  smallest scores of the whole array. Of equal scores those that come first (row by row) go first.
- `gradual_ratio(step, first, steps, initial, final)`: the part of the weights that is zero at a
  step, when more and more of them go: 0.0 before the step `first`, `initial` at `first`, and
  `final` at `first + steps` and ever after. Between them let t grow from 0 to 1 evenly; the ratio
  is final + (initial - final) · (1 - t)³, which rises fast while there are many weights left.
- `mask_1d(matrix, n, m)`: n of m. Each row is divided into groups of m neighbours (m divides the
  number of columns). In each group the n largest *magnitudes* have a 1, the others a 0; of equal
  ones the first go first. The mask has the matrix's dtype.

    mask_smallest([3, 1, 2, 1], 1)                ->  [1, 0, 1, 1]
    gradual_ratio(15, first=10, steps=10, initial=0.0, final=0.8)  ->  0.7
    mask_1d([[1, -4, 3, 2]], 2, 4)                ->  [[0, 1, 1, 0]]

Sources: Han et al., "Learning both weights and connections for efficient neural networks", 2015;
Zhu and Gupta, "To prune, or not to prune", 2017; Mishra et al., "Accelerating sparse deep neural
networks", 2021.
"""

import numpy as np


def mask_smallest(scores, count):
    """Ones, and zeros at the `count` smallest scores."""
    raise NotImplementedError


def gradual_ratio(step, first, steps, initial, final):
    """The part of the weights that is zero at a step."""
    raise NotImplementedError


def mask_1d(matrix, n, m):
    """Ones at the n largest magnitudes of each m neighbours in a row."""
    raise NotImplementedError
