"""The shape of x + y, before there is an x or a y.

Write `broadcast_shapes`. It is given any number of shapes (tuples of sizes) and returns, as a
tuple, the shape that arrays of these shapes have together:

- shapes are lined up at their **last** axis; an axis that a shape lacks counts as size 1;
- along each axis all sizes that are not 1 must be equal, and that is the size of the result;
- if two of them differ, it raises ValueError with a message that names both sizes.

    broadcast_shapes((2, 1, 3), (4, 1))  ->  (2, 4, 3)
    broadcast_shapes((2, 3), (4,))       ->  ValueError: 3 and 4 ...

The engine asks it whenever it must know a shape without computing a value.
Source: NumPy's user guide, "Broadcasting".
"""


def broadcast_shapes(*shapes) -> tuple:
    """The common shape of arrays of these shapes; ValueError if they have none."""
    rank = len(max(shapes, key=len, default=()))  # without any shapes: that of a number
    together = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):  # lined up at the end
            if size == 1:  # repeats as often as the others ask: it decides nothing
                continue
            if together[axis] not in (1, size):
                raise ValueError(
                    f"sizes {together[axis]} and {size} of {shapes} do not go together"
                )
            together[axis] = size
    return tuple(together)
