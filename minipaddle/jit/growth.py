"""Whole numbers of Python that only a run knows: where one leaves 64 bits the program raises
OverflowError, because there it would wrap around and Python would not.

Such a number is what a condition on a tensor chooses, what a loop on a tensor carries, and `int(t)`
of a tensor; and what is computed from such numbers and constants alone. Arithmetic with tensors
wraps in eager mode too. For each number the trace knows a bound or None. Nothing is checked where
the bounds show that a result fits, or where a small constant is added to a number without a bound:
a counter reaches the end of 64 bits after 2³² rounds at the earliest.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..engine.core.dispatch import Recording, current
from ..engine.core.dtype import float64, int64
from ..engine.eager.tensor import Tensor, same_value
from ..engine.eager.tracer import Tracer
from ..engine.ir.builder import SymbolicArray
from ..engine.jit.branching import CHOICES, describe_place
from ..engine.jit.effects import check_held
from ..engine.jit.looping import KINDS
from ..engine.jit.refusal import refusal
from ..engine.ops import elementwise, logic

LIMIT = 2**63
SMALL = 2**31
GROWS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "pow": lambda a, b: a**b if b < 64 else LIMIT if a > 1 else a,
    "bitwise_left_shift": lambda a, b: a << min(b, 64),
}
"""Operators whose results may be larger than their operands, and the bound of such a result."""
KEEPS = {"neg", "abs", "cast", "assign", "reshape", "floor_divide", "remainder"}
UNBOUNDED = {"multiply": 2, "pow": 2, "add": SMALL, "subtract": SMALL}
"""Beside a constant below this one an operand without a bound needs no check."""

OVERFLOW = (
    "a whole number of Python that only a run knows leaves 64 bits, where a program would wrap "
    "around: let it be a float, or a tensor from the start"
)

Tracer.wholes = None
"""The symbolic arrays that stand for whole numbers of Python, with the bound of each, or None."""


def note_whole(x: Tensor, bound: int | None = None) -> Tensor:
    """x itself; it stands for a whole number of Python of at most this absolute value."""
    tracer = current.top
    if x.spec.shape == () and x.spec.dtype == int64.numpy:
        tracer.wholes = WeakKeyDictionary() if tracer.wholes is None else tracer.wholes
        tracer.wholes[tracer.lift(x)] = bound
    return x


def is_whole(x) -> bool:
    """Whether a value is a whole number of Python, or stands for one."""
    if isinstance(x, Tensor):
        return type(x.array) is SymbolicArray and x.array in (current.top.wholes or ())
    return type(x) is int


def bound_of(x) -> int | None:
    """The greatest absolute value of a number, None if it is not known."""
    return current.top.wholes[x.array] if isinstance(x, Tensor) else abs(x)


def bound_of_dtype(dtype) -> int | None:
    """The bound of `int(t)` for a tensor of this dtype."""
    return SMALL if dtype.kind in "iub" and dtype.itemsize < 8 else None


apply_unchecked = Tracer.apply


def apply(tracer, op, inputs, attrs):
    """`Tracer.apply`; what is computed from whole numbers of Python is one, and is checked."""
    y = apply_unchecked(tracer, op, inputs, attrs)
    if tracer.wholes and op.name in KEEPS | GROWS.keys() and all(map(is_whole, inputs)):
        note_whole(y, check_growth(op, inputs))
    return y


Tracer.apply = apply


def check_growth(op, inputs) -> int | None:
    """The bound of a result; the program checks that it has 64 bits if no bound says so."""
    bounds = [*map(bound_of, inputs)]
    if op.name in KEEPS:
        return bounds[0]
    if None not in bounds:
        bound = GROWS[op.name](*bounds)
        if bound < LIMIT:
            return bound
    elif any(type(x) is int and abs(x) < UNBOUNDED.get(op.name, 0) for x in inputs):
        return None
    with Recording(False):
        check_held(fits(op, inputs), OVERFLOW, OverflowError)
    return None


def fits(op, inputs) -> Tensor:
    """Whether the result of an arithmetic operator, computed in double precision, has 64 bits."""
    a, b = (
        elementwise.cast(x.detach(), dtype=float64.numpy) if isinstance(x, Tensor) else float(x)
        for x in inputs
    )
    result = a * 2.0**b if op.name == "bitwise_left_shift" else op(a, b)
    return logic.less_than(elementwise.abs(result), float(LIMIT))


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
            if isinstance(out, Tensor) and is_whole(x) and is_whole(y):
                bounds = bound_of(x), bound_of(y)
                note_whole(out, None if None in bounds else max(bounds))
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
