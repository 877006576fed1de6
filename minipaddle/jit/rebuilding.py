"""Objects that a converted function makes and that outlive the call: each run builds its own, with
its tensors in their attributes.

To the engine an object is a leaf. Here one that holds tensors of the trace becomes a tuple of what
it holds, whose type builds the object again when it is given other values.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict
from types import FunctionType, MethodType, ModuleType

from ..engine.core.dim import Dim
from ..engine.eager.tensor import Tensor
from ..engine.ir.builder import SymbolicArray
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import PLAIN
from ..nn.layer.layers import Layer

WHOLE = (Tensor, Dim, Layer, type, FunctionType, MethodType, ModuleType)
"""Objects that stay as they are."""
CONTAINERS = (OrderedDict, dict, list, tuple)


class Rebuilding:
    """Takes the objects apart that one trace made; `is_outside(x)` says what it did not make."""

    def __init__(self, is_outside):
        self.is_outside = is_outside
        self.apart: dict[int, object] = {}  # what was taken apart, by id

    def take_apart(self, value):
        """The value, with tuples in place of objects that hold something of the trace."""
        kind = type(value)
        if kind in PLAIN or isinstance(value, WHOLE) or self.is_outside(value):
            return value
        if kind in CONTAINERS or hasattr(kind, "_fields"):
            items = [*value.values()] if isinstance(value, dict) else [*value]
            new = [self.take_apart(x) for x in items]
            if all(a is b for a, b in zip(items, new)):
                return value
            if isinstance(value, dict):
                return kind(zip(value, new))
            return kind(*new) if hasattr(kind, "_fields") else kind(new)
        plain = dataclasses.is_dataclass(kind) and not issubclass(kind, CONTAINERS)
        if plain or not isinstance(getattr(value, "__dict__", None), dict):
            return value  # the engine takes dataclasses apart
        return self.object(value)

    def object(self, value):
        """A tuple of the items and the attributes of an object, or the object."""
        base = next((k for k in CONTAINERS if isinstance(value, k)), object)
        if base is tuple or not holds_traced(value, set()):
            return value
        if id(value) in self.apart:
            raise refusal(
                f"a {type(value).__name__} that the converted function makes holds its tensors, "
                "and outlives the call in two places",
                hint="return it or keep it in one place, or keep its tensors there",
            )
        self.apart[id(value)] = value
        keys = [*value] if base in CONTAINERS[:2] else []
        items = [*value.values()] if keys else [*value] if base is list else []
        names = [*vars(value)] if vars(value) is not value else []
        flat = [*items, *(vars(value)[name] for name in names)]
        held = {id(x): x for x in flat}  # an item may be an attribute, too
        numbers = [[*held].index(id(x)) for x in flat]

        def build(cls, values):
            values = [values[k] for k in numbers]
            new = copy.copy(value) if base is object else base.__new__(type(value))
            for k, x in zip(keys, values):
                base.__setitem__(new, k, x)
            if base is list:
                list.extend(new, values[: len(items)])
            if vars(value) is value:
                new.__dict__ = new
            vars(new).update(zip(names, values[len(items) :]))
            return new

        kind = type(type(value).__name__, (tuple,), {"__new__": build})
        return tuple.__new__(kind, map(self.take_apart, held.values()))


def holds_traced(x, seen: set) -> bool:
    """Whether a value is, or holds, a tensor or a size of a program."""
    if isinstance(x, Tensor):
        return type(x.array) is SymbolicArray
    if isinstance(x, Dim) or type(x) in PLAIN or isinstance(x, WHOLE) or id(x) in seen:
        return isinstance(x, Dim)
    seen.add(id(x))
    inside = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    own = getattr(x, "__dict__", None)
    return any(holds_traced(y, seen) for y in (*inside, *(own.values() if own else ())))
