"""What becomes of the values in a branch or a loop: tensors and numbers travel through the program,
anything else must stay what it is.
"""

from __future__ import annotations

import threading
from weakref import WeakSet

from ..core.dim import Dim
from ..core.errors import describe, line_of
from ..core.record import Spec
from ..eager.tensor import Tensor
from ..ir.builder import Promise
from ..ops import creation, movement
from . import tree
from .journal import MISSING
from .tree import LEAF, Node, flatten, unflatten
from .unsure import Unsure

NUMBERS = (bool, int, float)


class Undefined:
    """Stands in a variable that one way through the code leaves undefined, and says which."""

    def __init__(self, name: str, reason: str):
        self.name, self.reason = name, reason

    def __repr__(self) -> str:
        return f"undefined: {self.reason}"


class Alive(threading.local):
    """The states there are on this thread."""

    def __init__(self):
        self.states: WeakSet[State] = WeakSet()


alive = Alive()


class State:
    """The value of a place: its leaves and structure; no leaves if it is undefined.

    What is known of its tensors is written down, for once a region has ended nobody may ask them.
    Containers that were there before (their ids are in `kept`) are leaves: they stay what they are,
    and what changes in them is the matter of a place of its own.
    """

    def __init__(self, value, kept=frozenset()):
        alive.states.add(self)
        self.value = value
        self.missing = value is MISSING or isinstance(value, Undefined)
        self.unsure = type(value) is Unsure
        if self.unsure:
            leaves, inside = flatten(value.known, kept)
            self.leaves = [*leaves, value.held]
            self.structure = Node(Unsure, ("value", "is it defined"), (inside, LEAF), None)
        else:
            self.leaves, self.structure = ([], None) if self.missing else flatten(value, kept)
        self.specs = [x.spec if isinstance(x, Tensor) else None for x in self.leaves]
        self.wheres = [made_at(x) if s else None for x, s in zip(self.leaves, self.specs)]

    def holds(self, container) -> int:
        """How often the state itself, not a value in it, holds a container."""
        here = [self.value, *self.leaves]
        return sum(x is container for x in here) + held_by(self.structure, container)

    def rebuilt(self, leaves):
        """The same structure with other leaves; the value itself if they are the same."""
        if self.missing or all(a is b for a, b in zip(self.leaves, leaves, strict=True)):
            return self.value
        if self.unsure:
            *leaves, held = leaves
            return self.value.like(unflatten(self.structure.children[0], leaves), held)
        return unflatten(self.structure, leaves)

    def blank(self) -> State:
        """A state of the same kind whose tensors are zeros."""
        blank = [x if s is None else full(s, 0) for s, x in zip(self.specs, self.leaves)]
        if self.unsure:
            blank[-1] = False
        return State(self.rebuilt(blank))

    def doubted(self, place, held, reason: str) -> State:
        """The same value of a variable that has one if `held`."""
        if self.unsure or self.missing:
            return self
        return State(Unsure(self.value, held, place.name, reason))

    def plain(self) -> bool:
        """Is it one tensor or number, with nothing around it?"""
        return self.structure is LEAF and travels(self.value)

    def told(self, j: int) -> str:
        """Leaf number `j` for a message: what it is, and for a tensor where it was made."""
        spec, where = self.specs[j], self.wheres[j]
        at = f", made at {line_of(where)}" if where else ""
        return f"{spec}{at}" if spec else describe(self.leaves[j])

    def __str__(self) -> str:
        if self.missing:
            return "undefined"
        structure = self.structure.children[0] if self.unsure else self.structure
        return self.told(0) if structure is LEAF else tree.describe(structure)


def held_by(structure, container) -> int:
    if type(structure) is not Node:
        return 0
    below = (held_by(child, container) for child in structure.children)
    return (structure.like is container) + sum(below)


def replaced(a: State, b: State, kept: set) -> set[int]:
    """The containers among the leaves that only one of two states has: the other has a new one."""
    return kept & ({*map(id, a.leaves)} ^ {*map(id, b.leaves)})


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


def scalar(x):
    """A tensor of one element as a 0-D one."""
    return movement.reshape(x, shape=()) if x.spec.shape else x


def made_at(x: Tensor):
    """The user's line that made a tensor of a program."""
    return x.array.record.where if type(x.array) is Promise else None
