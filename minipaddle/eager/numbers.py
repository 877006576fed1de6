"""Numbers of Python that only a run knows: what `int(t)`, `float(t)`, `bool(t)` and `t.item()` of a
tensor give in a trace, what a condition on a tensor chooses from numbers, what a loop carries.

Among themselves and with Python's numbers they compute as Python does: floats in double precision,
`/` gives a float, division by zero is an error, which the program raises when it runs. With a
tensor they do what a Python number of their kind does: the tensor's dtype stays.

A whole number has 64 bits. Where one leaves these the program raises OverflowError, because it
would wrap around and Python would not. For each number the trace knows a bound or None. Nothing is
checked where the bounds show that a result fits, or where a small constant is added to a number
without a bound: a counter reaches the end of 64 bits after 2³² rounds at the earliest.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import NamedTuple

import numpy

from ..engine.core.dim import Dim
from ..engine.core.dispatch import Recording, current
from ..engine.core.dtype import FLOATS, HALVES, bool_, float32, float64, int64
from ..engine.core.errors import type_error
from ..engine.core.op import OPS
from ..engine.core.spec import promote, scalar_dtype
from ..engine.eager.tensor import Tensor, wrap
from ..engine.ir.builder import no_value_error
from ..engine.jit.effects import check_held
from ..engine.ops import creation, elementwise, logic

LIMIT = 2**63
SMALL = 2**31
OVERFLOW = (
    "a whole number of Python that only a run knows leaves 64 bits, where a program would wrap "
    "around: let it be a float, or a tensor from the start"
)
DTYPES = {bool: bool_.numpy, int: int64.numpy, float: float64.numpy}
"""What a number is computed in, by its kind; in this order a kind holds the numbers before it."""


class Number(Tensor):
    """A bool, an int or a float of Python that only a run knows."""

    kind: type
    """The type that it has in eager mode."""

    bound: int | None = None
    """The greatest absolute value that a whole number may have, if that is known."""

    def astype(self, dtype):
        """The number as a tensor of a dtype."""
        return plain(self).astype(dtype)

    def leave(self) -> None:
        """Become the tensor that a program gives where this number leaves the function."""
        self.array, self.__class__ = standing_alone(self).array, Tensor

    def __hash__(self):
        raise no_value_error("the hash of a number")

    def __round__(self, digits=None):
        if digits is None:
            return rounded(self, "round")
        if self.kind is float or type(digits) is not int or digits < 0:
            raise no_value_error("round(x, digits)")
        return +self

    def __floor__(self):
        return rounded(self, "floor")

    def __ceil__(self):
        return rounded(self, "ceil")

    def __trunc__(self):
        return rounded(self, "trunc")

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


def kind_of_dtype(dtype) -> type:
    return bool if dtype.kind == "b" else float if dtype in FLOATS else int


def kind_of(x) -> type:
    """The type that a number has in eager mode."""
    return x.kind if isinstance(x, Number) else int if isinstance(x, Dim) else type(x)


def is_number(x) -> bool:
    """Whether a value is a number of Python, or stands for one."""
    return type(x) in DTYPES or isinstance(x, Number | Dim)


def widest(kinds) -> type:
    """The kind that holds the numbers of all these kinds."""
    return max(kinds, key=[*DTYPES].index)


def number(x: Tensor, bound: int | None = None) -> Number:
    """What a tensor without axes holds, as a number. It has at most this absolute value."""
    top = current.top
    if not isinstance(top, CombiningNumbers):
        top.__class__ = combining(type(top))
    kind = kind_of_dtype(x.spec.dtype)
    now = wrap(top.now(top.lift(x)))  # later writes do not change it
    found = now.astype(DTYPES[kind])
    found.__class__, found.kind, found.bound = Number, kind, bound
    return found


def plain(x: Tensor) -> Tensor:
    """A tensor that holds the number."""
    return wrap(current.top.lift(x))


def standing_alone(x: Number) -> Tensor:
    """The tensor that eager mode makes of a number: a float has the default dtype."""
    return x.astype(scalar_dtype(x.kind()))


def converted(x, kind: type):
    """A number of this kind, as a tensor if only a run knows it."""
    if isinstance(x, Dim):
        x = current.top.constant(x)
    return x.astype(DTYPES[kind]) if isinstance(x, Tensor) else kind(x)


def as_tensor(x, kind: type) -> Tensor:
    """A number of this kind as a tensor."""
    x = converted(x, kind)
    return x if isinstance(x, Tensor) else creation.full(shape=(), value=x, dtype=DTYPES[kind])


def as_int(x: Tensor) -> Number:
    """`int(x)` of a tensor without axes; raises Python's errors for what no int can be."""
    dtype = x.spec.dtype
    if dtype in FLOATS:
        x = x.astype(DTYPES[float])
        check_held(x == x, "cannot convert float NaN to integer", ValueError)
        check_held(elementwise.abs(x) < float(LIMIT), OVERFLOW, OverflowError)
    narrow = dtype not in FLOATS and dtype.itemsize < 8
    return number(x.astype(DTYPES[int]), SMALL if narrow else None)


def rounded(x: Number, name: str) -> Number:
    """A number rounded to an int by the operator of this name."""
    return as_int(OPS[name](plain(x))) if x.kind is float else +x


def as_float(x: Tensor) -> Number:
    """`float(x)` of a tensor without axes."""
    return number(x.astype(DTYPES[float]))


def boolean(function):
    """The function, whose result is a bool of Python also where it is a condition on tensors."""

    @wraps(function)
    def compute(*args):
        found = function(*args)
        return number(found) if isinstance(found, Tensor) else found

    return compute


# ---- beside tensors ------------------------------------------------------------------------------


class CombiningNumbers:
    """What a tracer does besides, as soon as there is a number in the trace."""

    def apply(self, op, inputs, attrs):
        if not any(isinstance(x, Number) for x in inputs):
            return super().apply(op, inputs, attrs)
        examples = [x.kind() if isinstance(x, Number) else getattr(x, "spec", x) for x in inputs]
        dtypes, result = dtypes_beside(op, examples, attrs)
        apply = super().apply
        if result in HALVES and not any(getattr(x, "shape", ()) for x in examples):
            inputs = [x.astype(float32) if isinstance(x, Tensor) else x for x in inputs]
        for x, dtype in zip(inputs, dtypes, strict=True):
            check_fits(x, dtype)
        inputs = [x.astype(d) if isinstance(x, Number) else x for x, d in zip(inputs, dtypes)]
        y = apply(op, inputs, attrs)
        return y if result is None or y.spec.dtype == result else y.astype(result)


@lru_cache
def combining(kind: type) -> type:
    return type(kind.__name__, (CombiningNumbers, kind), {})


def dtypes_beside(op, examples, attrs) -> tuple:
    """The dtype of each input that is a number, and that of the result of an elementwise operator.

    `examples` has numbers of Python where a number is given, and the specs of tensors.
    """
    alone = [scalar_dtype(x) if type(x) in DTYPES else None for x in examples]
    several = op.promoted and len(examples) > 1
    if not several or op is elementwise.cast:
        return alone, None
    places = range(len(examples)) if op.variadic else [op.inputs.index(x) for x in op.promoted]
    places = [k for k in places if k < len(examples)]
    if op.kind != "elementwise":
        dtype, result = promote(op.name, [examples[k] for k in places]), None
    else:
        dtype, result = op.dtypes(examples, attrs)
        dtype = float32.numpy if dtype in HALVES else dtype  # they are only stored
    return [dtype if k in places else own for k, own in enumerate(alone)], result


def check_fits(x, dtype) -> None:
    """Let the program check that a whole number is one of the tensor's dtype, as NumPy does."""
    if not isinstance(x, Number) or x.kind is not int or dtype.kind not in "iu":
        return
    least, most = numpy.iinfo(dtype).min, numpy.iinfo(dtype).max
    if dtype.itemsize < 8 and (x.bound is None or least == 0 or x.bound > most):
        n = plain(x)
        held = logic.bitwise_and(n >= int(least), n <= int(most))
        check_held(held, f"a whole number of Python is out of bounds for {dtype}", ValueError)


# ---- among numbers -------------------------------------------------------------------------------


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


def bound_of(x) -> int | None:
    """The greatest absolute value of a whole number, None if it is not known."""
    if kind_of(x) is bool:
        return 1
    return x.bound if isinstance(x, Number) else None if isinstance(x, Dim) else abs(x)


def bound_of_result(name: str, numbers) -> int | None:
    """The bound of a result; the program checks that it has 64 bits if no bound says so."""
    if name in KEEPS:
        return bound_of(numbers[KEEPS[name]])
    rule, bounds = GROWS.get(name), [*map(bound_of, numbers)]
    if rule is None:
        return None
    if None not in bounds:
        bound = rule.bound(*bounds)
        if bound < LIMIT:
            return bound
    elif any(type(x) is int and abs(x) < rule.small for x in numbers):
        return None
    result = rule.compute(*(converted(x, float) for x in numbers))
    check_held(elementwise.abs(result) < float(LIMIT), OVERFLOW, OverflowError)
    return None


def held_unless(x, safe: Callable, text: str, error: type) -> None:
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
    """An operator of Python on numbers, of which at least one is a Number."""
    kinds = [*map(kind_of, numbers)]
    kind = widest(kinds)
    if name in ("truediv", "floordiv", "mod"):
        held_unless(numbers[1], nonzero, "division by zero", ZeroDivisionError)
    if name in ("and", "or", "xor", "lshift", "rshift", "invert"):
        kind = whole_kind(name, kinds)
    elif name not in COMPARISONS:
        kind = float if name == "truediv" else widest([kind, int])
    if name == "pow":
        negative = type(numbers[1]) is int and numbers[1] < 0
        if kind is float or negative:
            return float_power(*numbers)
        text = "a whole number to a power that is negative in this run: in Python it is a float"
        held_unless(numbers[1], not_negative, text, NotImplementedError)
    if "shift" in name:
        held_unless(numbers[1], not_negative, "negative shift count", ValueError)
    bound = bound_of_result(name, numbers) if kind is int and name not in COMPARISONS else None
    if "shift" in name:
        numbers = (as_tensor(numbers[0], int), elementwise.minimum(as_tensor(numbers[1], int), 63))
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
    return number(function(*(converted(x, kind) for x in numbers)), bound)


def float_power(a, b) -> Number:
    """`a ** b` in double precision; raises Python's errors, and one where Python has complex."""
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
    return number(y)


COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
ONE = ("neg", "pos", "abs", "invert")
TWO = (*GROWS, "truediv", "floordiv", "mod", "rshift", "and", "or", "xor")


def method(name: str, turned: bool = False):
    """The method of an operator: Python's on numbers; beside a tensor it is the tensor's."""
    dunder = f"__{'r' * turned}{name}__"

    @Recording(False)
    def among_numbers(*numbers):
        return compute(name, *numbers)

    def apply(self, *others):
        if all(map(is_number, others)):
            return among_numbers(*others, self) if turned else among_numbers(self, *others)
        return getattr(Tensor, dunder, unknown)(self, *others)

    return apply


def unknown(*operands):
    return NotImplemented


for name in (*ONE, *TWO, *COMPARISONS):
    setattr(Number, f"__{name}__", method(name))
for name in TWO:
    setattr(Number, f"__r{name}__", method(name, turned=True))
