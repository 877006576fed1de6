"""From Python, NumPy and DLPack to arrays of a wanted dtype on a wanted place."""

from __future__ import annotations

import numpy

from ..core import dtype as dt
from ..core.errors import type_error, value_error
from ..ops.var import Var
from .device import Place, as_place, current_place


def as_array(data, dtype=None, place=None):
    """Anything to_tensor takes, as an array; it may share memory with `data`."""
    if isinstance(data, Var):
        data = data.array
    elif not hasattr(data, "dtype"):
        data = from_python(data, round_floats=dtype is None)
    elif isinstance(data, numpy.generic):
        data = numpy.asarray(data)
    place = current_place() if place is None else as_place(place)
    want = dt.resolve(data.dtype.newbyteorder("=") if dtype is None else dtype)
    data = clean(place.move(data))
    return data if data.dtype == want else data.astype(want)


def lasts(data, copied) -> bool:
    """Can a program read the array of which this is a copy whenever it runs?"""
    return (
        type(data) is numpy.ndarray is type(copied) and data.dtype in SHARED and clean(data) is data
    )


SHARED = {kind.numpy for kind in dt.NAMES.values()}


def clean(array):
    """The array; booleans whose bytes are not all 0 and 1, as a file or another library may hold
    them, become such: compiled code computes with the bytes themselves.
    """
    if array.dtype != numpy.bool_ or not array.size:
        return array
    raw = array.view("uint8")
    return raw != 0 if raw.max() > 1 else array


def own_array(data, dtype=None, place=None):
    """The same, never sharing memory with `data`."""
    array = as_array(data, dtype, place)
    given = getattr(data, "array", data)
    return array.copy() if array is given or array.base is not None else array


def from_python(data, round_floats: bool = True):
    """Numbers and nested lists; Python floats become the default dtype, ints int64.

    Where a dtype was asked for, floats are not rounded to the default one on the way.
    """
    tensors = False
    if isinstance(data, list | tuple):
        tensors = any(isinstance(x, Var) for x in data)
        data = [x.numpy() if isinstance(x, Var) else x for x in data] if tensors else data
    try:
        array = numpy.asarray(data)
    except ValueError as error:
        raise value_error(f"no tensor can be made of this data: {error}") from None
    if array.dtype.kind in "OUSMmV" and array.dtype not in dt.FLOATS:
        raise type_error(
            f"no tensor can be made of {type(data).__name__} {data!r:.60}",
            expected="numbers, booleans, or nested lists of one depth",
        )
    floats = round_floats and array.dtype == numpy.float64 and not tensors
    return array.astype(dt.default()) if floats else array


def destination(args, kwargs) -> tuple:
    """(place, dtype) meant by the arguments of `to`; None for what was not given."""
    found = {"device": None, "dtype": None, "other": None, "blocking": None}
    for x in args:
        found[role(x)] = x
    unknown = kwargs.keys() - found.keys()
    if unknown:
        raise TypeError(f"to() takes no argument {unknown.pop()!r}; it has {[*found]}")
    found |= kwargs
    device, dtype, other = found["device"], found["dtype"], found["other"]
    if other is not None:
        device, dtype = other.place, other.dtype
    return (
        None if device is None else as_place(device),
        None if dtype is None else dt.public(dt.resolve(dtype)),
    )


def role(x) -> str:
    """Which argument of `to` a positional one is."""
    if isinstance(x, bool):
        return "blocking"
    if isinstance(x, Var):
        return "other"
    if x is None or isinstance(x, Place) or (isinstance(x, str) and x not in dt.NAMES):
        return "device"
    return "dtype"
