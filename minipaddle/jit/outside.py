"""The side effects of a traced function: what it leaves in variables of other scopes, attributes,
lists and dicts that outlive it. Each run leaves the same there, with tensors of its own: what was
bound before is another tensor, which stays as it is.
"""

import copy
import re
import warnings
from itertools import chain
from types import FunctionType
from typing import ClassVar

from ..eager.layer_changes import stores_of
from ..engine.core.dim import Dim
from ..engine.core.dispatch import current, setting
from ..engine.core.errors import PACKAGE
from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import Tensor, wrap
from ..engine.jit.ignore import within
from ..engine.jit.journal import (
    MISSING,
    Attribute,
    Binding,
    Contents,
    Global,
    journal,
    outliving_places,
    same_parts,
)
from ..engine.jit.leaves import PlaceState
from ..engine.jit.refusal import refusal
from ..engine.jit.to_static import StaticFunction
from ..engine.jit.tree import containers, flatten, flatten_call, unflatten
from . import instrument  # noqa: F401  (converted code notes its reads)
from .dy2static.utils import mention
from .guards import Given, Held, is_data
from .objects import library
from .reads import OutsideReads
from .rebuilding import Rebuilding


class SideEffect:
    """A place that gets a value in each run. Its `tensors` are results of the function, the first
    of them being number `begin`.
    """

    begin = 0

    def __init__(self, place: Binding, value, outside=frozenset()):
        self.place, self.state = place, PlaceState(value, outside)
        if any(isinstance(leaf, Dim) for leaf in self.state.leaves):
            raise refusal(f"{place.name} is to keep a size that varies from call to call")
        self.numbers = [j for j, x in enumerate(self.state.leaves) if isinstance(x, Tensor)]
        self.tensors = [self.state.leaves[j] for j in self.numbers]

    @property
    def name(self) -> str:
        return getattr(self.place, "attribute", self.place.name)

    @property
    def owners(self) -> list:
        """The objects that it may change."""
        return [self.place.owner]

    def leave(self, results: list, own: dict) -> None:
        """Put the value there, with tensors among the results of a run. `own` are the containers
        of this call by the id of those that were traced, for which they stand.
        """
        place, owner = self.place, self.place.owner
        if id(owner) in own:
            place = copy.copy(place)
            place.owner = own[id(owner)]
        self.write(place, MISSING if self.state.missing else self.value(results, own))

    def value(self, results: list, own: dict):
        """The value of this run."""
        leaves = [own.get(id(x), x) for x in self.state.leaves]
        for k, j in enumerate(self.numbers, self.begin):
            leaves[j] = results[k]
        return unflatten(self.state.structure, leaves)

    def write(self, place: Binding, value) -> None:
        place.set(value)


class SharedContainer(SideEffect):
    """A container at two places in the values that a run leaves and returns."""

    def __init__(self, container, kept: set):
        super().__init__(Binding(), container, kept - {id(container)})
        self.container = container

    def leave(self, results, own) -> None:
        own[id(self.container)] = self.value(results, own)


class Writing(SideEffect):
    """A write to one of the `owners`, which a condition picks; it follows the writes to all."""

    name = "what a condition picks"
    owners: ClassVar[list] = []

    def __init__(self, owners: list, write, kept: set):
        super().__init__(Binding(), write, kept)
        self.owners = owners

    def leave(self, results, own) -> None:
        self.value(results, own)


class Growth(SideEffect):
    """A list that gets further items."""

    def write(self, place, value) -> None:
        place.owner.extend(value)


class ItemsSet(SideEffect):
    """A dict that gets some items."""

    def write(self, place, value) -> None:
        place.owner.update(value)


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


def trace_whole(call, function, arguments) -> tuple:
    """(what `call` returns, a function that gives the guards, effects, ids of the containers
    that are the same ones where they are returned), a function being traced.

    Its changes outside are undone; each run of its program makes them.
    """
    reads, after = OutsideReads(current.top), []
    with setting(current.top, reads=reads), whole([], [call]) as noted:
        reads.start(function, arguments, noted.before.reached)
        returned = call()
        for place, before in stores_of(current.top).list_assigned(current.top.lifted):
            noted.noted.setdefault(place.key, (place, before))
        values = noted.values()
    old = {id(x) for _, before in noted.noted.values() for x in flatten(before)[0]}
    rebuilding = Rebuilding(function, lambda x: id(x) in old | reads.own or reads.is_outside(x))
    same = [(place, values[key]) for key, (place, before) in noted.noted.items()
            if not place.differs(values[key], before)]  # fmt: skip
    for place in outliving_places(noted, values, returned, known=[]):
        before, value = noted.noted[place.key][1], values[place.key]
        data = isinstance(place.owner, Tensor) and type(place) is Attribute
        data = data and is_data(place.attribute)
        real = reads.tensors.place_of(place.owner, place.attribute) if data else None
        if real is not None:
            after.append((real, before, rebuilding.take_apart(value)))
        elif is_static(place.owner) and id(place.owner) not in current.top.lifted:
            place.set(value)  # a tensor of the program itself
        else:
            after.append((place, before, rebuilding.take_apart(value)))
    returned = rebuilding.take_apart(returned)
    outside = {id(x) for x in containers(returned) if reads.is_outside(x)}
    reads.kept |= outside
    writes = rebuilding.writes_to_picked()
    inside = [returned, *(value for *_, value in after), *(write for _, write in writes)]
    shared = rebuilding.common(inside)
    reads.given.update(map(id, shared))
    left = [SharedContainer(x, reads.outside.keys() | reads.given) for x in shared]
    for each in after:
        left += side_effects(reads, *each)
    for place, value in same:
        left += keep_unchanged(reads, place, value)
    left += [Writing(*each, reads.outside.keys() | reads.given) for each in writes]
    return returned, reads.close, left, outside | reads.given


def keep_unchanged(reads: OutsideReads, place: Binding, value) -> list[SideEffect]:
    """The effect of a run on a place that was written and had the same value before the trace."""
    if not isinstance(place, Global) and not reads.is_outside(place.owner):
        return []
    if not isinstance(place, Contents):
        return side_effects(reads, place, value, value)
    reads.note(Held(place.owner, place.name), place.owner)
    return []


def side_effects(reads: OutsideReads, place: Binding, before, after) -> list[SideEffect]:
    """The effect of each run on a place."""
    kind, what = SideEffect, after
    if isinstance(place, Contents):
        kind, what = find_growth(before, after)
        if kind is SideEffect and id(place.owner) not in reads.own:
            label = f"a {type(place.owner).__name__} that is changed"
            reads.note(Held(place.owner, label), place.owner)
    effect = kind(place, what, reads.outside.keys() | reads.given)
    reads.kept.update(map(id, (place.owner, *effect.state.leaves)))
    return [effect]


def find_growth(before, after) -> tuple:
    """The kind of effect on a container, and its value: the further items of a list that only
    grew, the items that were stored in a dict, or all.
    """
    if isinstance(after, list) and same_parts(before, after[: len(before)]):
        return Growth, after[len(before) :]
    if isinstance(after, dict) and [*after][: len(before)] == [*before]:
        return ItemsSet, {k: v for k, v in after.items() if k not in before or before[k] is not v}
    return SideEffect, after


def update_states(left: list, name: str, given: list) -> None:
    """Let the program that is traced update a tensor to which the function binds a new one of the
    same kind. Warn of other values that the function leaves behind: a saved program does not.
    Refuse to change one of the containers that the function was given.
    """
    tracer, updates = current.top, []
    for each in left:
        if type(each) is SharedContainer:
            continue
        changed = next((x for x in given if any(x is owner for owner in each.owners)), None)
        if changed is not None:
            raise refusal(
                f"{name} changes a {type(changed).__name__} that it was given, which a saved "
                "program cannot",
                hint="return the new value",
            )
        before = None if type(each) is Writing else each.place.get()
        now = [*each.state.leaves]
        if isinstance(before, Tensor) and each.tensors == now and before.spec == now[0].spec:
            updates.append((before, wrap(tracer.now(tracer.lift(*now)))))
        else:
            warnings.warn(
                f"{name} assigns {each.name}, which outlives it: a saved program does not",
                stacklevel=9,
            )
    for before, now in updates:
        tracer.write(before, now)


# ---- data of the arguments, see arguments.py -----------------------------------------------------

StaticFunction.by_argument = False
"""Whether one of its programs depends on Python's data of its arguments, or changes it."""


def depends(captured) -> bool:
    """Whether a program depends on such data, or changes it."""
    guards = (guard for each in captured.guards for guard in getattr(each, "others", ()))
    return any(type(each.place) is Given for each in chain(guards, captured.left))


def knowing_the_call(method):
    """A method of a converted function, which knows the arguments of the call if that matters."""

    def run(self, *given):
        if not self.by_argument:
            return method(self, *given)
        with setting(current.top, call=flatten_call(*given[-2:])[0]):
            return method(self, *given)

    return run


def trace_program(self, key, leaves, *more):
    with setting(current.top, call=leaves):
        captured = traced(self, key, leaves, *more)
    self.by_argument |= depends(captured)
    return captured


traced, StaticFunction.trace_program = StaticFunction.trace_program, trace_program
StaticFunction.capture_for = knowing_the_call(StaticFunction.capture_for)
StaticFunction.run = knowing_the_call(StaticFunction.run)
