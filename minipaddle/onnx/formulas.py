"""Elementwise operators as ONNX: their own formulas, run on values of a graph instead of arrays.

The same trick writes C (`engine/codegen/scalar.py`): a formula gets `Scalar`s in place of arrays
and `OnnxModule` in place of the array module, and each operation leaves a node. So an elementwise
operator needs no entry in a table; those with a row are an ONNX operator of their own, which
reads better.
"""

from __future__ import annotations

import math

import numpy

from ..codegen.functions.formulas import nan_to_num, sinc
from ..engine.core import dtype as dt
from ..engine.core.record import Spec
from .graph import NoForm, OnnxGraph, OnnxValue
from .rows import WRITTEN

BOOL, FLOAT, INT32 = dt.bool_.numpy, dt.float32.numpy, dt.int32.numpy
NARROW = {"int8", "uint8", "int16"}
"""Runtimes do not compute with these: 32 bits do, and a cast cuts off the upper ones."""


class Scalar(OnnxValue):
    """A value with the operators of Python."""

    size = 1

    def astype(self, dtype, copy=True) -> Scalar:
        return scalar(super().astype(dtype))

    def __neg__(self):
        return node("Neg", self)

    def __invert__(self):
        return node("Not" if self.dtype == BOOL else "BitwiseNot", self)

    def __pow__(self, other):
        power = other if isinstance(other, int | float) else None
        if power in (2, 3):
            return self * self if power == 2 else self * self * self
        return node("Sqrt", self) if power == 0.5 else node("Pow", *same(self, other))

    def __rpow__(self, other):
        return node("Pow", *same(other, self))

    def __truediv__(self, other):
        return node("Div", *map(inexact, same(self, other)))

    def __rtruediv__(self, other):
        return node("Div", *map(inexact, same(other, self)))

    def __ne__(self, other):
        return ~(self == other)

    def __lshift__(self, other):
        return self * node("Pow", *same(2, other))

    def __rshift__(self, other):
        x, y = same(self, other)
        return MODULE.floor_divide(x, node("Pow", *same(2, y)))

    def __mod__(self, other):
        return MODULE.remainder(self, other)

    def reshape(self, *shape):
        raise NoForm("its formula asks for a shape")


def operator(kind: str, of_booleans: str = "", result=None, swapped: bool = False):
    def call(self, other):
        x, y = same(other, self) if swapped else same(self, other)
        return node(of_booleans if of_booleans and x.dtype == BOOL else kind, x, y, dtype=result)

    return call


ARITHMETIC = {
    "add": ("Add", "Or"), "sub": ("Sub",), "mul": ("Mul", "And"),
    "and": ("BitwiseAnd", "And"), "or": ("BitwiseOr", "Or"), "xor": ("BitwiseXor", "Xor"),
}  # fmt: skip
COMPARISONS = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
               "eq": "Equal"}  # fmt: skip
for _name, _kinds in ARITHMETIC.items():
    setattr(Scalar, f"__{_name}__", operator(*_kinds))
    setattr(Scalar, f"__r{_name}__", operator(*_kinds, swapped=True))
for _name, _kind in COMPARISONS.items():
    setattr(Scalar, f"__{_name}__", operator(_kind, result=BOOL))


def scalar(x: OnnxValue) -> Scalar:
    """A value that formulas can compute with."""
    return Scalar(x.graph, x.name, x.dtype, x.shape)


def node(kind: str, *inputs, dtype=None) -> Scalar:
    x = inputs[0]
    return scalar(x.graph(kind, *inputs, dtype=dtype))


def same(*values) -> list[Scalar]:
    """Operands in their common dtype; Python numbers take the others' dtype."""
    graph = next(x.graph for x in values if isinstance(x, OnnxValue))
    dtype = numpy.result_type(*(x.dtype if isinstance(x, OnnxValue) else x for x in values))
    return [cast(graph, x, dtype) for x in values]


def cast(graph: OnnxGraph, x, dtype) -> Scalar:
    if isinstance(x, OnnxValue):
        return scalar(x).astype(dtype)
    x = x if numpy.dtype(dtype).kind == "f" or not isinstance(x, float) or math.isfinite(x) else 0
    return scalar(graph.constant(numpy.array(x, dtype)))


def inexact(x: Scalar) -> Scalar:
    return x if x.dtype.kind == "f" else x.astype(numpy.float64)


# ---- the module ------------------------------------------------------------------------------


class OnnxModule:
    """The object that formulas get in place of the array module."""

    name = "onnx"
    inf, nan, pi = math.inf, math.nan, math.pi
    float32, float64 = FLOAT, numpy.dtype("float64")
    int32, int64 = INT32, numpy.dtype("int64")
    sinc = lambda self, x: sinc(self, x)
    nan_to_num = lambda self, x, **ends: nan_to_num(self, x, **ends)

    def __getattr__(self, name: str):
        if name.startswith("__"):  # Python's own tools ask for these
            raise AttributeError(name)
        row = WRITTEN.get(name.replace("arc", "a"))
        if row is None:
            raise NoForm(f"ONNX has no {name}")
        rounds = name in ("floor", "ceil")
        return lambda x: x if rounds and x.dtype.kind != "f" else node(row.kind, x)

    def where(self, condition, x, y) -> Scalar:
        if not isinstance(x, OnnxValue) and not isinstance(y, OnnxValue):
            dtype = numpy.result_type(x, y)
            x, y = (cast(condition.graph, v, dtype) for v in (x, y))
        x, y = same(x, y)
        return scalar(x.graph("Where", condition.astype(BOOL), x, y, dtype=x.dtype))

    def keep(self, g, condition) -> Scalar:
        return self.where(condition, g, 0)

    def maximum(self, x, y) -> Scalar:
        x, y = same(x, y)
        return x | y if x.dtype == BOOL else node("Max", x, y)

    def minimum(self, x, y) -> Scalar:
        x, y = same(x, y)
        return x & y if x.dtype == BOOL else node("Min", x, y)

    def abs(self, x) -> Scalar:
        return x if x.dtype.kind in "bu" else node("Abs", x)

    def sign(self, x) -> Scalar:
        y = node("Sign", x)
        return self.where(x != x, x, y) if x.dtype.kind == "f" else y

    def square(self, x) -> Scalar:
        return x * x

    def trunc(self, x) -> Scalar:
        return x if x.dtype.kind != "f" else self.copysign(self.floor(self.abs(x)), x)

    def round(self, x, decimals=0) -> Scalar:
        tens = 10.0 ** abs(decimals)
        if x.dtype.kind != "f":
            return x if decimals >= 0 else self.round(x / tens) * tens
        if decimals > 0:
            return self.round(x * tens) / tens
        return self.round(x / tens) * tens if decimals else node("Round", x)

    def signbit(self, x) -> Scalar:
        return (x < 0) | (1 / x < 0) if x.dtype.kind == "f" else x < 0

    def copysign(self, x, y) -> Scalar:
        x, y = same(x, y)
        size = self.abs(x)
        return self.where(self.signbit(y), -size, size)

    def floor_divide(self, x, y) -> Scalar:
        x, y = same(x, y)
        if x.dtype.kind == "f":
            return self.floor(x / y)
        safe = self.where(y == 0, 1, y)
        quotient = node("Div", x - node("Mod", x, safe), safe)
        return self.where(y == 0, 0, quotient)

    def remainder(self, x, y) -> Scalar:
        x, y = same(x, y)
        if x.dtype.kind != "f":
            safe = self.where(y == 0, 1, y)
            return self.where(y == 0, 0, node("Mod", x, safe))
        rest = scalar(x.graph("Mod", x, y, fmod=1))
        turned = (rest != 0) & ((rest < 0) ^ (y < 0))
        return self.where(turned, rest + y, rest)

    def expm1(self, x) -> Scalar:
        return self.tanh(x * 0.5) * (self.exp(x) + 1)  # exact near 0, too

    def log1p(self, x) -> Scalar:
        u = x + 1  # Kahan: the rounding of 1 + x cancels
        slope = self.log(u) * (x / self.where(u == 1, 1, u - 1))
        return self.where((u == 1) | (u == math.inf), x, slope)

    def log2(self, x) -> Scalar:
        return self.log(x) * (1 / math.log(2))

    def log10(self, x) -> Scalar:
        return self.log(x) * (1 / math.log(10))

    def logaddexp(self, x, y) -> Scalar:
        x, y = same(x, y)
        top = self.maximum(x, y)
        near = self.where(x == y, 0, -self.abs(x - y))
        return top + self.log1p(self.exp(near))

    def hypot(self, x, y) -> Scalar:
        a, b = map(self.abs, same(x, y))
        top = self.maximum(a, b)
        safe = self.where((top == 0) | (top == math.inf), 1, top)
        return self.where(top == math.inf, top, safe * self.sqrt((a / safe) ** 2 + (b / safe) ** 2)
                          * self.where(top == 0, 0, 1))  # fmt: skip

    def arctan2(self, y, x) -> Scalar:
        y, x = same(y, x)
        half = self.copysign(self.where(y == y, math.pi, y), y)
        angle = self.arctan(y / self.where(x == 0, 1, x))
        turned = self.where(self.signbit(x), angle + half, angle)
        axis = self.where(y == 0, self.where(self.signbit(x), half, y), half * 0.5)
        return self.where(x == 0, axis, turned)

    def power(self, x, y) -> Scalar:
        return x**y

    def logical_and(self, x, y) -> Scalar:
        return self.true(x, y) & self.true(y, x)

    def logical_or(self, x, y) -> Scalar:
        return self.true(x, y) | self.true(y, x)

    def logical_xor(self, x, y) -> Scalar:
        return self.true(x, y) ^ self.true(y, x)

    def logical_not(self, x) -> Scalar:
        return ~self.true(x, x)

    def true(self, x, beside) -> Scalar:
        return cast(beside.graph if isinstance(beside, OnnxValue) else x.graph, x, BOOL)

    def asarray(self, x, dtype=None):
        return x if dtype is None else x.astype(dtype)


MODULE = OnnxModule()

# ---- operators --------------------------------------------------------------------------------


def limits(g: OnnxGraph, x, low, high) -> OnnxValue:
    """x between two numbers; one may be None."""
    ends = [None if v is None else g.constant(numpy.array(v, x.dtype)) for v in (low, high)]
    return g("Clip", x, *ends)


CLIPS = {
    "relu6": lambda g, x: limits(g, x, 0, 6),
    "hardtanh": lambda g, x, min, max: limits(g, x, min, max),
}
"""Operators of one float32 that are a Clip."""


def spec_like(x):
    """The answer to `Elementwise.dtypes` for an operand."""
    return Spec(x.shape or (), x.dtype) if isinstance(x, OnnxValue) else x


def elementwise(g: OnnxGraph, record, inputs) -> OnnxValue:
    """The value of an elementwise operator, by its ONNX operator or by its formula."""
    op, attrs = record.op, record.attrs
    inner, result = op.dtypes([spec_like(x) for x in inputs], attrs)
    inner = INT32 if inner.name in NARROW else inner
    operands = [
        x if k in op.free and isinstance(x, OnnxValue) else cast(g, x, inner)
        for k, x in enumerate(inputs)
    ]
    operands = [scalar(x) if isinstance(x, OnnxValue) else x for x in operands]
    row = WRITTEN.get(op.name)
    if row and row.dtypes in (inner.kind, inner.name):
        y = row.write(g, operands[0], **attrs)
        y.dtype = result if op.result == "bool" else inner
    elif op.name in CLIPS and inner == FLOAT:
        y = CLIPS[op.name](g, operands[0], **attrs)
    else:
        y = op.body(MODULE, *operands, **attrs)
        y = y if isinstance(y, OnnxValue) else g("Expand", cast(g, y, inner), record.shape)
    return y.astype(result)
