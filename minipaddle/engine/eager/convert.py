"""Conversion of Python's, NumPy's and DLPack's data to arrays of a dtype on a device."""

from __future__ import annotations

import numpy

from ..core import dtype as dt
from ..core.errors import type_error, value_error
from ..ops.var import Var
from .device import as_place, current_place


def as_array(data, dtype=None, place=None):
    """The data that `to_tensor` takes as an array, which may share memory with `data`."""
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


def can_reread(data, copied) -> bool:
    """Whether a program can read `data` again in each run; `copied` is a copy of it."""
    return (
        type(data) is numpy.ndarray is type(copied) and data.dtype in SHARED and clean(data) is data
    )


SHARED = {kind.numpy for kind in dt.NAMES.values()}


def clean(array):
    """The array with booleans as bytes 0 and 1, as compiled code needs them.

    Files and other libraries may have other bytes.
    """
    if array.dtype != numpy.bool_ or not array.size:
        return array
    raw = array.view("uint8")
    return raw != 0 if raw.max() > 1 else array


def own_array(data, dtype=None, place=None):
    """`as_array`, but the result never shares memory with `data`."""
    array = as_array(data, dtype, place)
    source = getattr(data, "array", data)
    return array.copy() if array is source or array.base is not None else array


def from_python(data, round_floats: bool = True):
    """Numbers and nested lists; Python floats become the default dtype, ints int64.

    With `round_floats` False, floats are not rounded to the default dtype.
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
