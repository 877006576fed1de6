"""The interface of a call stub's C (`call_stub.c`), which becomes a method of functions."""

import ctypes
from functools import cache
from itertools import chain
from pathlib import Path
from sys import getrefcount

from ..engine.executors.compiler import Unusable, load
from ..engine.jit.to_static import StaticFunction

ABSENT = object()
"""Stands for the value of a cell whose dict has no such key."""


def words(text: str) -> list[tuple]:
    return [(name, ctypes.c_void_p) for name in text.split()]


class Cell(ctypes.Structure):
    """A place, and what was there at the last check; as in the C file, like all below."""

    _fields_ = words("kind owner key expected")


class ArgumentNode(ctypes.Structure):
    """A list, a tuple, a tensor or a constant among the arguments."""

    _fields_ = words("kind count type expected")


class StubPlan(ctypes.Structure):
    """All that C needs for a call: numbers, addresses of tables and of objects."""

    _fields_ = words(
        "busy thread count updates setting_count cell_count input_count output_count "
        "settings cells nodes inputs outputs output_keys run table "
        "settle again bind new finish outer written hits clock tick tensor array_name stop_name "
        "names"
    )


ITEM, FIRST, ATTRIBUTE, CALL, LISTED, MAPPED = range(6)
CONSTANT, LIST, TUPLE, TENSOR = range(4)


def attribute(owner, name: str):
    """An attribute, or the value of a function's variable: ABSENT if it is empty."""
    try:
        return getattr(owner, name)
    except (AttributeError, ValueError):
        return ABSENT


READ = [
    lambda owner, key: owner.get(key, ABSENT), lambda owner, key: owner[0], attribute,
    lambda owner, key: owner(), lambda owner, key: tuple(owner),
    lambda owner, key: tuple(chain.from_iterable(owner.items())),
]  # fmt: skip
"""How Python reads the value of a cell of each kind."""


def address(x) -> int | None:
    return None if x is ABSENT else id(x)


@cache
def fast_calls() -> bool:
    """Make the C function the `__call__` of static functions. False if that is impossible here: no
    compiler, or another layout of objects than CPython's.
    """
    probe = [object()]  # in a list: newer Pythons do not count what a variable holds
    count = ctypes.c_uint32.from_address(id(probe[0])).value
    kind = ctypes.c_void_p.from_address(id(probe[0]) + ctypes.sizeof(ctypes.c_int64)).value
    if (count, kind) != (getrefcount(probe[0]) - 1, id(object)):
        return False
    try:
        library = load(Path(__file__).with_name("call_stub.c").read_text("utf-8"))
    except (OSError, RuntimeError, Unusable):
        return False
    create = ctypes.PyDLL(None, handle=library._handle).descriptor
    create.restype, create.argtypes = ctypes.py_object, [ctypes.py_object] * 3
    slow = StaticFunction.__call__
    StaticFunction.__call__ = create(StaticFunction, slow, "stubs")
    return True
