"""Calls at run time: what is called is converted first, if it is the user's."""

from __future__ import annotations

from functools import lru_cache, partial
from types import BuiltinMethodType, FunctionType, MethodType, MethodWrapperType

from ..core.slots import slot
from ..eager.control_flow import is_static
from . import aliasing
from .ignore import MARK, converts, ours
from .journal import CONTAINERS, before_write, journals
from .refusal import refusal
from .rest import grown
from .sequences import pick
from .source import SourceMissing
from .transpile import transpile


@slot("jit.runtime.call")
def call(function):
    """What to call instead of `function`: a function converted, anything else itself."""
    kind = type(function)
    if len(journals.open) > 1 and says(function):
        raise refusal(
            f"{function.__module__}.{function.__name__} in a branch or a loop that depends on a "
            "tensor: it would write a line while the program is traced, not when it runs",
            hint="print() there, or log outside",
        )
    if kind is FunctionType:
        return converted(function)
    if kind is MethodType:
        inner = call(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if kind is BuiltinMethodType or kind is MethodWrapperType:
        return builtin(function)
    if kind is CACHED:
        return uncached(function)
    if isinstance(function, type):
        return constructing(function)
    if kind is partial:
        return partial(call(function.func), *function.args, **function.keywords)
    inner = kind.__call__ if callable(function) else None
    if type(inner) is FunctionType and not getattr(function, MARK, False):
        found = converted(inner)
        return function if found is inner else MethodType(found, function)
    return function


TABLE: dict = {}
"""What is called in place of a builtin, by the builtin."""

LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}


def says(function) -> bool:
    """Does it write a line for somebody to read?"""
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    return name in LEVELS and module in ("logging", "warnings", "_warnings")


CACHED = type(lru_cache(call))


def uncached(function):
    """What `functools.lru_cache` keeps the results of: a run makes its own, with its own tensors.

    Its effects would be those of each call, not of the first; so it may have none.
    """
    inner = call(function.__wrapped__)

    def run(*args, **kwargs):
        what = "by a function whose results are kept (functools.lru_cache)"
        with aliasing.rule.unchanged([inner], what):
            return inner(*args, **kwargs)

    return run


def converted(function: FunctionType) -> FunctionType:
    """A user's function, converted if its source is there."""
    if not converts(function):
        return function
    try:
        return transpile(function)
    except SourceMissing:
        return function


def builtin(function):
    """A builtin; before a method changes a container, the region around is told."""
    owner = function.__self__
    if type(owner) in CONTAINERS:
        if function.__name__ not in READING:
            before_write(owner)
        if function.__name__ not in ("append", "clear", "copy", "extend") and grown(owner):
            raise refusal(
                f"list.{function.__name__} of a list that grew in a loop on a tensor",
                hint="paddle.stack(items) first",
            )
        return searching(function, owner) if type(owner) is list else function
    try:
        return TABLE.get(function, function)
    except TypeError:  # a method of something that has no hash
        return function


READING = {"copy", "count", "difference", "get", "index", "intersection", "isdisjoint"}
READING |= {"issubset", "issuperset", "items", "keys", "symmetric_difference", "union", "values"}
"""Methods of containers that change nothing."""


def searching(function, items: list):
    """`items.index(x)`, `items.count(x)`, where equality with a tensor is no bool."""
    if function.__name__ == "index" and any(map(is_static, items)):
        return lambda x: next(k for k, each in enumerate(items) if each is x)
    return function


def constructing(kind: type):
    """A class; one with an `__init__` of the user's runs it converted."""
    if kind in TABLE:
        return TABLE[kind]
    init = kind.__init__
    users = type(init) is FunctionType and type(kind) is type and not ours(init)
    if not users:
        return kind
    inner = converted(init)
    return kind if inner is init else partial(construct, kind, inner)


def construct(kind: type, init, /, *args, **kwargs):
    """`kind(*args, **kwargs)`, as `type.__call__` does it."""
    made = kind.__new__(kind, *args, **kwargs)
    if isinstance(made, kind):
        init(made, *args, **kwargs)
    return made


@slot("jit.runtime.attr")
def attr(owner, name: str):
    """`owner.name`, where `name` is a property of some class: its getter is converted."""
    kind = type(owner)
    if kind is super:  # the classes after its own, in the order in which it asks them
        order, owner_ = owner.__self_class__.__mro__, owner.__self__
        later = order[order.index(owner.__thisclass__) + 1 :]
        found = next((vars(each)[name] for each in later if name in vars(each)), None)
    else:
        found, owner_ = getattr(kind, name, None), owner
    if isinstance(found, property) and type(found.fget) is FunctionType:
        return converted(found.fget)(owner_)
    return getattr(owner, name)


@slot("jit.runtime.item")
def item(owner, index):
    """`owner[index]`: a list may be indexed by a tensor."""
    if (is_static(index) and isinstance(owner, list | tuple)) or grown(owner):
        return pick(owner, index)
    return owner[index]
