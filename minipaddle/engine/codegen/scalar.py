"""Scalar formulas as text: an operator's own body, run on expressions instead of arrays.

A body gets `ScalarText` objects in place of arrays, and `C` in place of the array module. The
result is a tree of C expressions. `statements` turns it into C statements, in which a value that is
used twice has a name of its own. Formulas look the same in CUDA C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ..core import dtype as dt
from ..core.record import Spec
from ..core.slots import slot
from .kernel import C_TYPES, number

SUFFIX = {dt.float32.numpy: "f", dt.float64.numpy: "", dt.int64.numpy: "", dt.bool_.numpy: ""}


C_NAMES = C_TYPES | {np.dtype("uint64"): "uint64_t"}
"""The random generator computes with unsigned bits. No tensor holds them."""

LONG = 70
"""An expression with more characters becomes two statements."""


class CannotWrite(Exception):
    """A formula uses something that C does not have."""


class ScalarText:
    """An expression with a dtype: a template with holes for its `args`."""

    __slots__ = ("args", "dtype", "has_root", "of", "rounded", "template")

    __array_ufunc__, shape, ndim, size = None, (), 0, 1

    def __init__(self, template: str, args, dtype, rounded: bool = False):
        self.template, self.args, self.dtype = template, tuple(args), np.dtype(dtype)
        self.rounded = rounded  # whether it is a number of half precision
        self.of = None  # the record that it is the value of, if it is one
        self.has_root = "sqrt" in template or True in [a.has_root for a in self.args]

    def astype(self, dtype, copy=True) -> ScalarText:
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if dtype == np.bool_:
            return ScalarText("({} != 0)", [self], dtype)
        return ScalarText(f"(({C_NAMES[dtype]}){{}})", [self], dtype)

    # ---- operators ---------------------------------------------------------------------------

    def __neg__(self):
        return arithmetic("(-{})", self)

    def __invert__(self):
        return arithmetic("(!{})" if self.dtype == np.bool_ else "(~{})", self)

    def __pow__(self, other):
        power = None if isinstance(other, ScalarText) else other
        if power in (2, 3):
            return self * self if power == 2 else self * self * self
        return write_power(self, other)

    def __rpow__(self, other):
        x, y = same(other, self)
        return write_power(x, y)

    def __truediv__(self, other):
        return arithmetic("({} / {})", *inexact(*same(self, other)))

    def __rtruediv__(self, other):
        return arithmetic("({} / {})", *inexact(*same(other, self)))

    __hash__ = None


def arithmetic(template: str, *args: ScalarText) -> ScalarText:
    """An operation. C computes short integers with 32 bits; a cast cuts off the upper ones."""
    dtype = args[0].dtype
    short = dtype.kind in "iu" and dtype.itemsize < 4
    return ScalarText(f"(({C_NAMES[dtype]}){template})" if short else template, args, dtype)


def operator(sign: str, result=None, swapped: bool = False):
    of_booleans = {"+": "|", "*": "&"}.get(sign, sign)

    def call(self, other):
        x, y = same(other, self) if swapped else same(self, other)
        if sign == "-" and x.dtype == np.bool_:  # NumPy refuses it too
            raise CannotWrite("a difference of booleans")
        template = f"({{}} {of_booleans if x.dtype == np.bool_ else sign} {{}})"
        return ScalarText(template, [x, y], result) if result else arithmetic(template, x, y)

    return call


SIGNS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
for name, sign in (SIGNS | {"lshift": "<<", "rshift": ">>"}).items():
    setattr(ScalarText, f"__{name}__", operator(sign))
    setattr(ScalarText, f"__r{name}__", operator(sign, swapped=True))
for name, sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(ScalarText, f"__{name}__", operator(sign, np.bool_))
ScalarText.__mod__ = lambda self, other: (
    ScalarText("({} % {})", same(self, other), self.dtype)
    if self.dtype.kind == "u"
    else C.remainder(self, other)
)


def same(*values) -> list[ScalarText]:
    """Operands in their common dtype; Python numbers take the dtype of the others."""
    dtype = np.result_type(*[a.dtype if isinstance(a, ScalarText) else a for a in values])
    return [cast(a, dtype) for a in values]


def cast(x, dtype) -> ScalarText:
    return x.astype(dtype) if isinstance(x, ScalarText) else literal(x, dtype)


def inexact(x: ScalarText, y: ScalarText) -> tuple[ScalarText, ScalarText]:
    """The operands of a true division, as floats."""
    return (x, y) if x.dtype.kind == "f" else (x.astype("float64"), y.astype("float64"))


def write_power(x, y) -> ScalarText:
    x, y = same(x, y)
    name = f"pow{SUFFIX[x.dtype]}" if x.dtype.kind == "f" else f"power_{C_NAMES[x.dtype]}"
    return ScalarText(f"{name}({{}}, {{}})", [x, y], x.dtype)


class Literal(ScalarText):
    """A number as an expression."""


def literal(value, dtype) -> Literal:
    """A number as a C literal."""
    return Literal(number(value, np.dtype(dtype)), (), dtype)


# ---- the module ------------------------------------------------------------------------------


PLAIN = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh", "sin": "sin", "cos": "cos",
    "tan": "tan", "sinh": "sinh", "cosh": "cosh", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "expm1": "expm1", "log1p": "log1p", "log2": "log2", "log10": "log10", "erf": "erf",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc",
}  # fmt: skip
"""NumPy's name -> C's, for functions of one real number."""

PAIRED = {"arctan2": "atan2", "hypot": "hypot", "copysign": "copysign"}

HELPED = {"floor_divide": "iuf", "remainder": "iuf", "logaddexp": "f", "gcd": "iu", "lcm": "iu"}
"""The helpers of `translation_unit`, and the kinds of their dtypes."""


FUNCTIONS: dict[str, Callable] = {}
"""Further functions of formulas by NumPy's name; each takes `C` and its arguments."""


class ScalarModule:
    """The object that formulas get in place of the array module."""

    name, inf, nan, pi = "c", math.inf, math.nan, math.pi
    float32, float64, int32, int64, uint64 = map(np.dtype, ["f4", "f8", "i4", "i8", "u8"])

    def __getattr__(self, name: str):
        if name in PLAIN:
            return lambda x: self.real(PLAIN[name], x)
        if name in PAIRED:
            return lambda x, y: self.real(PAIRED[name], *same(x, y))
        if name in HELPED:
            return lambda x, y: self.helper(name, *same(x, y))
        if name in FUNCTIONS:
            return partial(FUNCTIONS[name], self)
        raise CannotWrite(name)

    def real(self, function: str, *args) -> ScalarText:
        x = args[0]
        if x.dtype.kind != "f":
            return self.apply_to_integers(function, *args)
        holes = ", ".join(["{}"] * len(args))
        return ScalarText(f"{function}{SUFFIX[x.dtype]}({holes})", args, x.dtype)

    def apply_to_integers(self, function: str, x, y=None) -> ScalarText:
        """Functions that are exact for integers. Others would depend on the last bit of a float."""
        if function in ("floor", "ceil", "trunc"):
            return x
        if function == "copysign":
            return self.where((x < 0) == (y < 0), x, -x)
        raise CannotWrite(f"{function} of {x.dtype}")

    def helper(self, name: str, *args, dtype=None) -> ScalarText:
        x = args[0]
        if x.dtype.kind not in HELPED.get(name, "f"):
            raise CannotWrite(f"{name} of {x.dtype}")
        holes = ", ".join(["{}"] * len(args))
        return ScalarText(f"{name}_{C_NAMES[x.dtype]}({holes})", args, dtype or x.dtype)

    def where(self, condition, x, y) -> ScalarText:
        x, y = same(x, y)
        text, roots = "({} ? {} : {})", x.dtype.kind == "f" and (x.has_root or y.has_root)
        text = f"choose_{C_NAMES[x.dtype]}({{}}, {{}}, {{}})" if roots else text
        return ScalarText(text, [cast(condition, np.bool_), x, y], x.dtype)

    power = staticmethod(write_power)

    def keep(self, g, condition) -> ScalarText:
        return self.where(condition, g, 0)

    def maximum(self, x, y) -> ScalarText:
        return self.extreme(">", *same(x, y))

    def minimum(self, x, y) -> ScalarText:
        return self.extreme("<", *same(x, y))

    @staticmethod
    def extreme(sign: str, x: ScalarText, y: ScalarText) -> ScalarText:
        """The larger or smaller value; NaN if either is NaN. Of equal ones (0 and -0) it is y."""
        if isinstance(y, Literal) and "NAN" not in y.template:  # if x is NaN, the result is x
            opposite = "<=" if sign == ">" else ">="
            return ScalarText(f"({{0}} {opposite} {{1}} ? {{1}} : {{0}})", [x, y], x.dtype)
        nan = " || {0} != {0}" if x.dtype.kind == "f" else ""
        return ScalarText(f"({{0}} {sign} {{1}}{nan} ? {{0}} : {{1}})", [x, y], x.dtype)

    def abs(self, x) -> ScalarText:
        if x.dtype.kind == "f":
            return ScalarText(f"fabs{SUFFIX[x.dtype]}({{}})", [x], x.dtype)
        return arithmetic("({0} < 0 ? -{0} : {0})", x) if x.dtype.kind == "i" else x

    def sign(self, x) -> ScalarText:
        nan = self.where(x != x, x, 0) if x.dtype.kind == "f" else 0
        return self.where(x > 0, 1, self.where(x < 0, -1, nan) if x.dtype.kind != "u" else 0)

    def logical_or(self, x, y) -> ScalarText:
        return cast(x, np.bool_) | cast(y, np.bool_)

    def logical_not(self, x) -> ScalarText:
        return ~cast(x, np.bool_)


C = ScalarModule()


def formula(op, inputs: list[ScalarText | int | float], attrs: dict, dtype) -> ScalarText:
    """An elementwise operator applied to expressions; `dtype` is that of its result."""
    specs = [Spec((), x.dtype) if isinstance(x, ScalarText) else x for x in inputs]
    inner = wide(op.dtypes(specs, attrs)[0])
    operands = [
        (x if isinstance(x, ScalarText) else literal(x, np.result_type(type(x))))
        if k in op.free
        else cast(x, inner)
        for k, x in enumerate(inputs)
    ]
    y = op.body(C, *operands, **attrs)
    y = (y if isinstance(y, ScalarText) else literal(y, inner)).astype(wide(dtype))
    y.rounded = op.exact and dtype in ROUNDED and all(getattr(x, "rounded", 0) for x in inputs)
    return y if y.rounded else round_to(y, dtype)


def wide(dtype):
    """The dtype in which a value is computed, in registers: half precision is one of memory."""
    return dt.float32.numpy if dtype in dt.HALVES else dtype


WIDENED = {dt.float16.numpy: "widen_half({})", dt.bfloat16.numpy: "widen({})"}
NARROWED = {dt.float16.numpy: "narrow_half({})", dt.bfloat16.numpy: "narrow({})"}
ROUNDED = {dt.float16.numpy: "round_half({0})", dt.bfloat16.numpy: "round_bfloat16({0})"}
CUT = NARROWED | {dt.bfloat16.numpy: "upper_half({})"}
"""How half precision is read from memory and written there, what it is after that, and how it is
written if it was `rounded` before."""


def read(text: str, dtype) -> ScalarText:
    """A value in memory."""
    return ScalarText(WIDENED.get(dtype, "{}").format(text), (), wide(dtype), dtype in ROUNDED)


def round_to(x: ScalarText, dtype) -> ScalarText:
    """A value that is not stored, as it would be read from memory."""
    return ScalarText(ROUNDED[dtype], [x], x.dtype, True) if dtype in ROUNDED else x


def cast_to_memory(x: ScalarText, dtype) -> ScalarText:
    """A value that is assigned to memory of a dtype, which rounds it."""
    return cast(x.args[0] if x.template == ROUNDED.get(dtype) else x, wide(dtype))


# ---- writing it down -------------------------------------------------------------------------


@slot("codegen.statements")
def statements(roots: list[ScalarText], fresh, apart: bool = False) -> tuple[list[str], list[str]]:
    """C statements, and after them an expression for each root.

    A value that is used twice, or is long, gets a name (`fresh()` returns a new one) in a statement
    of its own. With `apart` every value that is computed or read for a root has a name, so that all
    reads precede the first store of a root.
    """
    uses, lines, known = count_uses(roots, 2 if apart else 1), [], {}

    def text(x: ScalarText) -> str:
        if id(x) in known:
            return known[id(x)]
        value = x.template.format(*map(text, x.args)) if x.args else x.template
        if (uses[id(x)] > 1 or len(value) > LONG) and (x.args or (apart and "[" in value)):
            name = fresh()
            lines.append(f"const {C_NAMES[x.dtype]} {name} = {bare(value)};")
            value = name
        known[id(x)] = value
        return value

    return lines, [text(x) for x in roots]


def count_uses(roots: list[ScalarText], most: int) -> dict[int, int]:
    """How many times each value is used, by its id; a root counts as `most` uses."""
    uses: dict[int, int] = {}
    todo = roots * most
    while todo:
        x = todo.pop()
        uses[id(x)] = uses.get(id(x), 0) + 1
        if uses[id(x)] == 1:
            for k, a in enumerate(x.args):
                todo += [a] * max(x.template.count(f"{{{k}}}"), 1)
    return uses


def bare(text: str) -> str:
    """An expression without the parentheses around it."""
    return text[1:-1] if text[0] == "(" and is_enclosed(text) else text


def is_enclosed(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return k == len(text) - 1
    return False
