"""A record: one operator applied once. A node of the eager tape and an operation of a program.

Every record is one value (LLVM's rule: the instruction *is* its result). An operator with several
results makes a tuple, and the operator `item` takes one out.
"""

from __future__ import annotations

import weakref
from itertools import count
from math import prod
from typing import NamedTuple

import numpy as np

from .dtype import public

tick = count(1).__next__
"""The clock of this process. Creation order is a topological order: inputs are older."""


class Spec(NamedTuple):
    """Shape and dtype of an array: `float32[2, 3]`."""

    shape: tuple
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements: the product of the shape."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def astype(self, dtype) -> Spec:
        return Spec(self.shape, dtype)

    def __str__(self) -> str:
        return f"{public(self.dtype).name}[{', '.join(map(str, self.shape))}]"


class Record:
    """`op` applied to `inputs`; `None` among the inputs is a value that needs no gradient."""

    __slots__ = (
        "__weakref__", "attrs", "dtype", "hooks", "inputs", "op", "saved", "scope", "shape",
        "source", "time", "where",
    )  # fmt: skip

    def __init__(self, op, inputs, attrs, shape, dtype, saved=None, scope=None):
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.shape = shape
        self.dtype = dtype
        self.saved = saved  # the values that derivative rules ask for; FREED after a backward
        self.scope = scope  # the layer being called: (parent scope, layer, line)
        self.source = None  # the record that this one was made from
        self.hooks = None  # functions gradient -> gradient or None
        self.where = None  # the user's line, as (code object, instruction offset)
        self.time = tick()

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self.dtype)

    def copy(self, inputs, attrs=None, spec=None) -> Record:
        """The same operator applied to other inputs, at the same line of the same layer."""
        attrs = self.attrs if attrs is None else attrs
        new = self.derive(self.op, inputs, attrs, spec or (self.shape, self.dtype), self.saved)
        new.hooks = self.hooks
        return new

    def derive(self, op, inputs, attrs, spec, saved=None) -> Record:
        """A record of another operator, at the line and in the layer of this one.

        `spec` is a Spec, or a tuple of them if the operator has several results.
        """
        shape, dtype = (spec, None) if isinstance(spec[0], Spec) else spec
        new = Record(op, inputs, attrs, shape, dtype, saved, self.scope)
        new.where, new.source = self.where, self
        return new

    def __repr__(self) -> str:
        return f"{self.op.name} : {spec_text(self)}"


def spec_text(record) -> str:
    """`float32[2, 3]`; of several results `(float32[2], int64[])`."""
    if record.dtype is not None:
        return str(record.spec)
    return f"({', '.join(map(str, record.shape))})"


FREED = ("freed",)
"""Stands in `Record.saved` once a backward has consumed it."""


# Of a buffer that was written in place: the time of the last write, the number of writes, and the
# clocks [time, number] of those who write many buffers at once. The key is the id of the array that
# owns the buffer: views and reshapes share one entry. Threads share memory, so this is no part of a
# trace.
_written: dict[int, tuple[int, int, tuple]] = {}


def owner(array):
    """The array that owns the memory `array` looks into."""
    base = getattr(array, "base", None)
    while hasattr(base, "base"):  # an array of another library may have none
        array, base = base, base.base
    return array


def writable(array) -> bool:
    """Whether the memory of `array` may be written. (CuPy's always may.)"""
    return getattr(array.flags, "writeable", True)


def mark_written(array) -> None:
    """Note that the memory of `array` was just overwritten."""
    key = key_of(array)
    _, count, clocks = _written[key]
    _written[key] = tick(), count + 1, clocks


def key_of(array) -> int:
    """The key of the memory of `array` in `_written`, valid while the memory lives."""
    root = array if array.base is None else owner(array)
    key = id(root)
    if key not in _written:
        _written[key] = NEVER
        weakref.finalize(root, _written.pop, key, None).atexit = False
    return key


def writes(key: int) -> tuple[int, int]:
    """The time of the last in-place write to the memory with this key, and how many there were."""
    time, count, clocks = _written.get(key, NEVER)
    for clock in clocks:
        time, count = max(time, clock[0]), count + clock[1]
    return time, count


def last_write(array) -> int:
    """The time of the last in-place write to the memory of `array`, 0 if never."""
    key = id(array if array.base is None else owner(array))
    return writes(key)[0] if key in _written else 0


NEVER = (0, 0, ())
