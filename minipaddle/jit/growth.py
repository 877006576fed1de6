"""Whole numbers of Python that only a run knows: where one leaves 64 bits the program raises
OverflowError, because there it would wrap around and Python would not.

Such a number is what a condition on a tensor chooses, what a loop on a tensor carries, and `int(t)`
of a tensor; and what is computed from such numbers and constants alone. Arithmetic with tensors
wraps in eager mode too. For each number the trace knows a bound or None. Nothing is checked where
the bounds show that a result fits, or where a small constant is added to a number without a bound:
a counter reaches the end of 64 bits after 2³² rounds at the earliest.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from ..engine.core.dispatch import Recording
from ..engine.core.dtype import float64, int64
from ..engine.eager.tensor import Tensor, same_value
from ..engine.jit.branching import CHOICES, describe_place
from ..engine.jit.effects import check_held
from ..engine.jit.looping import KINDS
from ..engine.jit.refusal import refusal
from ..engine.ops import elementwise

LIMIT = 2**63
SMALL = 2**31
OVERFLOW = (
    "a whole number of Python that only a run knows leaves 64 bits, where a program would wrap "
    "around: let it be a float, or a tensor from the start"
)


class Whole(Tensor):
    """A whole number of Python that only a run knows."""

    bound: int | None = None
    """The greatest absolute value it may have, if that is known."""


def note_whole(x: Tensor, bound: int | None = None) -> Tensor:
    """x itself; it stands for a whole number of Python of at most this absolute value."""
    if x.spec.shape == () and x.spec.dtype == int64.numpy:
        x.__class__, x.bound = Whole, bound
    return x


def is_whole(x) -> bool:
    """Whether a value is a whole number of Python, or stands for one."""
    return type(x) in (int, Whole)


def bound_of(x) -> int | None:
    """The greatest absolute value of a number, None if it is not known."""
    return x.bound if type(x) is Whole else abs(x)


def note_chosen(out, *items):
    """out itself; if it is one of `items`, and these are whole numbers of Python, it is one too."""
    if isinstance(out, Tensor) and all(map(is_whole, items)):
        bounds = [*map(bound_of, items)]
        note_whole(out, None if None in bounds else max(bounds))
    return out


def bound_of_dtype(dtype) -> int | None:
    """The bound of `int(t)` for a tensor of this dtype."""
    return SMALL if dtype.kind in "iub" and dtype.itemsize < 8 else None


class Growing(NamedTuple):
    """An operator of Python whose result may be larger than its operands."""

    compute: Callable
    bound: Callable  # of the result, from those of the operands
    small: int  # beside a constant below it an operand without a bound needs no check


def power(a: int, b: int) -> int:
    return a**b if b < 64 else LIMIT if a > 1 else a


GROWS = {
    "add": Growing(operator.add, operator.add, SMALL),
    "sub": Growing(operator.sub, operator.add, SMALL),
    "mul": Growing(operator.mul, operator.mul, 2),
    "pow": Growing(operator.pow, power, 2),
    "lshift": Growing(lambda a, b: a * 2.0**b, lambda a, b: a << min(b, 64), 0),
}
KEEPS = {"neg": 0, "pos": 0, "abs": 0, "floordiv": 0, "mod": 1}
"""Other operators, and the operand whose bound the result has."""


def arithmetic(name: str, rule, turned: bool = False):
    """The method of an operator; of whole numbers of Python the result is one, and is checked."""
    method = getattr(Tensor, f"__{'r' * turned}{name}__")

    def compute(self, *other):
        y, numbers = method(self, *other), (*other, self) if turned else (self, *other)
        if isinstance(y, Tensor) and all(map(is_whole, numbers)):
            note_whole(y, bound_of(numbers[rule]) if type(rule) is int else checked(rule, numbers))
        return y

    return compute


for name, rule in (GROWS | KEEPS).items():
    setattr(Whole, f"__{name}__", arithmetic(name, rule))
    if hasattr(Tensor, f"__r{name}__"):
        setattr(Whole, f"__r{name}__", arithmetic(name, rule, turned=True))


def checked(rule: Growing, numbers) -> int | None:
    """The bound of a result; the program checks that it has 64 bits if no bound says so."""
    bounds = [*map(bound_of, numbers)]
    if None not in bounds:
        bound = rule.bound(*bounds)
        if bound < LIMIT:
            return bound
    elif any(type(x) is int and abs(x) < rule.small for x in numbers):
        return None
    with Recording(False):  # computed in double precision
        result = rule.compute(*map(as_float, numbers))
        check_held(elementwise.abs(result) < float(LIMIT), OVERFLOW, OverflowError)
    return None


def as_float(x):
    return elementwise.cast(x.detach(), dtype=float64.numpy) if type(x) is Whole else float(x)


def refuse_long(place, *numbers) -> None:
    """Refuse whole numbers of more than 64 bits as values of a place."""
    for n in numbers:
        if type(n) is int and not -LIMIT <= n < LIMIT:
            raise refusal(
                f"{describe_place(place)} is {n} under a condition or in a loop on a tensor",
                expected="whole numbers of 64 bits, which a program has",
                hint="let it be a float",
            )


class CheckedChoice(CHOICES[-1]):
    """A choice that knows which of its results are whole numbers of Python."""

    def check(self, place, a, b):
        super().check(place, a, b)
        for x, y in zip(a.leaves, b.leaves):
            if not same_value(x, y):
                refuse_long(place, x, y)

    def merge(self, place, a, b, outs):
        for x, y, out in zip(a.leaves, b.leaves, outs):
            note_chosen(out, x, y)
        return super().merge(place, a, b, outs)


class CheckedLoop(KINDS[-1]):
    """A loop that knows which of the values it carries are whole numbers of Python."""

    def run(self, slots, first, ends):
        for i, j in slots:
            refuse_long(self.places[i], self.before[i].leaves[j])
        last = super().run(slots, first, ends)
        self.note_carried(slots, last[1:])
        return last

    def iteration(self, slots, now):
        self.note_carried(slots, now)
        return super().iteration(slots, now)

    def note_carried(self, slots, values) -> None:
        for (i, j), x in zip(slots, values):
            if is_whole(self.before[i].leaves[j]):
                note_whole(x)


CHOICES.append(CheckedChoice)
KINDS.append(CheckedLoop)
