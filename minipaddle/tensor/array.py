"""Lists of tensors, read and written at a place that a tensor holds.

Source: Paddle API `paddle.tensor`.
"""

from ..core.prelude import Var, type_error, value_error


def create_array(dtype="float32", initialized_list=None) -> list:
    """A list of tensors: a copy of `initialized_list`, or an empty one.

    >>> paddle.tensor.create_array("float32")
    []
    """
    items = list(initialized_list or ())
    wrong = [x for x in items if not isinstance(x, Var)]
    if wrong:
        raise type_error(f"create_array of {wrong[0]!r}", "tensors")
    return items


def array_length(array: list) -> int:
    """How many tensors a list has.

    >>> paddle.tensor.array_length([paddle.ones([1])])
    1
    """
    return len(array)


def array_read(array: list, i):
    """The tensor at place i.

    >>> paddle.tensor.array_read([paddle.ones([1])], paddle.to_tensor([0])).tolist()
    [1.0]
    """
    return array[int(i)]


def array_write(x, i, array: list | None = None) -> list:
    """The list with x at place i, which is at most its length; a new list without one.

    >>> array = paddle.tensor.array_write(paddle.ones([1]), paddle.to_tensor([0]))
    >>> paddle.tensor.array_write(paddle.zeros([1]), paddle.to_tensor([1]), array) is array
    True
    >>> [x.item() for x in array]
    [1.0, 0.0]
    """
    array, place = create_array() if array is None else array, int(i)
    if not 0 <= place <= len(array):
        raise value_error(f"array_write at {place} of a list of {len(array)}", "0 to its length")
    array[place : place + 1] = [x]
    return array


__all__ = ["array_length", "array_read", "array_write", "create_array"]
