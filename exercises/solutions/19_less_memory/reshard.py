"""Reshard a checkpoint: written by four ranks, read by three.

A rank writes its shard of a tensor with its *box*, a tuple with a pair (first row, rows) for each
axis of the tensor. Another mesh cuts the tensor into other boxes. To load it there, a rank needs
the intersections of boxes alone. Write three functions.

`intersect(a, b)`: the intersection of two boxes of one tensor; None if they have no element in
common. Numbers of rows are never negative, and may be 0. A tensor without axes has the box ().

    intersect(((0, 4), (0, 3)), ((2, 4), (1, 2)))  ->  ((2, 2), (1, 2))

`index_within(box, outer)`: a tuple of slices, the index of `box` in an array that holds the box
`outer`, around it.

    index_within(((2, 2), (1, 2)), ((2, 4), (1, 2)))  ->  (slice(0, 2), slice(0, 2))

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


def intersect(a, b):
    """The intersection of two boxes; None if it is empty."""
    found = []
    for (start, n), (other, m) in zip(a, b, strict=True):
        first, end = max(start, other), min(start + n, other + m)
        if first >= end:
            return None
        found.append((first, end - first))
    return tuple(found)


def index_within(box, outer) -> tuple:
    """The index of a box in an array that holds the box `outer`."""
    pairs = [(start - first, n) for (start, n), (first, _) in zip(box, outer, strict=True)]
    return tuple(slice(k, k + n) for k, n in pairs)


def assemble(box, dtype, pieces, rows):
    """The part `box` of a tensor, read from files that have others."""
    found = np.empty([n for _, n in box], dtype)
    for file, outer in pieces:
        shared = intersect(box, outer)
        if shared is not None:
            found[index_within(shared, box)] = rows(file, outer, index_within(shared, outer))
    return found
