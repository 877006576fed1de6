"""Slices of a fixed length that begin at a tensor: `x[:, i : i + 1]`, in a program.

A slice from i to j has a size that only a run knows, and a program with such a size is interpreted.
If j is i plus a number, the places i, i + 1, … are an array of a known size: then C computes it.
"""

from types import EllipsisType, NoneType

from ..engine.core import dtype as dt
from ..engine.core.dim import Dim
from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.builder import SymbolicArray
from ..engine.ir.program import NUMBER
from ..engine.ops import creation, elementwise, movement, subscripts
from ..engine.ops.var import Var

FAR = 2**62
"""An index beyond every axis: as the beginning of a slice, -1 is refused and not counted back."""

BASIC = (int, NoneType, EllipsisType, slice, Dim)


def insert_places(keys: tuple) -> tuple:
    """The entries of a key, where an array of places stands for the slice of a fixed length that
    begins at a tensor. With arrays beside it, or several such slices, the key stays as it is.
    """
    if not current.top.tracing or not all(type(k) in BASIC for k in keys):
        return keys
    lengths = [length(k) if type(k) is slice else None for k in keys]
    if sum(n is not None for n in lengths) != 1:
        return keys
    return tuple(k if n is None else places(k.start, n) for k, n in zip(keys, lengths, strict=True))


subscripts.READINGS.append(insert_places)


def places(first: Var, count: int) -> Var:
    """`first`, `first` + 1, …: an array that represents a slice."""
    first = first.astype("int64")
    first = movement.reshape(elementwise.where(first < 0, FAR, first), shape=(1,))
    each = creation.arange(size=count, dtype=dt.int64.numpy, start=0, step=1)
    window = first + each if count != 1 else first
    window.slides = True
    return window


def length(k: slice) -> int | None:
    """The length of a slice that begins at a tensor; None for another slice."""
    if k.step not in (None, 1) or not (symbolic(k.start) and symbolic(k.stop)):
        return None
    (start, before), (stop, after) = (base_and_offset(value_of(x)) for x in (k.start, k.stop))
    return max(after - before, 0) if start is stop else None


def symbolic(x) -> bool:
    """Whether x is a whole number that a program computes, and too wide to wrap around."""
    known = isinstance(x, Var) and type(x.array) is SymbolicArray
    return known and not x.spec.shape and x.spec.dtype in (dt.int32.numpy, dt.int64.numpy)


def value_of(x: Var) -> Record:
    """The record that computes a tensor of the program."""
    return current.top.builder.value(x.array)


def base_and_offset(record: Record) -> tuple[Record, int]:
    """(r, n): the value of a record is the value of r plus the number n."""
    name, inputs = record.op.name, record.inputs
    if name == "add" and inputs[0].op is NUMBER:
        inputs = inputs[::-1]
    if name not in ("add", "subtract") or inputs[1].op is not NUMBER:
        return record, 0
    (start, n), number = base_and_offset(inputs[0]), inputs[1].attrs["value"]
    return start, n + number if name == "add" else n - number
