"""What becomes of the values in a branch or a loop: tensors and numbers travel through the program,
anything else must stay what it is.
"""

from __future__ import annotations

from ..core.dim import Dim
from ..core.errors import describe, line_of
from ..core.record import Spec
from ..eager.tensor import Tensor
from ..ops import creation, movement
from .places import MISSING
from .tree import LEAF, flatten, unflatten

NUMBERS = (bool, int, float)


class Undefined:
    """Stands in a variable that one way through the code leaves undefined, and says which."""

    def __init__(self, name: str, reason: str):
        self.name, self.reason = name, reason

    def __repr__(self) -> str:
        return f"undefined: {self.reason}"


class State:
    """The value of a place: its leaves and structure; no leaves if it is undefined."""

    def __init__(self, value):
        self.value = value
        self.missing = value is MISSING or isinstance(value, Undefined)
        self.leaves, self.structure = ([], None) if self.missing else flatten(value)

    def rebuilt(self, leaves):
        """The same structure with other leaves; the value itself if they are the same."""
        if self.missing or all(a is b for a, b in zip(self.leaves, leaves, strict=True)):
            return self.value
        return unflatten(self.structure, leaves)

    def blank(self) -> State:
        """A state of the same kind whose tensors are zeros."""
        return State(self.rebuilt([zeros(x.spec) if isinstance(x, Tensor) else x
                                   for x in self.leaves]))  # fmt: skip


def travels(leaf) -> bool:
    """Can a leaf be a value of a program?"""
    return isinstance(leaf, Tensor) or type(leaf) in NUMBERS or isinstance(leaf, Dim)


def same(a, b) -> bool:
    """Are two leaves that are no tensors the same?"""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # arrays, for instance, do not say
        return False


def full(spec: Spec, value):
    """A tensor with `value` everywhere."""
    return creation.full(shape=spec.shape, value=value, dtype=spec.dtype)


def zeros(spec: Spec):
    return full(spec, 0)


def scalar(x):
    """A tensor of one element as a 0-D one."""
    return movement.reshape(x, shape=()) if x.spec.shape else x


def told(x) -> str:
    """A leaf for a message: what it is, and for a tensor where it was made."""
    where = getattr(getattr(x, "record", None), "where", None)
    return describe(x) + (f", made at {line_of(where)}" if where else "")


__all__ = ["LEAF", "NUMBERS", "Spec", "State", "Undefined", "full", "same", "scalar", "told",
           "travels", "zeros"]  # fmt: skip
