"""Side effects and aliases of traced Python: one rule, reachability.

A branch of an `if` or the body of a loop is a region. Tracing runs it once; a run of the program
runs it never, or many times. So a trace must leave Python's objects as they were: the journal of
the region notes each place that converted code writes, restores it, and lets its value be a result
of the region. Two questions remain, and both have one answer: code can see an object only if it
*reaches* it, through variables, attributes, and what containers hold.

- **Does a write outlive the region?** Once the journal has restored all places, an object that
  cannot be reached from the region's functions was made by the region. Nobody outside sees what is
  written to it, so it is no result.
- **Do two names share a container?** They do if both reach it. After a branch or a loop, a name may
  hold a new list, chosen from two: a write to it is refused as long as the user's code still
  reaches one of the two (`minipaddle.jit.aliasing`).

The engine's own `Aliasing` looks into what Python's garbage collector sees, and trusts code that is
not converted to change nothing. `register` replaces it by a rule that looks into everything.
"""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType

from ..core.record import Record
from ..ir.builder import SymbolicArray
from .maybe_undefined import MaybeUndefined
from .tree import containers, flatten, reachable


def contents(x):
    """The contents of an object; of a module those that a function names."""
    if isinstance(x, FunctionType):
        names = x.__globals__.keys() & set(x.__code__.co_names)
        return [*(x.__closure__ or ()), *(x.__globals__[name] for name in names)]
    if isinstance(x, type | ModuleType | Record | SymbolicArray):
        return ()
    return gc.get_referents(x)


def leaves_of(value) -> list:
    """The leaves of a value; of a variable that may be undefined, of its possible value."""
    return flatten(value.known if type(value) is MaybeUndefined else value)[0]


class Aliasing:
    """The engine's rule: code that is not converted changes nothing that outlives a region."""

    def snapshot(self, functions):
        """The contents of objects that functions can reach; None: unconverted code is trusted."""

    def note_changes(self, journal, changes: list) -> None:
        """Objects hold something else after a region whose writes were undone."""

    def reachable(self, roots) -> dict[int, object]:
        """The objects that code can get at from `roots`, by id."""
        return reachable(roots, contents)

    def find_new_places(self, journal, written: dict, values) -> list:
        """The written places that are part of an object that the region made.

        The journal has restored them. An object that a value of the region holds other than
        as a part of a list, a dict, … (an iterator over it, say) counts as seen from outside.
        """
        if not any(place.owner is not None for place in written.values()):
            return []
        outside = self.reachable(journal.reach)
        own = {id(p.owner): p.owner for p in written.values()
               if p.owner is not None and id(p.owner) not in outside}  # fmt: skip
        apart = own.keys().isdisjoint
        leaves = [leaf for value in values for leaf in leaves_of(value)
                  if apart({id(leaf), id(getattr(leaf, "__dict__", None))})]  # fmt: skip
        outside = self.reachable(leaves) if own else {}
        return [p for p in written.values() if id(p.owner) in own and id(p.owner) not in outside]

    def replace(self, old, new) -> None:
        """Only a run knows whether `new` is `old`."""

    def check_write(self, owner) -> None:
        """Something in an object is about to be written."""

    def items(self, steps):
        """The items of an iterator, for a loop that a tensor may end."""
        return steps

    def check_given(self, captured, own: dict) -> None:
        """Refuse a call whose program changes a container that the function knows in two ways;
        `own` are those among its arguments, by the id of those that were traced.
        """

    def restore_arrays(self, captured, tensors, arguments, results) -> list:
        """The results as a run leaves them in objects: an array that was given stays an array."""
        return results

    def run(self, call, function, arguments) -> tuple:
        """(the result of `call`, a function that gives the guards, the effects, ids), where a
        function is traced: what the program assumes of Python's objects, what each run leaves in
        them, and the containers that are the same ones where they are returned.
        """
        return call(), list, [], {*map(id, containers(arguments))}


rule = Aliasing()


def register(other: Aliasing) -> None:
    """Replace the rule."""
    global rule
    rule = other
