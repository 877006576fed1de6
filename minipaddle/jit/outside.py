"""The side effects of a traced function: what it leaves in variables of other scopes, attributes,
lists and dicts that outlive it. Each run leaves the same there, with tensors of its own.
"""

from __future__ import annotations

import re
from functools import partial
from types import FunctionType
from typing import NamedTuple

from ..eager.layer_changes import changes_of
from ..engine.core.dim import Dim
from ..engine.core.dispatch import current
from ..engine.core.errors import PACKAGE
from ..engine.eager.control_flow import NUMBERS, is_static
from ..engine.eager.tensor import Tensor, same_value, wrap
from ..engine.jit.ignore import within
from ..engine.jit.journal import MISSING, Contents, Place, journal, outliving_places, same_parts
from ..engine.jit.leaves import State
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import unflatten
from ..engine.jit.writing import defined
from .dy2static.utils import mention
from .objects import library


class SideEffect(NamedTuple):
    """A place that gets a value in each run; outputs of the program are leaves of that value."""

    place: Place
    state: State
    begin: int  # of a list that grew: how many items stay
    tensors: tuple
    outputs: tuple

    @property
    def name(self) -> str:
        return getattr(self.place, "attribute", self.place.name)

    def leave(self, inputs, *arrays) -> None:
        if self.state.missing:
            return self.place.set(MISSING)
        leaves = list(self.state.leaves)
        for j, array in zip(self.tensors, arrays, strict=True):
            leaves[j] = wrap(array)
        value = unflatten(self.state.structure, leaves)
        if self.begin:
            return self.place.owner.extend(value)
        return self.place.set(value)


class Guard(NamedTuple):
    """The value of a place when the function was traced: the program is right only for that."""

    place: Place
    value: object

    def holds(self) -> bool:
        now = self.place.get()
        if isinstance(self.place, Contents):
            return same_parts(now, self.value)
        return same_value(now, self.value)

    def __str__(self) -> str:
        held = self.place.get(), self.value
        now, was = (x.spec if isinstance(x, Tensor) else x for x in held)
        hint = "; as a tensor it would be a state" if type(was) in NUMBERS else ""
        return f"{self.place.name} is {now!r:.60}, was {was!r:.60}{hint}"


class whole(journal):
    """The journal of a whole traced function."""

    block = "by the function that is converted, in code that is not"

    @staticmethod
    def where(objects: list, name: str):
        """The line that first names the changed object: `queue` of `self.queue[0]`."""
        named = re.findall(r"[^\W\d]\w*", "".join(re.findall("`(.*)`", name)).split("[")[0])
        codes = [x.__code__ for x in objects if type(x) is FunctionType and of_user(x)]
        return mention(codes, named[-1]) if named else None


def of_user(function: FunctionType) -> bool:
    module = function.__globals__.get("__name__") or ""
    return not within(module, PACKAGE) and not library(module, function.__code__.co_filename)


def trace_whole(function) -> tuple:
    """(what a function returns, a list of Guard), the function being traced.

    Its changes outside are undone; each run of its program makes them.
    """
    with whole([], [function]) as noted:
        returned = function()
        values = noted.values()
    guards = []
    for place in outliving_places(noted, values, returned, known=[]):
        before, after = noted.noted[place.key][1], values[place.key]
        if is_static(place.owner) and id(place.owner) not in current.top.lifted:
            place.set(after)  # a tensor of the program itself
        elif (guard := note_side_effect(place, before, after)) is not None:
            guards.append(guard)
    return returned, guards


def note_side_effect(place: Place, before, after) -> Guard | None:
    """Let each run leave `after` in a place; return the value that this assumes."""
    after = defined(after)
    a, b = State(before), State(after)
    if any(isinstance(leaf, Dim) for leaf in b.leaves):
        raise refusal(f"{place.name} is to keep a size that varies from call to call")
    if differ_in_tensors_only(a, b):
        pairs = zip(a.leaves, b.leaves, strict=True)
        rebound = [(x, y) for x, y in pairs if isinstance(x, Tensor) and x is not y]
        changes_of(current.top).rebound += rebound
        return None
    grown = only_appended(place, before, after)
    begin = len(before) if grown else 0
    state = State(after[begin:]) if grown else b
    tensors = tuple(j for j, leaf in enumerate(state.leaves) if is_static(leaf))
    current.top.effects.append(
        ([state.leaves[j] for j in tensors], partial(SideEffect, place, state, begin, tensors))
    )
    return None if grown else Guard(place, before)


def differ_in_tensors_only(a: State, b: State) -> bool:
    """Whether two values differ in nothing but the contents of their tensors."""
    if a.missing or b.missing or a.structure != b.structure or a.specs != b.specs:
        return False
    pairs = zip(a.leaves, b.leaves, strict=True)
    return all(isinstance(x, Tensor) or same_value(x, y) for x, y in pairs)


def only_appended(place: Place, before, after) -> bool:
    """Whether the function appended to a list, and did not read it otherwise."""
    if not isinstance(place, Contents) or not isinstance(after, list) or not before:
        return False
    used = current.top.lifted
    return same_parts(before, after[: len(before)]) and not any(
        id(leaf) in used for leaf in State(before).leaves
    )
