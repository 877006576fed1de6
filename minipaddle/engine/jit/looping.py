"""Loops at run time. While its condition is Python's, a loop runs, and a trace unrolls it. From the
iteration on in which the condition is a tensor, the rest is one `while_loop` of the program.
"""

from __future__ import annotations

from ..core.dispatch import note_refusal
from ..core.errors import caller, line_of
from ..core.slots import slot
from ..eager.control_flow import CarriedError, as_bool, is_static, scalar_spec
from ..eager.control_flow import while_loop as program_loop
from ..eager.tensor import Tensor, same_value
from . import aliasing
from .branching import CHOICES, Retrace, Retraced, describe_place, learn, learn_replaced, nothing
from .journal import journal, outliving_places, variables
from .leaves import NUMBERS, PlaceState, Spec, as_condition, full, is_value
from .refusal import refusal
from .tree import paths
from .truth import none


@slot("jit.runtime.while_loop")
def while_loop(test, body, live_out=(), loop_carried=(), local=()) -> None:
    """`while test(): body()`.

    `live_out` names the variables that are needed afterwards, `loop_carried` those that only the
    next iteration needs, `local` the others that the loop binds.
    """

    def more():
        go = as_condition(test())
        return as_bool(go) if is_static(go) else go

    go = more()
    while not is_static(go):
        if not go:
            return
        body()
        go = more()
    groups = [variables(names, body, test) for names in (live_out, loop_carried, local)]
    KINDS[-1](go, more, body, *groups).write()


@slot("jit.runtime.for_loop")
def for_loop(iterable, body, live_out=(), loop_carried=(), local=(), break_flags=()) -> None:
    """`for item in iterable: body(item)`, until one of the variables `break_flags` is true."""
    groups = [variables(names, body) for names in (live_out, loop_carried, local)]
    flags = variables(break_flags, body)
    if any(loop(iterable, body, groups, flags) for loop in LOOPS):
        return None
    steps = iter(iterable)
    for item in steps:
        body(item)
        going = none([flag.get() for flag in flags])
        if is_static(going):
            return unroll(going, steps, body, groups, flags)
        if not going:
            break


def unroll(going, steps, body, groups, flags) -> None:
    """The iterations after a tensor may have ended the loop: each runs only if it has not."""
    live_out, loop_carried, local = groups
    places = [*live_out, *loop_carried]
    for item in aliasing.rule.items(steps):
        CHOICES[-1](going, lambda: body(item), nothing, places, local, lenient=True).write()  # noqa: B023
        going = none([flag.get() for flag in flags])


class TracedLoop(Retraced):
    """A loop on a tensor: the program carries the values of its variables from one iteration to
    the next.

    An iteration ends with the condition, so that what the condition changes is carried too. Tracing
    starts again, knowing more, if the body writes to an object that was not foreseen, changes a
    number that was taken for constant, or binds a name for the first time.
    """

    def __init__(self, go, test, body, live_out, loop_carried, local):
        super().__init__()
        self.go, self.test, self.body, self.where = go, test, body, caller()
        self.live_out, self.places, self.local = live_out, [*live_out, *loop_carried], local
        self.varying: set = set()  # numbers that change: (key of the place, number of the leaf)
        self.foreseen = {place.key for place in self.places}  # all numbers in these may change
        self.initial: dict = {}  # by place: a state after an iteration, where there is none before
        self.widened: dict = {}  # the specs of numbers that become tensors with axes

    def attempt(self) -> None:
        self.outer = set().union(*(p.containers() for p in self.places)) - self.by_contents
        self.before = [self.start(place) for place in self.places]
        slots = [
            (i, j)
            for i, state in enumerate(self.before)
            for j, leaf in enumerate(state.leaves)
            if self.is_carried(i, j, leaf)
        ]
        first = [self.first(i, j) for i, j in slots]
        ends = [k for k, (i, _) in enumerate(slots, 1) if self.places[i].name == "_jst_value"]
        try:
            last = self.run(slots, [self.go, *first], ends)
        except CarriedError as error:
            raise self.disagreement(error, slots) from None
        for i, place in enumerate(self.places):
            value = self.fill(i, slots, last[1:], self.after)
            place.assign(value)
            for state in (self.before[i], self.after[i]):
                aliasing.rule.replace(state.value, value)

    def run(self, slots, first: list, ends: list) -> list:
        """The carried values after the loop, the condition first."""
        return program_loop(
            lambda go, *_: go, lambda _, *now: self.iteration(slots, now), first, last=ends
        )

    def reason(self) -> str:
        """Why a name that the iterations bind may have no value."""
        return f"the loop that binds it ran no iteration ({line_of(self.where)})"

    def start(self, place) -> PlaceState:
        state = PlaceState(place.get(), self.outer)
        known = self.initial.get(place.key) if state.missing else None
        if known is None:
            doubt = place.key in self.uncertain_places
            return state.maybe_undefined(place, True, self.reason()) if doubt else state
        blank = known.blank()
        if not place.checked_when_read():
            return blank
        if known.plain() and not known.specs[0]:
            blank = PlaceState(full(scalar_spec(known.value), 0))
        return blank.maybe_undefined(place, False, self.reason())

    def is_carried(self, i: int, j: int, leaf) -> bool:
        key = self.places[i].key
        number = type(leaf) in NUMBERS
        return isinstance(leaf, Tensor) or (
            number and (key in self.foreseen or (key, j) in self.varying)
        )

    def first(self, i: int, j: int):
        """The value of a leaf before the first iteration."""
        leaf, wide = self.before[i].leaves[j], self.widened.get((self.places[i].key, j))
        return leaf if wide is None else full(wide, leaf)

    def fill(self, i: int, slots, values, states):
        """The value of a place, with values of the program for its leaves that are carried."""
        state = states[i]
        now = {j: value for (k, j), value in zip(slots, values, strict=True) if k == i}
        return state.rebuild([now.get(j, leaf) for j, leaf in enumerate(state.leaves)])

    def iteration(self, slots, now) -> list:
        """Trace one iteration: the new condition, then the new value of each carried leaf."""
        with journal([*self.places, *self.local], [self.body, self.test], self.unless) as noted:
            for i, place in enumerate(self.places):
                self.begin(i, place, self.fill(i, slots, now, self.before))
            with self.guard(0):
                self.body()
                go = self.test()
            values = noted.values()
        new_places = outliving_places(noted, values, go, known=[*self.places, *self.local])
        if new_places:
            self.places += new_places
            self.live_out = [*self.live_out, *new_places]
            raise Retrace
        self.note_after(values)
        for i, place in enumerate(self.places):
            self.compare(i, place)
        outs = [self.out(i, j, x) for (i, j), x in zip(slots, now, strict=True)]
        return [go if is_static(go) else bool(go), *outs]

    def begin(self, i: int, place, value) -> None:
        """Give a place its value at the start of an iteration."""
        place.set(value)
        aliasing.rule.replace(self.before[i].value, value)

    def note_after(self, values: dict) -> None:
        """Note the states of the places after an iteration."""
        self.after = [PlaceState(values[place.key], self.outer) for place in self.places]
        for i, place in enumerate(self.places):
            if self.before[i].uncertain:
                self.after[i] = self.after[i].maybe_undefined(place, True, self.reason())

    def out(self, i: int, j: int, before: Tensor):
        leaf = self.after[i].leaves[j]
        key = self.places[i].key, j
        number = not isinstance(self.before[i].leaves[j], Tensor) and key not in self.widened
        if not isinstance(leaf, Tensor):
            return full(before.spec, leaf)
        if number and leaf.spec.shape:  # `total = 0` grew into the shape of its terms
            learn(self.widened, {key: Spec(leaf.spec.shape, leaf.spec.dtype)})
        return leaf

    def compare(self, i: int, place) -> None:
        """Check that a place holds the kind of value after an iteration that it held before."""
        a, b = self.before[i], self.after[i]
        if a.missing:
            if not b.missing:
                learn(self.initial, {place.key: b})
            return
        if b.missing:
            raise self.mismatch(place, "", str(a), str(b))
        if b.uncertain and not a.uncertain:
            learn(self.uncertain_places, {place.key})
        learn_replaced(self.by_contents, a, b, self.outer)
        if a.structure != b.structure:
            raise self.mismatch(place, "", str(a), str(b))
        for j, (x, y) in enumerate(zip(a.leaves, b.leaves, strict=True)):
            number = self.is_carried(i, j, x) or type(x) in NUMBERS
            if (self.is_carried(i, j, x) and is_value(y)) or same_value(x, y):
                continue
            if not (number and is_value(y)):
                raise self.mismatch(
                    place, paths(a.structure)[j], a.describe_leaf(j), b.describe_leaf(j)
                )
            learn(self.varying, {(place.key, j)})

    def mismatch(self, place, path: str, before: str, after: str):
        return refusal(
            f"{describe_place(place)}{path} is not the same kind of value after an iteration of a "
            f"loop on a tensor:\n  before: {before}\n  after:  {after}",
            expected="the same structure, and tensors of the same number of axes",
            hint="give it a tensor of its final kind before the loop; instead of appending to a "
            "list, write out[i] = ... into a tensor made before",
        )

    def disagreement(self, error: CarriedError, slots):
        if not error.k:
            return note_refusal(error)
        i, j = slots[error.k - 1]
        path = paths(self.before[i].structure)[j]
        return self.mismatch(self.places[i], path, str(error.left), str(error.right))


KINDS = [TracedLoop]
"""The last one is the class of the loops that are written: append a subclass that can do more."""

LOOPS: list = []
"""Functions `loop(iterable, body, groups, flags)` that write the loop over what only they know, and
give True; False for anything else."""
