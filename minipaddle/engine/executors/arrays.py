"""NumPy's arrays as C sees them: addresses, and memory without gaps."""

from __future__ import annotations

import ctypes

import numpy as np


def view(pointer, spec):
    """The array at an address."""
    if spec.nbytes == 0:
        return np.empty(spec.shape, spec.dtype)
    memory = (ctypes.c_char * spec.nbytes).from_address(pointer)
    return np.frombuffer(memory, spec.dtype).reshape(spec.shape)


HEAD = object.__basicsize__
"""In an array object the address of its memory stands behind the head of all objects: NumPy's C
interface (`PyArray_DATA`) fixes that for every extension module that was ever compiled.
"""


def address(array) -> int:
    """Where the memory of an array begins; a sixth of the time of `__array_interface__`."""
    return ctypes.c_size_t.from_address(id(array) + HEAD).value


def plain_address(array) -> int:
    return array.__array_interface__["data"][0]


if address(PROBE := np.zeros(1)) != plain_address(PROBE):  # an interpreter with other objects
    address = plain_address


def as_c(array, shape, dtype):
    """An array as C reads it: row-major, of the dtype the program has."""
    array = np.asarray(array)
    if array.shape != shape:
        raise ValueError(f"an array of shape {list(array.shape)} where {list(shape)} is needed")
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.array(array, dtype, order="C")
