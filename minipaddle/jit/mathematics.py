"""Functions of `math` on tensors with one element and on numbers that only a run knows."""

import math
from collections.abc import Callable

from ..eager.numbers import as_tensor, number, round_number
from ..engine.core.dispatch import Recording
from ..engine.core.op import OPS
from ..engine.eager.control_flow import is_static
from ..engine.jit.calling import TABLE
from ..engine.jit.effects import check_held
from ..engine.ops import elementwise, logic


def finite(x, y):
    return logic.bitwise_or(elementwise.abs(y) < math.inf, elementwise.abs(x) == math.inf)


def lift_to_floats(name: str, safe: Callable | None, error: Exception | None):
    """`math.name` of a float: a number; the program raises the error unless `safe(x, result)`."""
    function, op = getattr(math, name), OPS[OPERATORS.get(name, name)]

    def compute(*args):
        if len(args) != 1 or not is_static(args[0]):
            return function(*args)
        with Recording(False):
            x = as_tensor(TABLE[float](*args), float)
            y = op(x)
            if safe is not None:
                held = logic.bitwise_or(safe(x, y), x != x)
                check_held(held, str(error), type(error))
        return number(y)

    return compute


def to_int(name: str):
    """`math.floor` and its kin: an int."""
    function = getattr(math, name)
    return lambda x: round_number(TABLE[float](x), name) if is_static(x) else function(x)


OPERATORS = {"fabs": "abs"}
DOMAIN, RANGE = ValueError("math domain error"), OverflowError("math range error")
SAFE = {
    "sqrt": (lambda x, y: x >= 0, DOMAIN),
    "log": (lambda x, y: x > 0, DOMAIN),
    "log2": (lambda x, y: x > 0, DOMAIN),
    "log10": (lambda x, y: x > 0, DOMAIN),
    "log1p": (lambda x, y: x > -1, DOMAIN),
    "exp": (finite, RANGE),
    "expm1": (finite, RANGE),
    "sin": (lambda x, y: elementwise.abs(x) < math.inf, DOMAIN),
    "cos": (lambda x, y: elementwise.abs(x) < math.inf, DOMAIN),
    "tanh": (None, None),
    "fabs": (None, None),
    "isnan": (None, None),
    "isinf": (None, None),
    "isfinite": (None, None),
}
"""Functions of a float: when there is a result, and Python's error where there is none."""

TABLE |= {getattr(math, name): lift_to_floats(name, *row) for name, row in SAFE.items()}
TABLE |= {getattr(math, name): to_int(name) for name in ("floor", "ceil", "trunc")}
