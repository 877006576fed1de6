"""Indexing: `x[key]`, and x with other values at `key`, as slices, takes and puts.

A key is read in two steps. Its numbers, slices, None and Ellipsis give a slice of x. An array of
whole numbers gives places along an axis of that slice. As in Paddle and PyTorch, numbers do not
count as arrays. Masks, and several arrays, are in `minipaddle/ops/index_arrays.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import NamedTuple

from ..core.dim import Dim, as_guarded
from ..core.dispatch import current
from ..core.errors import teach, type_error
from . import gather as indexing
from . import movement
from .var import Var

WHOLE = movement.WHOLE[0]


class ParsedKey(NamedTuple):
    """A slice (None: all of x), and the arrays that index axes of that slice."""

    slice: tuple | None
    arrays: list  # pairs (first axis it indexes, Var of whole numbers or booleans)


READINGS: list = []
"""Functions that give the entries of a key another form before they are read."""

# ---- reading a key ---------------------------------------------------------------------------


def parse_key(x, key) -> ParsedKey:
    """The two parts of `key` for x; raises IndexError or TypeError with an explanation."""
    index = basic_index(key)
    if index is not None:
        return ParsedKey(index, [])
    keys = key if type(key) is tuple else (key,)
    for read in READINGS:
        keys = read(keys)
    parts = [parse_entry(k) for k in keys]
    spoken, ndim = sum([n for _, n in parts]), x.spec.ndim
    if spoken > ndim:
        raise IndexError(
            teach(
                f"too many indices: {spoken} for the {ndim} dimensions of {x.spec}",
                hint="None makes a new axis",
            )
        )
    entries, arrays, axis, dots = [], [], 0, 0
    for k, n in parts:
        if k is ...:
            dots += 1
            new = movement.WHOLE[: ndim - spoken]
        elif isinstance(k, Var):
            arrays.append((axis, k))
            new = movement.WHOLE[:n] or (None,)
        else:
            new = (k,)
        entries += new
        axis += 0 if isinstance(k, int | Dim) else len(new)
    if dots > 1:
        raise IndexError(teach("an index has more than one ...", expected="at most one"))
    return ParsedKey(tuple(entries) if any(k != WHOLE for k in entries) else None, arrays)


def basic_index(key) -> tuple | None:
    """The index of a slice if the key has only numbers, slices and None: the frequent case."""
    index = []
    for k in key if type(key) is tuple else (key,):
        if type(k) is slice:
            k = k.start, k.stop, k.step
            if not (type(k[0]) in BOUNDS and type(k[1]) in BOUNDS and type(k[2]) in BOUNDS):
                return None
        elif type(k) not in BOUNDS:
            return None
        index.append(k)
    return tuple(index)


BOUNDS = (int, type(None))


def parse_entry(k) -> tuple:
    """One entry of a key, and the number of axes that it indexes.

    It is an int, None, Ellipsis, a triple for a slice, or a Var of at least one axis.
    """
    if not isinstance(k, Var):
        if k is None or k is ...:
            return k, 0
        if type(k) is slice:
            return tuple([v if v is None else whole(v) for v in (k.start, k.stop, k.step)]), 1
        k = list(k) if isinstance(k, range) else k
        if isinstance(k, list | tuple) or hasattr(k, "dtype"):
            k = current.top.constant(k, "int64" if not hasattr(k, "dtype") and not len(k) else None)
        elif type(k) is bool:
            return new_axis(k)
        elif hasattr(k, "__index__"):
            return whole(k), 1
    spec = k.spec if isinstance(k, Var) else None
    kind = spec.dtype.kind if spec else ""
    if kind == "b":
        if spec.ndim or current.top.tracing:  # a mask without axes gets a new one
            return (k if spec.ndim else movement.reshape(k, shape=(1,))), spec.ndim
        return new_axis(bool(k))
    if kind and kind in "iu":
        known = not spec.ndim and not current.top.tracing  # else the run gives its value
        return (index(k) if known else k), 1
    raise type_error(
        f"an index of {spec or repr(k)!s:.60}",
        expected="a whole number, slice, None, ..., list or tensor of whole numbers or "
        "booleans, or a tuple of these",
    )


def whole(n):
    """A size or a place: an int, or a size that only a run knows."""
    if isinstance(n, Var):
        n = current.top.sizes(n)
        n = n[0] if isinstance(n, list) and len(n) == 1 else n
    return as_guarded(n, False) if isinstance(n, Dim) else index(n)


def new_axis(wanted: bool) -> tuple:
    """True makes a new axis of size 1, False one of size 0: a mask that selects nothing."""
    return None if wanted else current.top.constant([False]), 0


# ---- x[key], and x with x[key] = value --------------------------------------------------------


def getitem(x, key):
    """`x[key]`."""
    if isinstance(key, Var) and key.spec.shape and key.spec.dtype.kind != "b":
        return indexing.take(x, parse_entry(key)[0], axis=0)
    index, arrays = parse_key(x, key)
    if index is not None or not arrays:
        x = movement.slice_(x, index=index or ())
    if not arrays:
        return x
    y = index_by_arrays("take", x, arrays)
    if not any(k.spec.ndim and not k.slides for _, k in arrays):
        current.top.note_view(x, y)
    return y


def setitem(x, key, value):
    """A copy of x with `value`, broadcast and in x's dtype, at `key`."""
    index, arrays = parse_key(x, key)
    if not arrays:
        return movement.slice_assign(x, value, index=index or ())
    inner = x if index is None else movement.slice_(x, index=index)
    inner = index_by_arrays("put", inner, arrays, value)
    return inner if index is None else movement.slice_assign(x, inner, index=index)


BY_ARRAYS: dict[str, Callable] = {}
"""`take(x, arrays)` and `put(x, arrays, value)` for masks and for several arrays in one key."""


def index_by_arrays(name: str, x, arrays, *value):
    """x at the places that a key's arrays name, or a copy of x with a value there."""
    (axis, index), *more = arrays
    if not more and index.spec.dtype.kind != "b":
        return getattr(indexing, name)(x, index, *value, axis=axis)
    if name not in BY_ARRAYS:
        raise type_error("a mask, or several arrays, in an index", expected="one array")
    return BY_ARRAYS[name](x, arrays, *value)
