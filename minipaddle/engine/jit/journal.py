"""Where user code stores values: in variables, attributes, and containers.

Tracing a branch or a loop body must not change Python's objects. So the journal of its region notes
each place that it writes, restores it afterwards, and lets its value become a result.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from contextlib import contextmanager
from operator import is_
from types import CellType

from ..core.dispatch import current
from . import aliasing
from .tree import containers

MISSING = type("Missing", (), {"__repr__": lambda self: "undefined"})()


class Binding:
    """A variable, an attribute, or the contents of a container; `key` identifies it."""

    owner = None  # the object it is a part of: code sees a change only if it reaches that
    outlives = False  # whether it outlives the function, so that a run may leave it undefined

    def assign(self, value) -> None:
        """Write the value; the journal of the region around notes it."""
        note(self)
        self.set(value)

    def differs(self, value, before) -> bool:
        """Whether two values of the place differ."""
        return value is not before

    def containers(self) -> set[int]:
        """The ids of the containers in its value, which other code may reach too."""
        return {*map(id, containers(self.get()))}

    def checked_when_read(self) -> bool:
        """Whether converted code checks at each use that it has a value."""
        return self.outlives


class Variable(Binding):
    """A variable of a function, by its cell."""

    unbound = (
        UnboundLocalError,
        ("cannot access local variable {!r} where it is not associated with a value"),
    )

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

    def checked_when_read(self) -> bool:
        return not self.name.startswith("_jst_")


class Global(Binding):
    """A variable of a module."""

    outlives, unbound = True, (NameError, "name {!r} is not defined")

    def __init__(self, name: str, space: dict):
        self.name, self.space, self.key = name, space, ("global", id(space), name)

    def get(self):
        return self.space.get(self.name, MISSING)

    def set(self, value) -> None:
        if value is MISSING:
            self.space.pop(self.name, None)
        else:
            self.space[self.name] = value


class Attribute(Binding):
    """An attribute of an object."""

    outlives, unbound = True, (AttributeError, "`{}` has no value")

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


class Contents(Binding):
    """The contents of a list, a dict or a set; the value is a copy of it."""

    def __init__(self, container):
        self.owner, self.key = container, ("contents", id(container))
        self.name = f"the {type(container).__name__}"

    def get(self):
        return self.owner.copy()

    def differs(self, value, before) -> bool:
        return not same_parts(value, before)

    def containers(self) -> set[int]:
        return {*map(id, containers(self.owner))} - {id(self.owner)}

    def set(self, value) -> None:
        if same_parts(self.owner, value):
            return
        if isinstance(self.owner, list):
            self.owner[:] = value
        else:
            self.owner.clear()
            self.owner.update(value)


def same_parts(a, b) -> bool:
    """Whether two containers hold the same objects in the same order."""
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return all(map(is_, a, b)) and all(map(is_, a.values(), b.values()))
    return all(map(is_, a, b))


CONTAINERS = (list, dict, set, OrderedDict, defaultdict)


def before_write(owner) -> None:
    """Call this before a write to something in `owner`: the journal notes a container."""
    aliasing.rule.check_write(owner)
    if current.top.journals and type(owner) in CONTAINERS:
        note(Contents(owner))


def note(place) -> None:
    """Note a place and its value in the journal of the region, before the place is written.

    Where a tensor decides whether it is written, its value before is read, too.
    """
    journals, reads = current.top.journals, current.top.reads
    if journals and place.key not in journals[-1]:
        if len(journals) > 1 and reads is not None:
            reads.place(place)
        journals[-1][place.key] = (place, place.get())


class journal:
    """A block whose writes are noted, and undone at its end.

    `places` are noted from the start. `reach` are the functions that the block runs: nothing else
    that they can reach may change, if the block ends or raises one of the errors `unless`.
    """

    block = "in a branch or a loop that depends on a tensor"
    where = None  # a function that finds the line, where no line of the user's is being traced

    def __init__(self, places, reach=(), unless=()):
        self.noted: dict = {}
        self.now: dict = {}
        self.first, self.reach, self.unless = places, reach, unless

    def __enter__(self):
        self.before = aliasing.rule.snapshot(self.reach)
        current.top.journals.append(self.noted)
        for place in self.first:
            note(place)
            value = place.get()
            if type(value) in CONTAINERS:
                note(Contents(value))
        return self

    def values(self) -> dict:
        """The values that the noted places have now, by their keys."""
        self.now = {key: place.get() for key, (place, _) in self.noted.items()}
        return self.now

    def __exit__(self, kind, error, traceback):
        current.top.journals.pop()
        self.restore(getattr(error, "error", error))  # an error that leaves keeps its attributes
        finished = kind is None or issubclass(kind, self.unless)
        if self.before and finished and (changes := self.before.changes()):
            aliasing.rule.note_changes(self, changes)
        self.before = None

    def restore(self, error=None) -> None:
        """Restore each noted place to its value before the block, but for those in an error."""
        for place, before in self.noted.values():
            if error is None or place.owner is not error:
                place.set(before)

    @contextmanager
    def as_left(self, values: dict):
        """A block in which the places have the values with which the region ended."""
        for key, (place, _) in self.noted.items():
            place.set(values[key])
        try:
            yield
        finally:
            self.restore()


def outliving_places(noted: journal, values: dict, returned, *, known) -> list:
    """The written places that outlive a region, besides those that are known.

    An object that the region made itself keeps the values that were written to it.
    """
    known = {place.key for place in known}
    written = {
        key: place
        for key, (place, before) in noted.noted.items()
        if key not in known and place.differs(values[key], before)
    }
    for key in noted.noted.keys() - known - written.keys():  # as it was: nothing to put back
        del noted.noted[key]
    held = [*(values[key] for key in (*known, *written)), returned]
    for place in aliasing.rule.find_new_places(noted, written, held) if written else ():
        del noted.noted[place.key], written[place.key]
        place.set(values[place.key])
    return list(written.values())


def variables(names, *functions) -> list:
    """The variables with these names that the functions share."""
    cells = {}
    for function in filter(None, functions):
        cells |= zip(function.__code__.co_freevars, function.__closure__ or ())
    space = functions[0].__globals__ if functions else {}
    return [Variable(n, cells[n]) if n in cells else Global(n, space) for n in names]
