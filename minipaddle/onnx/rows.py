"""Operators that ONNX has, too: a row names both, and how each attribute of ONNX says one of ours.

`row("LeakyRelu", "leaky_relu", alpha="negative_slope")` gives the form of `leaky_relu` and the
function of LeakyRelu. A field renames an attribute, or says how its value is written and read back:
a flag is 0 or 1, an axis may be counted from the end. Which fields are inputs of a node, as `axes`
from opset 13 on, and what holds where a node says nothing, the schemas of the library know for each
opset.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy

from ..core.prelude import OPS, normalize_axis
from .graph import defaults, inputs_of
from .table import (
    FORMS,
    FUNCTIONS,
    OnnxNode,
    UnreadableNode,
    apply,
    as_known,
    pair,
    size,
    sizes,
    tensor,
)


class Field(NamedTuple):
    """An attribute of ours as one of ONNX: `write(value)`, and `read(value, x)` for the input x."""

    name: str
    write: Callable = lambda value: value
    read: Callable = lambda value, x: value


class OnnxRow(NamedTuple):
    """An operator of ONNX and one of ours; `fixed` are attributes of ONNX that tell it from others.

    An elementwise operator is written so where it computes with `dtypes` (a dtype or its kind).
    """

    kind: str
    op: str
    fields: dict[str, Field]
    fixed: dict
    dtypes: str

    def write(self, g, *inputs, **attrs):
        """The node of a record."""
        said = {k: f.write(attrs[f.name]) for k, f in self.fields.items()} | self.fixed
        more = [said.pop(k) for k in inputs_of(self.kind) if k in said]
        return g(self.kind, *inputs, *more, **said)

    def read(self, node: OnnxNode, inputs, attrs: dict):
        """The record of a node."""
        names, usual = inputs_of(node.kind, node.opset), defaults(node.kind, node.opset)
        named = [(names[min(k, len(names) - 1)], x) for k, x in enumerate(inputs)]
        said = usual | attrs | {name: x for name, x in named if name in self.fields}
        xs = [x for name, x in named if name not in self.fields]
        two = len(xs) == 2 and OPS[self.op].kind == "elementwise"
        xs = pair(*xs) if two else [*map(tensor, xs)]
        for name in attrs.keys() - self.fields.keys() - self.fixed.keys():
            if attrs[name] != usual.get(name):
                raise UnreadableNode(f"its {name} is {attrs[name]}")
        own = {f.name: f.read(said.get(k), xs[0]) for k, f in self.fields.items()}
        return apply(self.op, *xs, **own)


ROWS: list[OnnxRow] = []
WRITTEN: dict[str, OnnxRow] = {}
"""An operator's name -> its row."""


def row(kind: str, op: str, dtypes: str = "f", fixed: dict | None = None, **fields) -> None:
    """Add a row: the attributes (or inputs) of ONNX are `fields`, each by the name of ours."""
    fields = {k: Field(f, float) if isinstance(f, str) else f for k, f in fields.items()}
    entry = WRITTEN[op] = OnnxRow(kind, op, fields, fixed or {}, dtypes)
    ROWS.append(entry)
    FUNCTIONS[kind] = apply_row
    if OPS[op].kind != "elementwise":
        FORMS[op] = entry.write


def apply_row(*inputs, node: OnnxNode, **attrs):
    """The record of a node, by the row of its operator and its fixed attributes."""
    said = defaults(node.kind, node.opset) | attrs
    rows = (r for r in ROWS if r.kind == node.kind)
    return next(r for r in rows if r.fixed.items() <= said.items()).read(node, inputs, attrs)


# ---- fields ------------------------------------------------------------------------------------


def flag(name: str) -> Field:
    return Field(name, int, lambda value, x: bool(value))


def axis(name: str) -> Field:
    return Field(name, numpy.int64, lambda d, x: normalize_axis(size(d), x.spec.ndim))


def axes(name: str) -> Field:
    """Some axes; all, if there are none."""
    return Field(name, tuple, lambda ds, x: axes_of(ds, x.spec.ndim) or tuple(range(x.spec.ndim)))


def axes_of(ds, ndim: int) -> tuple[int, ...]:
    """Axes, which must be known, from the front and in order."""
    return (
        () if ds is None else tuple(sorted(normalize_axis(d, ndim) for d in as_known(ds, "axes")))
    )


def whole(name: str) -> Field:
    """A whole number that is an input; 0 if it is left out."""
    return Field(name, numpy.int64, lambda n, x: 0 if n is None else size(n))


def vector(name: str) -> Field:
    """Sizes."""
    return Field(name, tuple, lambda ns, x: tuple(sizes(ns)))


# ---- rows --------------------------------------------------------------------------------------

PLAIN = """Relu Sigmoid Tanh Exp Log Sqrt Reciprocal Neg Abs Floor Ceil Sin Cos Tan Asin Acos Atan
    Sinh Cosh Asinh Acosh Atanh Erf Softsign IsNaN"""
"""Elementwise operators of one float, under one name here and there."""
for _kind in PLAIN.split():
    row(_kind, _kind.lower())
row("Not", "logical_not", "b")

row("HardSwish", "hardswish", "float32")
row("Mish", "mish", "float32")
row("LeakyRelu", "leaky_relu", "float32", alpha="negative_slope")
row("Elu", "elu", "float32", alpha="alpha")
row("Celu", "celu", "float32", alpha="alpha")
row("Selu", "selu", "float32", alpha="alpha", gamma="scale")
row("HardSigmoid", "hardsigmoid", "float32", alpha="slope", beta="offset")
row("Gelu", "gelu", "float32", approximate=Field(
    "approximate", lambda how: "tanh" if how in (True, "tanh") else "none"))  # fmt: skip

READ = {
    "Sign": "sign", "Round": "round", "BitwiseNot": "bitwise_not",
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Equal": "equal", "Less": "less_than",
    "LessOrEqual": "less_equal", "Greater": "greater_than", "GreaterOrEqual": "greater_equal",
    "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
}  # fmt: skip
"""ONNX's operators that `formulas` writes for operations of Python."""
for _kind, _op in READ.items():
    row(_kind, _op, dtypes="")
row("BitShift", "bitwise_left_shift", "", {"direction": "LEFT"})
row("BitShift", "bitwise_right_shift", "", {"direction": "RIGHT"})
row("ThresholdedRelu", "thresholded_relu", "", alpha="threshold")

row("MatMul", "matmul")
row("Det", "det")
row("Softmax", "softmax", axis=axis("axis"))
row("LogSoftmax", "log_softmax", axis=axis("axis"))
row("CumSum", "cumsum", axis=axis("axis"), reverse=flag("reverse"))
for _kind, _op in {"Sum": "sum", "Mean": "mean", "Max": "max", "Min": "min", "Prod": "prod",
                   "LogSumExp": "logsumexp"}.items():  # fmt: skip
    row(f"Reduce{_kind}", _op, axes=axes("axis"), keepdims=flag("keepdim"))
row("Transpose", "transpose", perm=Field(
    "perm", tuple, lambda perm, x: tuple(perm or range(x.spec.ndim)[::-1])))  # fmt: skip
row("Concat", "concat", axis=axis("axis"))
row("Tile", "tile", repeats=vector("repeats"))
row("Trilu", "tril", fixed={"upper": 0}, k=whole("diagonal"))
row("Trilu", "triu", fixed={"upper": 1}, k=whole("diagonal"))
