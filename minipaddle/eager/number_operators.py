"""Python's operators on numbers that only a run knows: floats are computed in double precision, `/`
gives a float, and the program raises Python's errors, as for a division by zero.

A whole number has 64 bits. Where one leaves these the program raises OverflowError, because it
would wrap around and Python would not. For each number the trace knows a bound or None. Nothing is
checked where the bounds show that a result fits, or where a small constant is added to a number
without a bound: a counter reaches the end of 64 bits after 2³² rounds at the earliest.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple

from ..engine.core.dim import Dim
from ..engine.core.dispatch import Recording
from ..engine.core.errors import type_error
from ..engine.eager.tensor import Tensor
from ..engine.jit.effects import check_held
from ..engine.ops import elementwise, logic
from .numbers import (
    LIMIT,
    OVERFLOW,
    SMALL,
    Number,
    as_tensor,
    convert_number,
    is_number,
    kind_of,
    kind_of_result,
    number,
    widest,
)


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
KEEPS = {"neg": 0, "pos": 0, "abs": 0, "floordiv": 0, "mod": 1, "rshift": 0}
"""Other operators, and the operand whose bound the result has."""


def magnitude_of(x) -> int | None:
    """The greatest absolute value of a whole number, None if it is not known."""
    if kind_of(x) is bool:
        return 1
    return x.bound if isinstance(x, Number) else None if isinstance(x, Dim) else abs(x)


def magnitude_of_result(name: str, numbers) -> int | None:
    """The bound of a result; the program checks that it has 64 bits if no bound says so."""
    if name in KEEPS:
        return magnitude_of(numbers[KEEPS[name]])
    rule, bounds = GROWS.get(name), [*map(magnitude_of, numbers)]
    if rule is None:
        return None
    if None not in bounds:
        bound = rule.bound(*bounds)
        if bound < LIMIT:
            return bound
    elif any(type(x) is int and abs(x) < rule.small for x in numbers):
        return None
    result = rule.compute(*(convert_number(x, float) for x in numbers))
    check_held(elementwise.abs(result) < float(LIMIT), OVERFLOW, OverflowError)
    return None


def require_safe(x, safe: Callable, text: str, error: type) -> None:
    """Let the program raise an error unless `safe(x)`."""
    if isinstance(x, Tensor | Dim) or not safe(x):
        check_held(safe(as_tensor(x, kind_of(x))), text, error)


def nonzero(x):
    return x != 0


def not_negative(x):
    return x >= 0


def whole_kind(name: str, kinds) -> type:
    """The kind of `a & b` and `a << b`."""
    if float in kinds:
        raise type_error(f"`{name}` of a float", expected="whole numbers or booleans")
    return bool if name in ("and", "or", "xor") and {*kinds} == {bool} else int


def compute(name: str, *numbers):
    """An operator of Python on numbers, at least one of them a Number."""
    kinds = [*map(kind_of, numbers)]
    kind = widest(kinds)
    if name in ("truediv", "floordiv", "mod"):
        require_safe(numbers[1], nonzero, "division by zero", ZeroDivisionError)
    if name in ("and", "or", "xor", "lshift", "rshift", "invert"):
        kind = whole_kind(name, kinds)
    elif name not in COMPARISONS:
        kind = float if name == "truediv" else widest([kind, int])
    if name == "pow":
        negative = type(numbers[1]) is int and numbers[1] < 0
        if kind is float or negative:
            return float_power(*numbers)
        text = "a whole number to a power that is negative in this run: in Python it is a float"
        require_safe(numbers[1], not_negative, text, NotImplementedError)
    if "shift" in name:
        require_safe(numbers[1], not_negative, "negative shift count", ValueError)
    bound = magnitude_of_result(name, numbers) if kind is int and name not in COMPARISONS else None
    if "shift" in name:
        numbers = (as_tensor(numbers[0], int), elementwise.minimum(as_tensor(numbers[1], int), 63))
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
    keeps = kind is float and name not in ("truediv", *COMPARISONS)
    unsure = keeps and kind_of_result(numbers)
    return number(function(*(convert_number(x, kind) for x in numbers)), bound, unsure)


def float_power(a, b) -> Number:
    """`a ** b` in double precision; raises Python's errors, and one where Python has complex."""
    unsure = kind_of_result((a, b))
    a, b = as_tensor(a, float), as_tensor(b, float) if isinstance(b, Number | Dim) else float(b)
    zero = logic.bitwise_or(a != 0, b >= 0) if isinstance(b, Tensor) else None
    if zero is not None or b < 0:
        text = "0.0 cannot be raised to a negative power"
        check_held(a != 0 if zero is None else zero, text, ZeroDivisionError)
    y = a**b
    finite = elementwise.abs(a) < math.inf
    if isinstance(b, Tensor):
        finite = logic.bitwise_and(finite, elementwise.abs(b) < math.inf)
    infinite = logic.bitwise_not(finite)
    if isinstance(b, Tensor) or not b.is_integer():
        text = "a negative number to a fractional power: in Python it is a complex number"
        check_held(logic.bitwise_or(y == y, infinite), text, NotImplementedError)
    held = logic.bitwise_or(elementwise.abs(y) < math.inf, infinite)
    check_held(
        logic.bitwise_or(held, y != y), "(34, 'Numerical result out of range')", OverflowError
    )
    return number(y, unsure=unsure)


COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
ONE = ("neg", "pos", "abs", "invert")
TWO = (*GROWS, "truediv", "floordiv", "mod", "rshift", "and", "or", "xor")


def method(name: str, turned: bool = False):
    """The method of an operator: Python's on numbers; beside a tensor it is the tensor's."""
    dunder = f"__{'r' * turned}{name}__"

    @Recording(False)
    def compute_numbers(*numbers):
        return compute(name, *numbers)

    def apply(self, *others):
        if all(map(is_number, others)):
            return compute_numbers(*others, self) if turned else compute_numbers(self, *others)
        return getattr(Tensor, dunder, leave_to_python)(self, *others)

    return apply


def leave_to_python(*operands):
    return NotImplemented


for name in (*ONE, *TWO, *COMPARISONS):
    setattr(Number, f"__{name}__", method(name))
for name in TWO:
    setattr(Number, f"__r{name}__", method(name, turned=True))
