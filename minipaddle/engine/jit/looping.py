"""Loops at run time. While its condition is Python's, a loop runs (a trace sees it unrolled); from
the round on in which the condition is a tensor, the rest is one `while_loop` of the program.
"""

from __future__ import annotations

from operator import is_

from ..core.dispatch import note_refusal
from ..core.errors import line_of, user_frame
from ..core.slots import slot
from ..eager.control_flow import CarriedError, as_bool, is_static, scalar_spec
from ..eager.control_flow import while_loop as program_loop
from ..eager.tensor import Tensor
from ..ops import movement
from ..ops.logic import logical_not
from . import aliasing
from .branching import Again, Choice, Raised, nothing, telling, wording
from .effects import check_held
from .journal import Attribute, Contents, Global, Place, journal, lasting, variables
from .leaves import NUMBERS, Spec, State, full, replaced, same, travels
from .refusal import refusal
from .rest import PENDING, Rest
from .sequences import asked, sequence
from .tree import paths
from .truth import none
from .unsure import doubtful


@slot("jit.runtime.while_loop")
def while_loop(test, body, keeps=(), turns=(), drops=()) -> None:
    """`while test(): body()`.

    `keeps` are the variables needed afterwards, `turns` those that only the next round needs,
    `drops` the others that the loop binds.
    """

    def more():
        go = asked(test())
        return as_bool(go) if is_static(go) else go

    go = more()
    while not is_static(go):
        if not go:
            return
        body()
        go = more()
    groups = [variables(names, body, test) for names in (keeps, turns, drops)]
    Loop(go, more, body, *groups).made()


@slot("jit.runtime.for_loop")
def for_loop(iterable, body, keeps=(), turns=(), drops=(), stops=()) -> None:
    """`for item in iterable: body(item)`, until one of the flags `stops` is up."""
    groups = [variables(names, body) for names in (keeps, turns, drops)]
    flags = variables(stops, body)
    items = sequence(iterable)
    if items is not None:
        return indexed(items, body, groups, flags)
    steps = iter(iterable)
    for item in steps:
        body(item)
        going = none([flag.get() for flag in flags])
        if is_static(going):
            return unrolled(going, steps, body, groups, flags)
        if not going:
            break


def unrolled(going, steps, body, groups, flags) -> None:
    """The rounds after a tensor may have ended the loop: each asks whether it did."""
    keeps, turns, drops = groups
    for item in aliasing.rule.items(steps):
        Choice(going, lambda: body(item), nothing, [*keeps, *turns], drops, lenient=True).made()  # noqa: B023
        going = none([flag.get() for flag in flags])


def indexed(items, body, groups, flags) -> None:
    """A loop over a sequence whose length only the program knows."""
    k = Box("the number of the round", 0)

    def test():
        return k.value < items.length

    def stopped_test():
        going = none([flag.get() for flag in flags])
        return (going & test()) if is_static(going) else going and test()

    def step():
        body(items.at(k.value))
        k.value = k.value + 1

    keeps, turns, drops = groups
    Loop(stopped_test(), stopped_test, step, keeps, [*turns, k], drops).made()


class Box(Place):
    """A variable of the runtime."""

    def __init__(self, name: str, value):
        self.name, self.value, self.key = name, value, ("box", id(self))

    def get(self):
        return self.value

    def set(self, value):
        self.value = value

    assign = set  # nobody outside the loop knows it


class FirstRound(Exception):
    """A value is None before the first round and a tensor after it."""


UNBOUND = {Global: NameError, Attribute: AttributeError}


class Loop:
    """A loop on a tensor, traced: what its variables hold goes round as values of the program.

    The condition is evaluated at the end of a round, so that what it changes counts. Tracing starts
    again, knowing more, when the body writes to an object nobody foresaw, changes a number that was
    taken for constant, or binds a name for the first time.
    """

    def __init__(self, go, test, body, keeps, turns, drops):
        frame = user_frame()
        self.go, self.test, self.body, self.where = go, test, body, (frame.f_code, frame.f_lasti)
        self.kept, self.places, self.drops = keeps, [*keeps, *turns], drops
        self.moving: set = set()  # numbers that change, as (key of the place, number of the leaf)
        self.sure = {place.key for place in self.places}  # here all numbers are taken to change
        self.begin: dict = {}  # by place: a state to begin with, where there is none
        self.wide: dict = {}  # numbers that grow into a tensor: their shapes
        self.deep: set = set()  # ids of containers that are compared by what they hold
        self.doubts: set = set()  # places that only a run knows to be defined
        self.grows: dict = {}  # by place: the specs of what a round appends to a list

    def made(self) -> None:
        while True:
            try:
                return self.attempt()
            except Again:
                continue
            except FirstRound:
                return self.after_first()
            except Raised as raised:  # in the first round, for nothing of it is a tensor's matter
                if not is_static(self.go):  # there is one for certain
                    raise raised.error from None
                return raised.unless(logical_not(as_bool(self.go)))

    def after_first(self) -> None:
        """The first round apart: after it the names hold tensors."""

        body, test = self.body, self.test

        def rounds():
            body()
            groups = [[p for p in self.places if p not in self.kept], self.drops]
            go = test()
            if is_static(go):
                Loop(go, test, body, self.kept, *groups).made()

        turns = [p for p in self.places if p not in self.kept]
        Choice(self.go, rounds, nothing, self.kept, [*turns, *self.drops]).made()

    def attempt(self) -> None:
        self.old = set().union(*(p.containers() for p in self.places)) - self.deep
        self.before = [self.start(place) for place in self.places]
        slots = [
            (i, j)
            for i, state in enumerate(self.before)
            for j, leaf in enumerate(state.leaves)
            if self.carried(i, j, leaf)
        ]
        first = [self.first(i, j) for i, j in slots]
        new = [full(spec, 0) for specs in self.grows.values() for spec in specs]
        ends = [k for k, (i, _) in enumerate(slots, 1) if self.places[i].name == "_jst_value"]
        try:
            last = program_loop(
                lambda go, *_: go,
                lambda _, *now: self.round(slots, now[: len(slots)]),
                [self.go, *first, *new],
                rounds=bool(new),
                last=ends,
            )
        except CarriedError as error:
            raise self.disagreement(error, slots) from None
        rests = self.rests(*last, len(new)) if new else {}
        last = (last[0] if new else last)[1 : 1 + len(slots)]
        for i, place in enumerate(self.places):
            value = self.filled(i, slots, last, self.after)
            place.assign([*value, *rests[place.key]] if place.key in rests else value)
            aliasing.rule.replace(self.before[i].value, value, self.deep)
        self.check_bound()

    def check_bound(self) -> None:
        """What was bound by the first round, and is no variable: those are checked when used."""
        for place in self.kept:
            if place.key in self.begin and isinstance(place, Global | Attribute):
                said = f"{wording(place)} has no value: {self.reason()}"
                check_held(as_bool(self.go), said, UNBOUND[type(place)])

    def reason(self) -> str:
        """Why a name that the rounds bind may have no value."""
        return f"the loop that binds it ran no round ({line_of(self.where)})"

    def rests(self, last, before, count: int) -> dict:
        """What the rounds appended, by place: of each new item all rounds, side by side.

        An item that goes round is known before each round: all but what the last one appended.
        """
        stacks = [
            movement.concat(b, movement.stack(x, axis=0), axis=0)[1:]
            for x, b in zip(last[-count:], before[-count:], strict=True)
        ]
        found, waiting = {}, iter(stacks)
        for key, specs in self.grows.items():
            mine = [next(waiting) for _ in specs]
            rows = movement.stack(*mine, axis=1) if len(mine) > 1 else mine[0]
            if len(mine) > 1:
                n, m, *inner = rows.spec.shape
                rows = movement.reshape(rows, shape=(n * m, *inner))
            found[key] = [Rest(rows)]
        return found

    def appended(self, place, values) -> list:
        """What a round put at the end of a list; the list is as it was then."""
        given, now = self.given[place.key], values[place.key]
        new, values[place.key] = now[len(given) :], given[:-1]
        specs = [Spec(x.spec.shape, x.spec.dtype) for x in new if isinstance(x, Tensor)]
        kept = len(now) >= len(given) and all(map(is_, given, now))
        if not kept or specs != self.grows[place.key] or len(specs) < len(new):
            raise refusal(
                f"{wording(place)} grows by other items in another round of a loop on a tensor",
                expected="the same number of tensors in each, of one shape and dtype",
            )
        return new

    def start(self, place) -> State:
        state = State(place.get(), self.old)
        known = self.begin.get(place.key) if state.missing else None
        if known is None:
            doubt = place.key in self.doubts
            return state.doubted(place, True, self.reason()) if doubt else state
        blank = known.blank()
        if not doubtful(place):
            return blank
        if known.plain() and not known.specs[0]:
            blank = State(full(scalar_spec(known.value), 0))
        return blank.doubted(place, False, self.reason())

    def carried(self, i: int, j: int, leaf) -> bool:
        key = self.places[i].key
        number = type(leaf) in NUMBERS
        return isinstance(leaf, Tensor) or (
            number and (key in self.sure or (key, j) in self.moving)
        )

    def first(self, i: int, j: int):
        """The value with which a leaf goes into the first round."""
        leaf, wide = self.before[i].leaves[j], self.wide.get((self.places[i].key, j))
        return leaf if wide is None else full(wide, leaf)

    def filled(self, i: int, slots, values, states):
        """The value of a place, with values of the program for its leaves that go round."""
        state = states[i]
        now = {j: value for (k, j), value in zip(slots, values, strict=True) if k == i}
        return state.rebuilt([now.get(j, leaf) for j, leaf in enumerate(state.leaves)])

    def round(self, slots, now) -> list:
        """Trace one round: the new condition, then the new value of each leaf that goes round."""
        with journal([*self.places, *self.drops], [self.body, self.test], Raised) as noted:
            self.given = {}
            for i, place in enumerate(self.places):
                self.begun(i, place, self.filled(i, slots, now, self.before))
            with telling(0):
                self.body()
                go = self.test()
            values = noted.values()
        found = lasting(noted, values, go, known=[*self.places, *self.drops])
        if found:
            self.places += found
            self.kept = [*self.kept, *found]
            raise Again
        growing = [place for place in self.places if place.key in self.grows]
        new = [x for place in growing for x in self.appended(place, values)]
        self.after = [State(values[place.key], self.old) for place in self.places]
        for i, place in enumerate(self.places):
            if self.before[i].unsure:
                self.after[i] = self.after[i].doubted(place, True, self.reason())
        for i, place in enumerate(self.places):
            self.compare(i, place)
        outs = [self.out(i, j, x) for (i, j), x in zip(slots, now, strict=True)]
        return [go if is_static(go) else bool(go), *outs, *new]

    def begun(self, i: int, place, value) -> None:
        """A round begins with this value of a place; nobody but the place is to hold it."""
        value = [*value, Rest(PENDING)] if place.key in self.grows else value
        place.set(value)
        aliasing.rule.replace(self.before[i].value, value, self.deep)
        self.given[place.key] = list(value) if isinstance(value, list) else None

    def out(self, i: int, j: int, before: Tensor):
        leaf = self.after[i].leaves[j]
        key = self.places[i].key, j
        number = not isinstance(self.before[i].leaves[j], Tensor) and key not in self.wide
        if not isinstance(leaf, Tensor):
            return full(before.spec, leaf)
        if number and leaf.spec.shape:  # `total = 0` grew into the shape of what is added
            self.wide[key] = Spec(leaf.spec.shape, leaf.spec.dtype)
            raise Again
        return leaf

    def compare(self, i: int, place) -> None:
        """After a round a place must hold the kind of value it held before."""
        a, b = self.before[i], self.after[i]
        if a.missing:
            if not b.missing:
                self.begin[place.key] = b
                raise Again
            return
        if b.missing:
            raise self.refused(place, "", str(a), str(b))
        if b.unsure and not a.unsure:
            self.doubts.add(place.key)
            raise Again
        new = replaced(a, b, self.old)
        if new:
            self.deep |= new
            raise Again
        if a.structure != b.structure:
            if a.value is None:
                raise FirstRound
            self.learn_growth(place, b)
            raise self.refused(place, "", str(a), str(b))
        for j, (x, y) in enumerate(zip(a.leaves, b.leaves, strict=True)):
            number = self.carried(i, j, x) or type(x) in NUMBERS
            if (self.carried(i, j, x) and travels(y)) or same(x, y):
                continue
            if x is None and isinstance(y, Tensor):
                raise FirstRound
            if not (number and travels(y)):
                raise self.refused(place, paths(a.structure)[j], a.told(j), b.told(j))
            self.moving.add((place.key, j))
            raise Again

    def learn_growth(self, place, after: State) -> None:
        """A list to which a round appends tensors of one kind: trace again, collecting them."""
        given, now = self.given[place.key], after.value
        if not (isinstance(place, Contents) and given is not None and place.key not in self.grows):
            return
        new = now[len(given) :]
        kept = len(now) > len(given) and all(map(is_, given, now))
        specs = [x.spec for x in new if isinstance(x, Tensor)]
        if kept and len(specs) == len(new) and len(set(specs)) == 1:
            self.grows[place.key] = specs
            raise Again

    def refused(self, place, path: str, before: str, after: str):
        return refusal(
            f"{wording(place)}{path} is not the same kind of value after a round of a loop on a "
            f"tensor:\n  before: {before}\n  after:  {after}",
            expected="the same structure, and tensors of the same shape",
            hint="give it a tensor of its final shape and dtype before the loop; instead of "
            "appending to a list, write out[i] = ... into a tensor made before",
        )

    def disagreement(self, error: CarriedError, slots):
        if not error.k:
            return note_refusal(error)
        i, j = slots[error.k - 1]
        path = paths(self.before[i].structure)[j]
        return self.refused(self.places[i], path, str(error.before), str(error.after))
