"""Indexing and assignment of eager tensors."""

from __future__ import annotations

from ..core.dispatch import current
from ..core.errors import type_error, value_error
from ..core.record import mark_written, writable
from ..ops import movement
from ..ops.subscripts import getitem, parse_key, setitem
from ..ops.var import Var
from .convert import as_array


class Indexing:
    """`x[key]` and `x[key] = value`; `ops/subscripts.py` lists the keys."""

    def __getitem__(self, key):
        if type(key) is int:  # the most frequent key needs no parsing
            return current.top.apply(movement.slice_, (self,), {"index": (key,)})
        return getitem(self, key)

    def __setitem__(self, key, value) -> None:
        """Write into x. On the tape the result depends on x and on the value."""
        top = current.top
        wanted = not self.stop_gradient or (isinstance(value, Var) and not value.stop_gradient)
        if top.tracing or (top.recording and wanted):
            if not isinstance(value, Var | bool | int | float):
                value = top.constant(value, self.dtype)
            self.become(setitem(self, key, value))
        else:
            write(self, key, value)

    def __iter__(self):
        """The slices along the first axis."""
        if not self.array.ndim:
            raise type_error("iteration over a 0-D tensor", expected="at least one dimension")
        return iter(movement.unstack(self, axis=0))


def write(x, key, value) -> None:
    """Put `value` into the memory of x at `key`."""
    index, arrays = parse_key(x, key)
    if not isinstance(value, bool | int | float):
        value = as_array(value, None, x.place)
    if (0 in x.array.strides and x.array.size > 1) or not writable(x.array):
        x.array = x.array.copy()  # elements of a broadcast view share memory
    part = x.array[movement.as_key(index or ())]
    places = [slice(None)] * part.ndim
    for axis, k in reversed(arrays):
        span = k.spec.ndim if k.spec.dtype.kind == "b" else 1
        places[axis : axis + span] = [k.array]
    try:
        part[(*places, ...)] = value  # without ... a single element takes no array, not even [1]
    except ValueError as error:
        raise value_error(f"assignment to a part of {x.spec}: {error}") from None
    mark_written(x.array)
