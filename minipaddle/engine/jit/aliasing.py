"""What traced Python changes besides its variables, and who else holds what it changes: one rule.

The journal of a region notes what converted code writes. An `Aliasing` says the rest: which of the
objects that were written a region made itself, and what may not be written because another name may
hold it. The engine's rule asks what a region can reach from its functions; `register` replaces it
by one that also finds changes by code that is not converted.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import FunctionType, MethodType, ModuleType


class Aliasing:
    """The engine's rule: code that is not converted changes nothing that outlives a region."""

    def enter(self, journal) -> None:
        """A region begins, in which `journal` notes what is written."""
        journal.reachable = reachable(journal.reach)

    def leave(self, journal, finished: bool) -> None:
        """The region ended, `finished` or refused; its writes are undone."""

    def made_inside(self, journal, found: dict, values: dict, known, returned) -> list:
        """Those of the places `found` whose object the region made: nobody outside sees them."""
        own = [p for p in found.values() if p.owner is not None]
        return [p for p in own if id(p.owner) not in journal.reachable]

    def replace(self, old, new, ids: set) -> None:
        """`new` stands where `old` stood, for those containers in them that are in `ids`."""

    def check_write(self, owner) -> None:
        """Something in an object is about to be written."""

    def items(self, steps):
        """The items of an iterator over which a loop goes that a tensor may end."""
        return steps

    def unchanged(self, functions, what: str):
        """A block in which what the functions can reach may not change."""
        return nullcontext()

    def run(self, function) -> tuple:
        """(what a traced function returns, what its program takes for granted outside)."""
        return function(), []


def reachable(functions) -> set[int]:
    """The ids of the cells, containers and objects that functions can reach."""
    seen, waiting = set(), list(functions)
    while waiting:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, type | ModuleType):
            continue
        seen.add(id(x))
        if isinstance(x, FunctionType):
            cells = x.__closure__ or ()
            seen.update(map(id, cells))
            names = x.__globals__.keys() & set(x.__code__.co_names)
            waiting += [c.cell_contents for c in cells if has_value(c)]
            waiting += [x.__globals__[name] for name in names]
        elif isinstance(x, dict):
            waiting += x.values()
        elif isinstance(x, list | tuple | set):
            waiting += x
        elif isinstance(x, MethodType):
            waiting += x.__func__, x.__self__
        else:
            waiting += getattr(x, "__dict__", {}).values()
    return seen


def has_value(cell) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


rule = Aliasing()


def register(other: Aliasing) -> None:
    """Let another rule decide from now on."""
    global rule
    rule = other
