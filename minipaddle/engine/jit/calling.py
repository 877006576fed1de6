"""Calls at run time: a function of the user's is converted before it is called."""

from __future__ import annotations

from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType, MethodWrapperType

from ..core.dispatch import current
from ..core.slots import slot
from .ignore import MARK, converts, ours
from .journal import CONTAINERS, before_write
from .source import SourceMissing
from .transpile import transpile


@slot("jit.runtime.call")
def call(function):
    """The callee in place of `function`: a function converted, anything else itself."""
    kind = type(function)
    for check in CHECKS if len(current.top.journals) > 1 else ():
        check(function)
    if kind is FunctionType:
        return convert_function(function)
    if kind is MethodType:
        inner = call(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if kind is BuiltinMethodType or kind is MethodWrapperType:
        return builtin(function)
    if kind in SPECIAL:
        return SPECIAL[kind](function)
    if isinstance(function, type):
        return constructing(function)
    if kind is partial:
        return partial(call(function.func), *function.args, **function.keywords)
    inner = kind.__call__ if callable(function) else None
    if type(inner) is FunctionType and not getattr(function, MARK, False):
        own = convert_function(inner)
        return function if own is inner else MethodType(own, function)
    return function


TABLE: dict = {}
"""The callee in place of a builtin while a program is traced, by the builtin."""

SPECIAL: dict = {}
"""By type of a callable object: a function that gives the callee in its place."""

CHECKS: list = []
"""Functions that may refuse a callee before a branch or a loop calls it."""

UNCONVERTED: list = [lambda function: function]
"""The last one gives the callee in place of a Python function that is not converted."""

LIST_METHODS: list = []
"""Functions from a method of a list to the callee in its place."""


def convert_function(function: FunctionType) -> FunctionType:
    """A user's function, converted if its source can be found."""
    if not converts(function):
        return UNCONVERTED[-1](function)
    try:
        return transpile(function)
    except SourceMissing:
        return function


def builtin(function):
    """The callee for a builtin; the journal notes a container before a method changes it."""
    owner = function.__self__
    if type(owner) in CONTAINERS:
        if function.__name__ not in READING:
            before_write(owner)
        for replace in LIST_METHODS if type(owner) is list else ():
            if (replacement := replace(function)) is not function:
                return replacement
        return function
    try:
        return TABLE.get(function, function) if current.top.tracing else function
    except TypeError:  # a method of something that has no hash
        return function


READING = {"copy", "count", "difference", "get", "index", "intersection", "isdisjoint"}
READING |= {"issubset", "issuperset", "items", "keys", "symmetric_difference", "union", "values"}
"""Methods of containers that change nothing."""


def constructing(kind: type):
    """The callee for a class: the user's `__init__` is converted."""
    if kind in TABLE:
        return TABLE[kind]
    init = kind.__init__
    users = type(init) is FunctionType and type(kind) is type and not ours(init)
    if not users:
        return kind
    inner = convert_function(init)
    return kind if inner is init else partial(construct, kind, inner)


def construct(kind: type, init, /, *args, **kwargs):
    """`kind(*args, **kwargs)`, as `type.__call__` does it."""
    instance = kind.__new__(kind, *args, **kwargs)
    if isinstance(instance, kind):
        init(instance, *args, **kwargs)
    return instance
