"""The values in a branch or a loop: tensors and numbers become values of the
program; anything else must stay what it is.
"""

from __future__ import annotations

from ..core.dim import Dim
from ..core.dispatch import describe
from ..core.errors import line_of
from ..core.record import Spec
from ..core.symbols import UNSEEN, symbols
from ..eager.control_flow import NUMBERS
from ..eager.tensor import Tensor
from ..ir.builder import SymbolicArray
from ..ops import creation, movement
from . import tree
from .journal import MISSING
from .maybe_undefined import MaybeUndefined
from .tree import LEAF, Container, flatten, unflatten


class Undefined:
    """Stands in a variable that one path through the code leaves undefined; `reason` names it."""

    def __init__(self, name: str, reason: str):
        self.name, self.reason = name, reason

    def __repr__(self) -> str:
        return f"undefined: {self.reason}"


class PlaceState:
    """The value of a place: its leaves and structure; no leaves if it is undefined.

    It notes the specs of its tensors, because a tensor cannot be read once its region has ended.
    Containers of the outside (their ids are in `outer`) are leaves: they stay the same objects, and
    a place of its own has what changes in them.
    """

    def __init__(self, value, outer=frozenset()):
        self.value = value
        self.missing = value is MISSING or isinstance(value, Undefined)
        self.uncertain = type(value) is MaybeUndefined
        if self.uncertain:
            leaves, inside = flatten(value.known, outer)
            self.leaves = [*leaves, value.held]
            self.structure = Container(
                MaybeUndefined, ("value", "is it defined"), (inside, LEAF), None
            )
        else:
            self.leaves, self.structure = ([], None) if self.missing else flatten(value, outer)
        self.specs = [x.spec if isinstance(x, Tensor) else None for x in self.leaves]
        self.wheres = [line_of_tensor(x) if s else None for x, s in zip(self.leaves, self.specs)]

    def rebuild(self, leaves):
        """The structure with other leaves; the value itself if the leaves are the same."""
        if self.missing or all(a is b for a, b in zip(self.leaves, leaves, strict=True)):
            return self.value
        if self.uncertain:
            *leaves, held = leaves
            return self.value.like(unflatten(self.structure.children[0], leaves), held)
        return unflatten(self.structure, leaves)

    def blank(self) -> PlaceState:
        """A state of the same structure whose tensors are zeros. A size that values decide may be
        known in another region only.
        """
        blank = [x if s is None else full(fix_sizes(s), 0) for s, x in zip(self.specs, self.leaves)]
        if self.uncertain:
            blank[-1] = False
        return PlaceState(self.rebuild(blank))

    def maybe_undefined(self, place, held, reason: str) -> PlaceState:
        """The state of a place that has this value only if `held` is true."""
        if self.uncertain or self.missing:
            return self
        return PlaceState(MaybeUndefined(self.value, held, place, reason))

    def plain(self) -> bool:
        """Whether the value is one tensor or number, not in a container."""
        return self.structure is LEAF and is_value(self.value)

    def describe_leaf(self, j: int) -> str:
        """Leaf number `j` for a message: its spec and the line that made it, or its value."""
        spec, where = self.specs[j], self.wheres[j]
        at = f", made at {line_of(where)}" if where else ""
        return f"{spec}{at}" if spec else describe(self.leaves[j])

    def __str__(self) -> str:
        if self.missing:
            return "undefined"
        structure = self.structure.children[0] if self.uncertain else self.structure
        return self.describe_leaf(0) if structure is LEAF else tree.describe(structure)


def is_value(leaf) -> bool:
    """Whether a leaf can be a value of the program."""
    return isinstance(leaf, Tensor) or type(leaf) in NUMBERS or isinstance(leaf, Dim)


def fix_sizes(spec: Spec) -> Spec:
    """The spec with 1 for each size that values decide."""
    sizes = [1 if any(map(UNSEEN.match, symbols(n))) else n for n in spec.shape]
    return Spec(tuple(sizes), spec.dtype)


def full(spec: Spec, value):
    """A tensor with `value` everywhere."""
    return creation.full(shape=spec.shape, value=value, dtype=spec.dtype)


def scalar(x):
    """A tensor of one element as a 0-D one."""
    return movement.reshape(x, shape=()) if x.spec.shape else x


def line_of_tensor(x: Tensor):
    """The user's line that made a tensor of a program."""
    return x.array.record.where if type(x.array) is SymbolicArray else None


CONDITIONS: list = []
"""Functions that give what counts as the truth of a list: the list itself, or a tensor."""


def as_condition(x):
    """x as a condition."""
    for condition in CONDITIONS if type(x) is list else ():
        x = condition(x)
    return x
