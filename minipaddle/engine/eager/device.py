"""Devices and array modules: `numpy` on the CPU, others elsewhere, behind one name `m`."""

from __future__ import annotations

import functools
import importlib
from contextlib import contextmanager
from contextvars import copy_context

import numpy

from ..core.errors import value_error
from ..core.rank import per_rank
from ..ir.builder import SymbolicArray


class ArrayModule:
    """numpy (or cupy) plus the special functions of scipy (or cupyx.scipy), as one namespace."""

    def __init__(self, arrays, scipy: str):
        self.arrays, self.scipy, self.name = arrays, scipy, arrays.__name__

    def __getattr__(self, name):
        function = getattr(self.arrays, name, None)
        function = getattr(self.special, name) if function is None else function
        setattr(self, name, function)
        return function

    @functools.cached_property
    def special(self):
        """Special functions; importing them takes as long as everything else together."""
        return importlib.import_module(f"{self.scipy}.special")

    @functools.cached_property
    def sparse(self):
        """Sparse matrices."""
        return importlib.import_module(f"{self.scipy}.sparse")

    def keep(self, x, condition):
        """x where the condition holds, else 0, also where x is inf or nan.

        NumPy's `where` branches at every element: its time is ten times that of bits, times 1 or 0.
        """
        if type(x) is numpy.ndarray and x.dtype.kind == "f":
            return (x.view(f"i{x.itemsize}") * condition.view("i1")).view(x.dtype)
        return self.where(condition, x, 0)

    def power(self, x, y):
        """x to the power y. NumPy takes √x for x^½, which differs at -inf and at -0."""
        z = x**y
        if self.arrays is numpy and numpy.ndim(z) and numpy.size(y) == 1 and y == 0.5:
            return numpy.where(x == -numpy.inf, numpy.inf, numpy.abs(z))
        return z

    def __repr__(self) -> str:
        return f"<array module {self.name}>"


NUMPY = ArrayModule(numpy, "scipy")

with numpy.errstate(all="ignore"):
    QUIET = copy_context()
"""Deep learning works with inf and nan on purpose: NumPy's warnings are off inside operators.

Running a function in a context costs a fifth of entering `numpy.errstate`.
"""


class SymbolicModule:
    """The array module of symbolic arrays: what needs no value."""

    name = "a program that is traced"
    asarray = staticmethod(lambda x: x)


def module_of(array) -> ArrayModule:
    """The array module an array belongs to."""
    if isinstance(array, numpy.ndarray | numpy.generic):
        return NUMPY
    if type(array) is SymbolicArray:
        return SymbolicModule
    return getattr(array, "module", None) or place_of(array).module  # one in pieces has its own


class Place:
    """Where a tensor lives: `Place(cpu)`. `module` is the array module that computes there."""

    kind, index, module = "cpu", 0, NUMPY

    def __repr__(self) -> str:
        return f"Place({self.name})"

    @property
    def name(self) -> str:
        """As `set_device` takes it: "cpu" or "gpu:0"."""
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"

    def __eq__(self, other) -> bool:
        return isinstance(other, Place) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def move(self, array):
        """`array` on this place; the same object if it is there already."""
        return array.get() if hasattr(array, "get") else array


class CPUPlace(Place):
    """The CPU.

    >>> paddle.CPUPlace(), isinstance(paddle.ones([1]).cpu().place, paddle.CPUPlace)
    (Place(cpu), True)
    """


CPU = CPUPlace()
PLACES = {"cpu": lambda index: CPU}
"""By kind of device: a function that gives the place with an index."""


def as_place(device) -> Place:
    """A `Place` from "cpu", "gpu", "gpu:1" or a Place; raises ValueError on anything else."""
    if isinstance(device, Place):
        return device
    name, _, index = str(device).partition(":")
    name = "gpu" if name == "cuda" else name
    if name not in PLACES or (index and not index.isdigit()):
        raise value_error(f"unknown device {device!r}", expected='"cpu", "gpu" or "gpu:0"')
    return PLACES[name](int(index or 0))


def place_of(array) -> Place:
    """The place an array lives on."""
    if type(array) is SymbolicArray:
        return array.place
    array = getattr(array, "local", array)
    if isinstance(array, numpy.ndarray | numpy.generic):
        return CPU
    return PLACES["gpu"](array.device.id)


chosen = per_rank(CPU, "the default device")


def current_place() -> Place:
    """Where new tensors are made."""
    return chosen.now


def set_device(device) -> Place:
    """Make new tensors on "cpu", "gpu" or "gpu:0". Returns the place.

    Raises RuntimeError with the reason when there is no usable GPU.

    >>> paddle.set_device("cpu")
    Place(cpu)
    """
    place = as_place(device)
    if place.kind != "cpu":
        place.use()
    chosen.now = place
    return place


@contextmanager
def device_guard(device):
    """Make new tensors on `device` inside the block. Source: Paddle API `paddle.device`.

    >>> with paddle.device.device_guard("cpu"):
    ...     paddle.ones([1]).place
    Place(cpu)
    """
    before, place = chosen.now, as_place(device)
    if place is not before:
        set_device(place)
    try:
        yield
    finally:
        if place is not before:
            set_device(before)
