"""A view is arithmetic on positions.

Write `as_strided(m, x, *, shape, strides, offset)`: an array of `shape` whose element at index
(i, j, ...) is the element number

    offset + i * strides[0] + j * strides[1] + ...

of x, counted from 0 in row-major order: the last axis of x runs fastest, wherever the elements lie
in memory. Strides count elements, not bytes; 0 is a stride too. All positions lie within x.

- Build the array of positions first: the numbers 0, 1, ... along each axis, times its stride, added
  up by broadcasting. Then take all of x at these positions at once; a loop over single elements
  would be slow.
- `m` is the array module, NumPy or CuPy: use its names and the methods of arrays, so that the same
  lines run on a GPU.

    x = [10, 11, 12, 13, 14, 15]
    as_strided(numpy, x, shape=(2, 3), strides=(1, 2), offset=0)  ->  [[10, 12, 14], [11, 13, 15]]

This is the body of an operator of the engine; a transpose, a slice with a step, a repeated row and
a sliding window all come out of it.
Source: Harris et al., "Array programming with NumPy", Nature 585 (2020).
"""


def as_strided(m, x, *, shape, strides, offset):
    """Element `i` of the result is element `offset + Σ i[d]·strides[d]` of x, row-major."""
    raise NotImplementedError
