"""Numbers of Python that a condition or a loop on a tensor decides stay numbers (see
`eager/numbers.py`): floats keep double precision, whole numbers are checked.
"""

from functools import partial

from ..eager.number_operators import magnitude_of
from ..eager.numbers import (
    DTYPES,
    LIMIT,
    Number,
    as_tensor,
    choose_kind,
    is_number,
    kind_of,
    number,
    widest,
)
from ..engine.core.dispatch import current
from ..engine.core.record import Spec
from ..engine.core.spec import promote
from ..engine.eager.control_flow import as_bool, is_static
from ..engine.eager.tensor import Tensor, same_value, wrap
from ..engine.jit.branching import CHOICES, ReturnPlace, describe_place, learn
from ..engine.jit.leaves import PlaceState, as_condition, full
from ..engine.jit.looping import KINDS
from ..engine.jit.refusal import refusal


def note_chosen(test, a, b, out):
    """out itself; as a number, if it is `a` where `test` is true, else `b`, two numbers."""
    if not (isinstance(out, Tensor) and is_number(a) and is_number(b)):
        return out
    bounds = [None if kind_of(x) is float else magnitude_of(x) for x in (a, b)]
    return number(out, None if None in bounds else max(bounds), choose_kind(test, a, b))


def chooses_kind(*items) -> bool:
    """Whether a choice between numbers decides if there is an int or a float."""
    kinds = {*map(kind_of, items)}
    return float in kinds and (len(kinds) > 1 or any(getattr(x, "mixed", False) for x in items))


def refuse_long(place, *numbers) -> None:
    """Refuse whole numbers of more than 64 bits as values of a place."""
    for n in numbers:
        if type(n) is int and not -LIMIT <= n < LIMIT:
            raise refusal(
                f"{describe_place(place)} is {n} under a condition or in a loop on a tensor",
                expected="whole numbers of 64 bits, which a program has",
                hint="let it be a float",
            )


def like_numbers(state: PlaceState, known: PlaceState, outer) -> PlaceState:
    """A state made where a place was undefined: its leaves are numbers where those of the known
    state are.
    """
    leaves = [*state.leaves]
    for j, x in enumerate(known.leaves[: len(leaves)]):
        if is_number(x) and isinstance(leaves[j], Tensor):
            leaves[j] = number(leaves[j].astype(DTYPES[kind_of(x)]))
    return PlaceState(state.rebuild(leaves), outer)


def dtype_beside(a, b):
    """The dtype in which a program chooses between two leaves, each with its spec (None for what is
    no tensor), one of them a number; None if it finds that itself.
    """
    (x, _), (y, _) = a, b
    if same_value(x, y) or not (is_number(x) or is_number(y)):
        return None
    if is_number(x) and is_number(y):
        return DTYPES[widest(map(kind_of, (x, y)))]
    (_, spec), (n, _) = (b, a) if is_number(x) else (a, b)
    return promote("a condition", [spec, n.kind()]) if spec and isinstance(n, Number) else None


class NumberChoice(CHOICES[-1]):
    """A choice between numbers is a number."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.dtypes: dict = {}  # by (key of the place, number of the leaf): of the number there

    def attempt(self):
        self.held = as_it_is(self.test)
        return super().attempt()

    def check(self, place, a, b):
        super().check(place, a, b)
        for x, y in zip(a.leaves, b.leaves):
            if not same_value(x, y):
                refuse_long(place, x, y)

    def blank(self, place, known):
        return like_numbers(super().blank(place, known), known, self.outer)

    def trace(self, k):
        results = super().trace(k)
        places = [*self.live_out, ReturnPlace]
        names = [(p.key, j) for p, s in zip(places, self.states[k]) for j in range(len(s.leaves))]
        if k:
            left, right = (
                [p for s in side for p in zip(s.leaves, s.specs)] for side in self.states
            )
            wanted = {
                name: dtype
                for name, a, b in zip(names, left, right)
                if (dtype := dtype_beside(a, b)) is not None
                and any(is_number(x) and differs(x, dtype) for x, _ in (a, b))
            }
            if not wanted.keys() <= self.dtypes.keys():
                learn(self.dtypes, wanted)
        return [self.as_wanted(x, name) for x, name in zip(results, names, strict=True)]

    def as_wanted(self, x, name):
        if name not in self.dtypes or not is_number(x):
            return x
        return as_tensor(x, kind_of(x)).astype(self.dtypes[name])

    def merge(self, place, a, b, outs):
        outs = [*map(partial(note_chosen, self.held), a.leaves, b.leaves, outs)]
        return super().merge(place, a, b, outs)


def as_it_is(test):
    """The value that a condition has now: later writes do not change it."""
    test = as_condition(test)
    return wrap(current.top.now(current.top.lift(as_bool(test)))) if is_static(test) else test


def differs(x, dtype) -> bool:
    """Whether a program would choose a number in another dtype."""
    return DTYPES[x.kind] != dtype if isinstance(x, Number) else dtype == DTYPES[float]


class NumberLoop(KINDS[-1]):
    """A loop carries numbers as numbers, as long as no iteration makes a tensor of them."""

    def __init__(self, *args):
        super().__init__(*args)
        self.tensors: set = set()  # (key of the place, number of the leaf): a number at first only
        self.mixed: set = set()  # likewise: ints in some iterations, floats in others

    def is_number(self, i: int, j: int) -> bool:
        """Whether leaf j of place i is a number in all iterations."""
        name = self.places[i].key, j
        if name in self.tensors or name in self.widened:
            return False
        return is_number(self.before[i].leaves[j])

    def start(self, place):
        state, known = super().start(place), self.initial.get(place.key)
        return state if known is None else like_numbers(state, known, self.outer)

    def first(self, i, j):
        leaf = self.before[i].leaves[j]
        if self.is_number(i, j):
            refuse_long(self.places[i], leaf)
            return as_tensor(leaf, kind_of(leaf))
        if isinstance(leaf, Number):
            leaf = leaf.astype(promote("a loop", [leaf.kind()]))
        return leaf if (self.places[i].key, j) not in self.widened else super().first(i, j)

    def run(self, slots, first, ends):
        began = as_it_is(self.go)  # if it is false, there is no iteration
        last = super().run(slots, first, ends)
        noted = self.note(slots, last[1:])
        for (i, j), x in zip(slots, noted):
            if isinstance(x, Number):
                x.unsure = choose_kind(began, self.after[i].leaves[j], self.before[i].leaves[j])
        return [last[0], *noted]

    def iteration(self, slots, now):
        return super().iteration(slots, self.note(slots, now))

    def note(self, slots, values) -> list:
        """The carried values, with numbers as numbers."""
        return [
            number(x, unsure=(self.places[i].key, j) in self.mixed) if self.is_number(i, j) else x
            for (i, j), x in zip(slots, values)
        ]

    def out(self, i, j, before):
        leaf, name = self.after[i].leaves[j], (self.places[i].key, j)
        if not is_number(leaf):
            y = super().out(i, j, before)
            if self.is_number(i, j):
                learn(self.tensors, {name})
            return y
        kind = kind_of(leaf)
        if self.is_number(i, j):
            first = self.before[i].leaves[j]
            if name not in self.mixed and chooses_kind(first, leaf):
                learn(self.mixed, {name})
            return as_tensor(leaf, widest([kind, kind_of(before)]))
        dtype = promote("a loop", [before.spec, kind()])
        if isinstance(leaf, Number):
            return leaf.astype(dtype)
        return full(Spec(before.spec.shape, dtype), leaf)


CHOICES.append(NumberChoice)
KINDS.append(NumberLoop)
