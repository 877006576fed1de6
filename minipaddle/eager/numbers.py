"""Numbers of Python that only a run knows: what `int(t)`, `float(t)`, `bool(t)` and `t.item()` of a
tensor give in a trace, what a condition on a tensor chooses from numbers, what a loop carries.

With a tensor they do what a Python number of their kind does: the tensor's dtype stays. Among
themselves they compute as Python does, see `number_operators.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce, wraps

from ..engine.core.dim import Dim
from ..engine.core.dispatch import current
from ..engine.core.dtype import FLOATS, HALVES, bool_, float32, float64, int64
from ..engine.core.op import OPS
from ..engine.core.spec import promote, scalar_dtype
from ..engine.eager.tensor import Tensor, wrap
from ..engine.ir.builder import no_value_error
from ..engine.jit.effects import check_held
from ..engine.jit.refusal import refusal
from ..engine.ops import creation, elementwise, logic

LIMIT = 2**63
SMALL = 2**31
OVERFLOW = (
    "a whole number of Python that only a run knows leaves 64 bits, where a program would wrap "
    "around: let it be a float, or a tensor from the start"
)
DTYPES = {bool: bool_.numpy, int: int64.numpy, float: float64.numpy}
"""The dtype of a number, by its kind; in this order a kind holds the numbers before it."""


class Number(Tensor):
    """A bool, an int or a float of Python that only a run knows."""

    kind: type
    """The type that it has in eager mode."""

    bound: int | None = None
    """The greatest absolute value that a whole number may have, if that is known."""

    unsure: bool | Callable = False
    """Whether only a run knows its type; or a function that gives a tensor with the place of the
    type in `DTYPES`. The kind then is the widest of them."""

    @property
    def mixed(self) -> bool:
        """Whether only a run knows if it is a float. It is held as one then."""
        return self.unsure is not False and self.kind is float

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
            return round_number(self, "round")
        if self.kind is float or type(digits) is not int or digits < 0:
            raise no_value_error("round(x, digits)")
        return +self

    def __floor__(self):
        return round_number(self, "floor")

    def __ceil__(self):
        return round_number(self, "ceil")

    def __trunc__(self):
        return round_number(self, "trunc")

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


def kind_of_dtype(dtype) -> type:
    return bool if dtype.kind == "b" else float if dtype in FLOATS else int


def kind_of(x) -> type:
    """The type that a number has in eager mode."""
    return x.kind if isinstance(x, Number) else int if isinstance(x, Dim) else type(x)


def is_mixed(numbers) -> bool:
    """Whether only a run knows if one of the numbers, or their sum, is an int or a float."""
    floats = [x for x in numbers if kind_of(x) is float]
    return bool(floats) and all(getattr(x, "mixed", False) for x in floats)


def sure_place(x) -> int | None:
    """The place of a number's type in `DTYPES`; None if only a run knows it."""
    return [*DTYPES].index(kind_of(x)) if getattr(x, "unsure", False) is False else None


def choose_kind(test: Tensor, a, b) -> bool | Callable:
    """The `unsure` of a number that is `a` if `test`, and else `b`."""
    k, n = map(sure_place, (a, b))
    if k is None or n is None or k == n:
        return k is None or n is None
    return lambda: as_tensor(test, int) * (k - n) + n


def kind_of_result(numbers) -> bool | Callable:
    """The `unsure` of a result that is a float if one of the numbers is, and else an int."""
    if not is_mixed(numbers):
        return False
    unsure = [x.unsure for x in numbers if kind_of(x) is float]
    if any(each is True for each in unsure):
        return True
    return lambda: reduce(elementwise.maximum, (each() for each in unsure), 1)


def is_number(x) -> bool:
    """Whether a value is a number of Python, or represents one."""
    return type(x) in DTYPES or isinstance(x, Number | Dim)


def widest(kinds) -> type:
    """The kind that holds the numbers of all these kinds."""
    return max(kinds, key=[*DTYPES].index)


def number(x: Tensor, bound: int | None = None, unsure: bool | Callable = False) -> Number:
    """The value of a tensor without axes, as a number. It has at most this absolute value."""
    top = current.top
    if not isinstance(top, CombiningNumbers):
        top.__class__ = combining(type(top))
    kind = kind_of_dtype(x.spec.dtype)
    now = wrap(top.now(top.lift(x)))  # later writes do not change it
    result = now.astype(DTYPES[kind])
    result.__class__, result.kind, result.bound, result.unsure = Number, kind, bound, unsure
    return result


def plain(x: Tensor) -> Tensor:
    """A tensor that holds the number."""
    return wrap(current.top.lift(x))


def standing_alone(x: Number) -> Tensor:
    """The tensor that eager mode makes of a number: a float has the default dtype."""
    return x.astype(scalar_dtype(x.kind()))


def convert_number(x, kind: type):
    """A number of this kind, as a tensor if only a run knows it."""
    if isinstance(x, Dim):
        x = current.top.constant(x)
    return x.astype(DTYPES[kind]) if isinstance(x, Tensor) else kind(x)


def as_tensor(x, kind: type) -> Tensor:
    """A number of this kind as a tensor."""
    x = convert_number(x, kind)
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


def round_number(x: Number, name: str) -> Number:
    """A number rounded to an int by the operator of this name."""
    return as_int(OPS[name](plain(x))) if x.kind is float else +x


def as_float(x: Tensor) -> Number:
    """`float(x)` of a tensor without axes."""
    return number(x.astype(DTYPES[float]))


def boolean(function):
    """The function, whose result is a bool of Python also where it is a condition on tensors."""

    @wraps(function)
    def compute(*args):
        result = function(*args)
        return number(result) if isinstance(result, Tensor) else result

    return compute


# ---- beside tensors ------------------------------------------------------------------------------


class CombiningNumbers:
    """Further methods of a tracer, as soon as there is a number in the trace."""

    def apply(self, op, inputs, attrs):
        if not any(isinstance(x, Number) for x in inputs):
            return super().apply(op, inputs, attrs)
        examples = [x.kind() if isinstance(x, Number) else getattr(x, "spec", x) for x in inputs]
        dtypes, result = dtypes_beside(op, examples, attrs)
        if any(isinstance(x, Number) and x.mixed for x in inputs):
            integers = [0 if getattr(x, "mixed", False) else y for x, y in zip(inputs, examples)]
            if dtypes_beside(op, integers, attrs) != (dtypes, result):
                refuse_mixed(*inputs)
        apply = super().apply
        if result in HALVES and not any(getattr(x, "shape", ()) for x in examples):
            inputs = [x.astype(float32) if isinstance(x, Tensor) else x for x in inputs]
        for x, dtype in zip(inputs, dtypes, strict=True):
            check_fits(x, dtype)
        if casts_itself(op, inputs, attrs, dtypes, result):
            inputs = [plain(x) if isinstance(x, Number) else x for x in inputs]
        inputs = [x.astype(d) if isinstance(x, Number) else x for x, d in zip(inputs, dtypes)]
        y = apply(op, inputs, attrs)
        return y if result is None or y.spec.dtype == result else y.astype(result)


def casts_itself(op, inputs, attrs, dtypes, result) -> bool:
    """Whether an operator brings whole numbers into its dtype as a cast before it would."""
    kinds = [x.kind for x in inputs if isinstance(x, Number)]
    if result is None or result in HALVES or float in kinds:
        return False
    specs = [getattr(x, "spec", x) for x in inputs]
    dtype = next(d for d in dtypes if d is not None)
    return dtype in FLOATS and op.dtypes(specs, attrs) == (dtype, result)


def refuse_mixed(*values) -> None:
    """Refuse a number that may be an int or a float where it matters which."""
    if any(getattr(x, "unsure", False) is not False for x in values):
        refuse_unsure(", where that says what dtype or what text there is")


def refuse_unsure(where: str, line=None) -> None:
    """Refuse a number whose type matters, and only a run knows it."""
    raise refusal(
        f"a number of which only a run knows whether it is an int or a float{where}",
        hint="float(x) or int(x) makes it one of them; or choose between numbers of one kind",
        where=line,
    )


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
    bits, signed = 8 * dtype.itemsize, dtype.kind == "i"
    most = 2 ** (bits - signed) - 1
    if bits < 64 and (x.bound is None or not signed or x.bound > most):
        n = plain(x)
        held = logic.bitwise_and(n >= (-most - 1 if signed else 0), n <= most)
        check_held(held, f"a whole number of Python is out of bounds for {dtype}", ValueError)
