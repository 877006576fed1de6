"""Reshard a checkpoint: written by four ranks, read by three.

A rank writes the piece of a tensor that it has, and says which: a *box*, a tuple with a pair (first
row, rows) for each axis of the tensor. Another mesh cuts the tensor into other boxes. All that is
needed to load it there is what two boxes have in common. Write three functions.

`common(a, b)`: the box that two boxes of one tensor have in common; None if they have no element in
common. Numbers of rows are never negative, and may be 0. A tensor without axes has the box ().

    common(((0, 4), (0, 3)), ((2, 4), (1, 2)))  ->  ((2, 2), (1, 2))

`within(box, outer)`: a tuple of slices, the index at which `box` stands in an array that holds the
box `outer`, in which it lies.

    within(((2, 2), (1, 2)), ((2, 4), (1, 2)))  ->  (slice(0, 2), slice(0, 2))

`assemble(box, dtype, pieces, rows)`: the part `box` of a tensor as a new array of NumPy.

- `pieces` is a list of pairs (file, outer): the file has the box `outer` of the tensor. Together
  they have every element once.
- `rows(file, outer, index)` reads from a file: of the array that it holds, the elements at `index`,
  a tuple of slices. Read what you need and no more: ask a file once, and only if it has something
  of the box. (A box may have no elements at all.)

    rows 0 to 3 of 8 in "a", 4 to 7 in "b", box ((2, 3),)
        ->  a's rows [2:4], b's rows [0:1]

Source: the metadata of PyTorch's `torch.distributed.checkpoint` and of Paddle's
`dist.save_state_dict` describe tensors the same way.
"""

import numpy as np


def common(a, b):
    """What two boxes have in common; None if that is nothing."""
    found = []
    for (start, n), (other, m) in zip(a, b, strict=True):
        first, end = max(start, other), min(start + n, other + m)
        if first >= end:
            return None
        found.append((first, end - first))
    return tuple(found)


def within(box, outer) -> tuple:
    """The index of a box in an array that holds the box `outer`."""
    pairs = [(start - first, n) for (start, n), (first, _) in zip(box, outer, strict=True)]
    return tuple(slice(k, k + n) for k, n in pairs)


def assemble(box, dtype, pieces, rows):
    """The part `box` of a tensor, read from files that have others."""
    found = np.empty([n for _, n in box], dtype)
    for file, outer in pieces:
        shared = common(box, outer)
        if shared is not None:
            found[within(shared, box)] = rows(file, outer, within(shared, outer))
    return found
