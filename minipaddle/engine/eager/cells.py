"""Where a program's states live, and what a run leaves behind in Python's objects."""

from __future__ import annotations

from typing import NamedTuple

from ..core.record import mark_written
from .tensor import Tensor, wrap


class TensorCell:
    """A tensor of the outside: its memory is read before a run and written after it."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def read(self):
        return self.tensor.array

    def write(self, array) -> None:
        own = self.tensor.array
        if array is own:  # a compiled program writes where it reads
            mark_written(own)
            return
        if own.shape == array.shape and own.dtype == array.dtype and own.flags.writeable:
            own[...] = array
        else:
            self.tensor.array = array
        mark_written(self.tensor.array)


class GradientCell:
    """The gradient waiting at a tensor, added to by a further backward."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def read(self):
        return self.tensor._grad.array

    def write(self, array) -> None:
        self.tensor._grad = wrap(array)


class Gradient(NamedTuple):
    """What a run leaves in `.grad` of a tensor: an output, or without one nothing or zeros."""

    tensor: Tensor
    cleared: bool
    outputs: tuple = ()

    def leave(self, inputs, *arrays) -> None:
        x = self.tensor
        if arrays:
            x._grad, x._stale = wrap(*arrays), False
        elif self.cleared:  # as in eager mode, zeros even where there was nothing before
            x._grad, x._stale = wrap(x.array) if x._grad is None else x._grad, True
        else:
            x._grad, x._stale = None, False


class Attribute(NamedTuple):
    """An attribute of a layer that a run gives a new tensor."""

    layer: object
    name: str
    outputs: tuple

    def leave(self, inputs, array) -> None:
        setattr(self.layer, self.name, wrap(array))


class Written(NamedTuple):
    """An input that a run writes in place: number `k`."""

    k: int
    outputs: tuple

    def leave(self, inputs, array) -> None:
        TensorCell(inputs[self.k]).write(array)


class Received(NamedTuple):
    """A gradient that a run leaves at its input number `k`."""

    k: int
    outputs: tuple

    def leave(self, inputs, array) -> None:
        inputs[self.k].receive(wrap(array))


class Call(NamedTuple):
    """A call in Python after a run; outputs stand at some of its positional arguments."""

    function: object
    args: tuple
    kwargs: dict
    places: list
    outputs: tuple

    def leave(self, inputs, *arrays) -> None:
        args = list(self.args)
        for k, array in zip(self.places, arrays, strict=True):
            args[k] = wrap(array)
        self.function(*args, **self.kwargs)
