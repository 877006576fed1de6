"""Unbroadcasting: the derivative of repeating is summing.

When x + bias repeats a bias of shape [3] in every row of an x of shape [2, 3], the cotangent that
arrives for the bias has shape [2, 3]: one entry for each copy. The bias is one thing, so it
receives the sum over its copies. Write `sum_to(g, shape)`, which the walk calls whenever a
cotangent has another shape than the value it belongs to:

- `g` is a tensor, and `shape` (a tuple) broadcasts to its shape;
- axes that `g` has in front and `shape` lacks are summed away;
- an axis where `shape` says 1 is summed and stays, with size 1.

    sum_to([[0, 1, 2], [3, 4, 5]], (3,))    ->  [3, 5, 7]
    sum_to([[0, 1, 2], [3, 4, 5]], (2, 1))  ->  [[3], [12]]
    sum_to([[0, 1, 2], [3, 4, 5]], ())      ->  15

Write it in tensor operations, so that it can be differentiated once more.
Source: NumPy's user guide, "Broadcasting"; summing is its adjoint.
"""


def sum_to(g, shape):
    """`g` summed over the axes along which broadcasting `shape` repeats values."""
    extra = len(g.shape) - len(shape)
    for _ in range(extra):  # the axes in front: each time the first is summed away
        g = g.sum(axis=0)
    for axis, size in enumerate(shape):  # now the axes of both stand side by side
        if size == 1:
            g = g.sum(axis=axis, keepdim=True)  # the axis stays, or the shape would be another
    return g
