"""The storage of a program's states, and the side effects of a run on Python's objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from ..core.dispatch import current
from ..core.record import mark_written, writable
from ..ir.builder import SymbolicArray
from .tensor import Tensor, wrap

LOCK = threading.RLock()
"""Only one trace runs at a time: meanwhile tensors of the whole process hold symbolic arrays."""


def real_array(tensor: Tensor):
    """The array of a tensor; if another thread traces with it, the array after the trace."""
    if type(tensor.array) is SymbolicArray and not current.top.tracing:
        with LOCK:
            return tensor.array
    return tensor.array


class TensorStorage:
    """A tensor of the outside: a run reads its memory first and writes it at the end. Between runs
    another tensor may take its place, if the user's code binds a new one to the name.
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def read(self):
        return real_array(self.tensor)

    def write(self, array) -> None:
        own = real_array(self.tensor)
        if array is own:  # a compiled program writes where it reads
            mark_written(own)
            return
        if own.shape == array.shape and own.dtype == array.dtype and writable(own):
            own[...] = array
        else:
            self.tensor.array = array
        mark_written(self.tensor.array)


class GradientStorage:
    """The gradient that a tensor has, to which a further backward adds."""

    def __init__(self, owner: TensorStorage):
        self.owner = owner

    @property
    def tensor(self) -> Tensor:
        """The tensor whose gradient it is."""
        return self.owner.tensor

    def read(self):
        return self.tensor._grad.array

    def write(self, array) -> None:
        self.tensor._grad = wrap(array)


class Gradient(NamedTuple):
    """A run sets `.grad` of a tensor: to an output, or without one to zeros or None."""

    storage: TensorStorage
    cleared: bool
    create: Callable  # an array -> the gradient
    outputs: tuple

    def leave(self, inputs, *arrays) -> None:
        x = self.storage.tensor
        if arrays:
            x._grad, x._stale = self.create(*arrays), False
        elif self.cleared:  # as in eager mode, zeros even if it was None before
            x._grad, x._stale = wrap(x.array) if x._grad is None else x._grad, True
        else:
            x._grad, x._stale = None, False


class Written(NamedTuple):
    """A run writes input number `k` in place."""

    k: int
    outputs: tuple

    def leave(self, inputs, array) -> None:
        TensorStorage(inputs[self.k]).write(array)


class Received(NamedTuple):
    """A run adds a gradient to input number `k`."""

    k: int
    outputs: tuple

    def leave(self, inputs, array) -> None:
        inputs[self.k].receive(wrap(array))
