"""Aliasing of traced Python beyond the engine's rule: who else holds what a region writes.

An object that a region made is told from one that somebody outside holds too by who holds it. All
that code can reach which is not converted is looked at before and after (`snapshot`).

Containers may be parted: on one way a condition or a loop on a tensor leaves a name its list, on
the other it binds a new one, and afterwards the name holds a third, chosen from both. Who else
holds the old one would see, on one of the two ways, what is written to the name's. Only a run knows
which, so such a write is refused.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import CellType
from weakref import WeakKeyDictionary

from ..engine.core.dispatch import current
from ..engine.eager.tensor import Tensor
from ..engine.ir.builder import Promise
from ..engine.jit import aliasing
from ..engine.jit.journal import CONTAINERS, Contents, Place, Variable, journal, journals
from ..engine.jit.leaves import alive
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import occurrences, parts
from ..engine.jit.unsure import DOUBTED
from .iterators import bounded
from .outside import watched
from .snapshot import Snapshot, opened, put_back, references


class Strict(aliasing.Aliasing):
    """The rule that is registered with the engine."""

    def enter(self, journal) -> None:
        journal.before = Snapshot(journal.reach) if journal.reach else None
        opened.snapshots += [journal.before] * bool(journal.reach)

    def leave(self, journal, finished: bool) -> None:
        if journal.reach:
            before, journal.before = opened.snapshots.pop(), None
            if finished:
                note_unseen(journal, before)

    def made_inside(self, journal, found: dict, values: dict, known, returned) -> list:
        """Once its values are let go, nothing but the journal and those values holds an object that
        the region made.
        """
        found, made, shells = dict(found), [], {}
        held = [[values[key] for key in (*known, *found)], returned]
        while True:
            own = [key for key, place in found.items()
                   if place.owner is not None
                   and not held_outside(place, found, held, values, shells)]  # fmt: skip
            for key in own:
                made.append(found.pop(key))
                del journal.noted[key]  # what it held before may hold the next one
                owner = made[-1].owner
                if parts(owner) is None or not occurrences(owner, held):
                    shells[id(owner)] = owner
            if not own:
                return made

    def replace(self, old, new, ids: set) -> None:
        part(old, new, ids)

    def check_write(self, owner) -> None:
        check_write(owner)

    def items(self, steps):
        return bounded(steps)

    @contextmanager
    def unchanged(self, functions, what: str):
        before = Snapshot(functions)
        yield
        before.check(what)

    def run(self, function) -> tuple:
        return watched(function)


# ---- objects that a region made --------------------------------------------------------------


def held_outside(place: Place, found: dict, held, values: dict, shells: dict) -> bool:
    """Does anybody hold the owner of a place besides these, and the objects in `shells`?"""
    owner = place.owner
    if of_region(owner):
        return False
    ours = sum(other.owner is owner for other in found.values())
    noted = sum(value is owner for value in values.values())
    doubted = sum(unsure.known is owner for unsure in DOUBTED.values())
    known = ours + noted + doubted + (id(owner) in PARTED.get(current.top, ())) + LOCAL
    return sys.getrefcount(owner) > known + occurrences(owner, held) + sum(
        occurrences(owner, attributes(shell)) for shell in shells.values()
    )


def of_region(owner) -> bool:
    """Is it a tensor that the region being traced has made? The region's tape holds it too."""
    builder = current.top.builder
    promise = owner.array if type(owner) is Tensor else None
    inner = builder.parent is not None and type(promise) is Promise
    return inner and promise in builder.values and promise not in builder.captured


def attributes(shell):
    """A container itself; of another object what its attributes hold, of a cell its variable."""
    if type(shell) is CellType:
        return [Variable("", shell).get()]
    return shell if parts(shell) is not None else getattr(shell, "__dict__", ())


LOCAL = 2
"""References that asking for a count adds: a variable, an argument."""


# ---- changes by code that is not converted ---------------------------------------------------


def note_unseen(noted: journal, before: Snapshot) -> None:
    """Note the containers that code changed which is not converted; refuse other changes."""
    for x, held in before.changes():
        if type(x) in CONTAINERS and id(x) not in PARTED.get(current.top, ()):
            place = Contents(x)
            noted.now[place.key] = place.get()
            put_back(x, held)
            noted.noted[place.key] = (place, place.get())
    before.check(noted.block, noted.where)


# ---- containers that are parted --------------------------------------------------------------


PARTED: WeakKeyDictionary = WeakKeyDictionary()
"""By tracer: id of a container -> it and those of which only a run knows whether they are it."""


def part(old, new, ids: set) -> None:
    """Note that `new` stands where `old` stood, for the containers in them that are in `ids`."""
    inside, others = parts(old), parts(new)
    if old is new or inside is None or others is None:
        return
    if id(old) in ids:
        groups = PARTED.setdefault(current.top, {})
        group = groups.get(id(old)) or [old]
        group += [new]
        groups |= dict.fromkeys(map(id, group), group)
    for a, b in zip(inside[1], others[1], strict=False):
        part(a, b, ids)


def check_write(owner) -> None:
    """Refuse a write to something in an object if only a run knows in which object it is."""
    group = PARTED.get(current.top, {}).get(id(owner), ())
    if any(held(other) for other in group if other is not owner):
        kind = type(owner).__name__
        copied = f"{kind}(z)" if type(owner) in CONTAINERS else "copy.copy(z)"
        raise refusal(
            f"a write to a {kind} that a condition or a loop on a tensor chose: it may be another "
            f"{kind} that is used, too; only a run knows",
            hint=f"copy it before: z = {copied}",
        )


def held(container) -> bool:
    """Does anybody hold it but its group, and the regions around, which know it?"""
    noted = [pair for region in journals.open for pair in region.values()]
    known = sum(
        (place.owner is container) + (value is container) + occurrences(container, value)
        for place, value in noted
    )
    known += sum(state.holds(container) for state in alive.states) + references(container)
    return sys.getrefcount(container) > HERE + known


HERE = 4
"""References while `held` asks: its group, the loop over that, two arguments."""


aliasing.register(Strict())
