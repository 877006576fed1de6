"""Where user code keeps values: a variable, an attribute, what a container holds.

A branch or a body that is traced must leave no trace in Python: each place it writes is noted in
the journal of its region, so that it can be put back as it was, and its value made a result.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from contextlib import contextmanager
from types import CellType

from . import aliasing
from .tree import containers

MISSING = type("Missing", (), {"__repr__": lambda self: "undefined"})()


class Place:
    """Something that holds a value; `key` tells it from other places."""

    owner = None  # the object it is a part of: if nobody else holds that, nobody sees a change

    def assign(self, value) -> None:
        """Write it, and note that in the region around."""
        note(self)
        self.set(value)

    def differs(self, value, before) -> bool:
        """Is `value` another than `before`?"""
        return value is not before

    def containers(self) -> set[int]:
        """The ids of the containers in its value, which somebody else may hold too."""
        return containers(self.get())


class Variable(Place):
    """A variable of a function, by its cell."""

    def __init__(self, name: str, cell: CellType):
        self.name, self.owner, self.key = name, cell, ("cell", id(cell))

    def get(self):
        try:
            return self.owner.cell_contents
        except ValueError:
            return MISSING

    def set(self, value) -> None:
        if value is not MISSING:
            self.owner.cell_contents = value
        elif self.get() is not MISSING:
            del self.owner.cell_contents


class Global(Place):
    """A variable of a module."""

    def __init__(self, name: str, space: dict):
        self.name, self.space, self.key = name, space, ("global", id(space), name)

    def get(self):
        return self.space.get(self.name, MISSING)

    def set(self, value) -> None:
        if value is MISSING:
            self.space.pop(self.name, None)
        else:
            self.space[self.name] = value


class Attribute(Place):
    """An attribute of an object."""

    def __init__(self, owner, name: str):
        self.owner, self.attribute, self.key = owner, name, ("attribute", id(owner), name)
        self.name = f"{type(owner).__name__}.{name}"
        own = name in getattr(owner, "__dict__", ())
        self.inherited = MISSING if own else getattr(type(owner), name, MISSING)

    def get(self):
        return getattr(self.owner, self.attribute, MISSING)

    def set(self, value) -> None:
        if value is not self.inherited and value is not MISSING:
            setattr(self.owner, self.attribute, value)
        elif self.get() is not value or self.attribute in getattr(self.owner, "__dict__", ()):
            delattr(self.owner, self.attribute)


class Contents(Place):
    """What a list, a dict or a set holds; its value is a copy."""

    def __init__(self, container):
        self.owner, self.key = container, ("contents", id(container))
        self.name = f"the {type(container).__name__}"

    def get(self):
        return self.owner.copy()

    def differs(self, value, before) -> bool:
        return not same_parts(value, before)

    def containers(self) -> set[int]:
        return containers(self.owner) - {id(self.owner)}

    def set(self, value) -> None:
        if same_parts(self.owner, value):
            return
        if isinstance(self.owner, list):
            self.owner[:] = value
        else:
            self.owner.clear()
            self.owner.update(value)


def same_parts(a, b) -> bool:
    """Do two containers hold the same objects in the same order?"""
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items())
        return all(k is m and v is w for (k, v), (m, w) in pairs)
    return all(v is w for v, w in zip(a, b))


CONTAINERS = (list, dict, set, OrderedDict, defaultdict)


def before_write(owner) -> None:
    """Something in an object is about to be written: the region around notes a container."""
    aliasing.rule.check_write(owner)
    if journals.open and type(owner) in CONTAINERS:
        note(Contents(owner))


class Journals(threading.local):
    """The journals of the regions being traced on this thread, the innermost last."""

    def __init__(self):
        self.open: list[dict] = []


journals = Journals()


def note(place) -> None:
    """Before a place is written: let the region know, and what it held."""
    if journals.open:
        journals.open[-1].setdefault(place.key, (place, place.get()))


class journal:
    """A block in which writes are noted, and afterwards undone.

    `places` are noted from the start. Nothing else that the functions `reach` can get at may change
    if the block ends, or raises one of the errors `unless`.
    """

    block = "in a branch or a loop that depends on a tensor"
    where = None  # what finds the line, where no line of the user's is being traced

    def __init__(self, places, reach=(), unless=()):
        self.noted: dict = {}
        self.now: dict = {}
        self.first, self.reach, self.unless = places, reach, unless

    def __enter__(self):
        aliasing.rule.enter(self)
        journals.open.append(self.noted)
        for place in self.first:
            note(place)
            value = place.get()
            if type(value) in CONTAINERS:
                note(Contents(value))
        return self

    def values(self) -> dict:
        """What the places that were noted hold now, by their keys."""
        self.now = {key: place.get() for key, (place, _) in self.noted.items()}
        return self.now

    def __exit__(self, kind, *exc):
        journals.open.pop()
        self.restore()
        aliasing.rule.leave(self, kind is None or issubclass(kind, self.unless))

    def restore(self) -> None:
        """Every place that was noted as it was before the block."""
        for place, before in self.noted.values():
            place.set(before)

    @contextmanager
    def ended(self, values: dict):
        """The places once more as the block left them: containers hold what it put into them."""
        for key, (place, _) in self.noted.items():
            place.set(values[key])
        try:
            yield
        finally:
            self.restore()


def lasting(noted: journal, values: dict, returned, *, known) -> list:
    """The places that a region wrote and that outlive it, besides those that are known.

    An object that the region made itself concerns nobody outside: once its values are let go,
    nothing but the journal and those values holds it. It keeps what was written to it.
    """
    known = {place.key for place in known}
    found = {
        key: place
        for key, (place, before) in noted.noted.items()
        if key not in known and place.differs(values[key], before)
    }
    for key in noted.noted.keys() - known - found.keys():  # as it was: nothing is to be put back
        del noted.noted[key]
    own = aliasing.rule.made_inside(noted, found, values, known, returned)
    for place in own:
        noted.noted.pop(place.key, None)
        del found[place.key]
    for place in own:
        place.set(values[place.key])
    return list(found.values())


def variables(names, *functions) -> list:
    """The variables of these names, as the functions share them."""
    cells = {}
    for function in filter(None, functions):
        cells |= zip(function.__code__.co_freevars, function.__closure__ or ())
    space = functions[0].__globals__ if functions else {}
    return [Variable(n, cells[n]) if n in cells else Global(n, space) for n in names]
