"""`if` at run time. A Python condition runs one side. A condition on a tensor makes both sides
regions of the program; what they leave in variables becomes the results of a `cond`.
"""

from __future__ import annotations

import dis
from contextlib import nullcontext
from typing import NoReturn

from ..core.dispatch import note_refusal
from ..core.errors import caller, line_of
from ..core.slots import slot
from ..eager.control_flow import BranchError, cond, is_static
from ..eager.tensor import same_value
from . import aliasing
from .journal import MISSING, journal, outliving_places, variables
from .leaves import NUMBERS, PlaceState, Undefined, as_condition, is_value
from .refusal import refusal
from .tree import paths, unflatten


@slot("jit.runtime.if_else")
def if_else(test, then, else_, live_out=(), local=(), jumps=False) -> None:
    """`if test: then() else: else_()`; a `Choice` writes it if the test is a tensor.

    `live_out` names the variables that are needed afterwards, `local` the others that the sides
    bind. With `jumps` one side leaves the block; nobody reads what that side leaves undefined.
    """
    test = as_condition(test)
    if not is_static(test):
        if test:
            then()
        elif else_ is not None:
            else_()
        return
    else_ = else_ or nothing
    live_out, local = variables(live_out, then, else_), variables(local, then, else_)
    CHOICES[-1](test, then, else_, live_out, local, lenient=jumps).write()


@slot("jit.runtime.if_exp")
def if_exp(test, then, else_):
    """`then() if test else else_()`."""
    test = as_condition(test)
    if not is_static(test):
        return then() if test else else_()
    return CHOICES[-1](test, then, else_).write()


def nothing() -> None:
    """The `else` of an `if` that has none."""


class Retrace(Exception):
    """A trace learned something that it has to know from its start: trace again."""


def learn(known: set | dict, new) -> NoReturn:
    """Add to the facts that a trace has to know from its start, and trace again."""
    known.update(new)
    raise Retrace


def learn_replaced(known: set, a: PlaceState, b: PlaceState, outer: set) -> None:
    """Learn the ids of the outer containers that only one of two states has."""
    new = outer & ({*map(id, a.leaves)} ^ {*map(id, b.leaves)})
    if new:
        learn(known, new)


TRACES = 20
"""How often one side may write to a place that was not foreseen."""


def retrace(places: list, times: int):
    """Trace a side again that wrote to places that were not foreseen, at most `TRACES` times."""
    if times <= TRACES:
        raise Retrace
    raise refusal(
        f"{places[0].name} is written in a branch on a tensor, and is a new object in each "
        "trace: the branch makes it, and something other than a variable holds it",
        hint="hold it in a variable, a list or a dict alone: no iterator over it, no method of it, "
        "no functools.partial",
    )


class ReturnPlace:
    """The place of the value that a side returns; no variable holds it."""

    name, key, assign, outlives = "the value", ("result",), staticmethod(lambda value: None), False


class Retraced:
    """Control flow on a tensor, traced again when a trace has learned something."""

    unless = ()
    """Errors with which a side or an iteration may end; then `end(error)` gives the value."""

    guard = nullcontext
    """`guard(k)`: a block that runs side k, or an iteration."""

    def __init__(self):
        self.uncertain_places: set = set()  # keys of places that only a run knows to be defined
        self.by_contents: set = set()  # ids of containers that are compared by their contents

    def write(self):
        """Write the operator, update the variables, and give the value if it has one."""
        while True:
            try:
                return self.attempt()
            except Retrace:
                continue
            except self.unless as raised:
                return self.end(raised)


class Choice(Retraced):
    """Both sides of an `if` on a tensor, traced one after the other.

    The trace of a side shows which objects it writes to (an attribute, a list). If the second side
    writes to one that the first does not, the first must give a value for it too: both are traced
    again.
    """

    def __init__(self, test, then, else_, live_out=(), local=(), *, lenient=False):
        super().__init__()
        self.test, self.sides = test, (then, else_)
        self.live_out, self.local, self.lenient = list(live_out), list(local), lenient
        self.learned: dict = {}  # by place: the second side's state, where the first has none
        self.undefined: set = set()  # keys of places that stay undefined
        self.retraces = 0  # how often the second side wrote to a place that was not foreseen

    def attempt(self):
        self.states: list[list[PlaceState]] = []
        try:
            results = cond(self.test, lambda: self.trace(0), lambda: self.trace(1))
        except BranchError as error:
            raise self.disagreement(error) from None
        places, (left, right) = [*self.live_out, ReturnPlace], self.states
        values, outs = [], iter(results)
        for place, a, b in zip(places, left, right, strict=True):
            results_of_place = [next(outs) for _ in a.leaves]
            values.append(self.merge(place, a, b, results_of_place))
        for place, a, b, value in zip(places, left, right, values, strict=True):
            place.assign(value)
            for state in (a, b):
                aliasing.rule.replace(state.value, value)
        return values[-1]

    def trace(self, k: int) -> list:
        """Run one side, undo its writes, and return the leaves that it left."""
        with journal([*self.live_out, *self.local], [self.sides[k]], self.unless) as noted:
            with self.guard(k):
                returned = self.sides[k]()
            values = noted.values()
        new_places = outliving_places(noted, values, returned, known=[*self.live_out, *self.local])
        self.live_out += new_places
        self.outer = set().union(*(p.containers() for p in self.live_out)) - self.by_contents
        if new_places and k:
            self.retraces += 1
            retrace(new_places, self.retraces)
        with noted.as_left(values):
            states = [PlaceState(values[place.key], self.outer) for place in self.live_out]
            states.append(PlaceState(returned, self.outer))
        self.states.append(states)
        places = [*self.live_out, ReturnPlace]
        for i, place in enumerate(places):
            states[i] = self.fit(place, i, k)
        return [leaf if is_value(leaf) else None for state in states for leaf in state.leaves]

    def fit(self, place, i: int, k: int) -> PlaceState:
        """The state of a place after side `k`; where it is undefined, one like the other side's."""
        mine = self.states[k][i]
        if place.key in self.undefined:
            return PlaceState(MISSING)
        if not k:
            if mine.missing and place.key in self.learned:
                mine = self.blank(place, self.learned[place.key])
            doubt = place.key in self.uncertain_places
            return mine.maybe_undefined(place, True, self.blame(place)) if doubt else mine
        other = self.states[0][i]
        if mine.missing and other.missing:
            return mine
        if mine.missing or other.missing:
            if not (self.lenient or place.outlives):
                learn(self.undefined, {place.key})
            if other.missing:
                learn(self.learned, {place.key: mine})
            mine = self.blank(place, other)
        if place.key in self.learned and mine.structure == other.structure:  # nobody reads it
            other.leaves = [x if is_value(x) else y for x, y in zip(other.leaves, mine.leaves)]
        if other.uncertain:
            mine = mine.maybe_undefined(place, True, self.blame(place))
        elif mine.uncertain:
            learn(self.uncertain_places, {place.key})
        if mine.value is not other.value:
            self.check(place, other, mine)
        return mine

    def blank(self, place, known: PlaceState) -> PlaceState:
        """A state for a side that leaves a place undefined; the other side's is `known`."""
        checked = place.checked_when_read() and known.plain() and known.specs[0]
        if known.uncertain or not (checked or place.outlives):
            return known.blank()
        return known.blank().maybe_undefined(place, False, self.blame(place))

    def check(self, place, a: PlaceState, b: PlaceState) -> None:
        """Refuse two values that no program can choose between."""
        learn_replaced(self.by_contents, a, b, self.outer)
        if a.structure != b.structure:
            raise self.mismatch(place, "", str(a), str(b))
        for j, (x, y) in enumerate(zip(a.leaves, b.leaves, strict=True)):
            if not (is_value(x) and is_value(y)) and not same_value(x, y):
                raise self.mismatch(
                    place, paths(a.structure)[j], a.describe_leaf(j), b.describe_leaf(j)
                )

    def merge(self, place, a: PlaceState, b: PlaceState, outs: list):
        """The value that a place has after the `if`."""
        if place.key in self.undefined:
            return Undefined(place.name, self.blame(place))
        if a.missing or a.value is b.value:
            return b.value if a.value is MISSING else a.value
        pairs = zip(a.leaves, b.leaves, outs, strict=True)
        leaves = [x if is_plain(x) and same_value(x, y) else out for x, y, out in pairs]
        # each side has a container of its own, even if both hold the same: make a new one
        return a.rebuild(leaves) if a.uncertain else unflatten(a.structure, leaves)

    # ---- messages ----------------------------------------------------------------------------

    def blame(self, place) -> str:
        """Which side leaves a place undefined."""
        bound = [binding_of(side, place.name) for side in self.sides]
        which = f"the `{'else' if bound[0] else 'if'}`" if any(bound) else "one"
        line = line_of(bound[0] or bound[1] or caller())
        return (
            f"{which} side of a condition on a tensor leaves it undefined: only the other side "
            f"binds it ({line})"
        )

    def mismatch(self, place, path: str, left: str, right: str):
        sides = zip((left, right), (binding_of(side, place.name) for side in self.sides))
        left, right = (quote_binding(text, line) for text, line in sides)
        return refusal(
            f"{describe_place(place)}{path} is not the same kind of value on both sides of a "
            f"condition on a tensor:\n  if:   {left}\n  else: {right}",
            expected="the same structure, and tensors of the same number of axes and dtype",
            hint="bind it to a tensor on both sides, or make the condition a Python value",
        )

    def disagreement(self, error: BranchError):
        """The refusal for two results that `cond` cannot choose between."""
        k = error.k
        for place, state in zip([*self.live_out, ReturnPlace], self.states[0], strict=True):
            if k < len(state.leaves):
                return self.mismatch(
                    place, paths(state.structure)[k], str(error.left), str(error.right)
                )
            k -= len(state.leaves)
        return note_refusal(error)


CHOICES = [Choice]
"""The last one is the class of the choices that are written: append a subclass that can do more."""


def is_plain(x) -> bool:
    return type(x) in NUMBERS or not is_value(x)


def describe_place(place) -> str:
    names = {"_jst_value": "what the function returns", "the value": "the value"}
    return names.get(place.name, f"`{place.name}`")


def quote_binding(text: str, line) -> str:
    """The text of a value, with the line that binds it if another line made the value."""
    where = line_of(line) if line else ""
    return text if text.endswith(where) else f"{text}, bound at {where}"


def binding_of(function, name: str):
    """Where a function binds a name, as (code, instruction offset); None if it does not."""
    code = function.__code__
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_DEREF", "STORE_GLOBAL") and instruction.argval == name:
            return code, instruction.offset
    return None
