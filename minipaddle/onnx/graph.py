"""An ONNX graph while it is written: nodes, constants, and sizes that a run knows.

A rule calls the graph as a function: `g("Conv", x, w, group=2)` adds a node and gives its result.
Numbers, tuples of sizes and NumPy arrays among the inputs become constants (or, where a size is
open, nodes that compute it). Constants of a subgraph stand in the outermost graph.
"""

from __future__ import annotations

from functools import cache

import numpy

from ..engine.core import dtype as dt
from ..engine.core.dim import Dim, bounds
from ..engine.core.errors import not_supported
from ..engine.core.record import Record
from ..engine.core.symbols import Composite, terms_of
from ..engine.ir.program import new_sizes
from .origin import layer_path, short_line

INT64 = dt.int64.numpy


def library():
    """The package `onnx`, which is an extra."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("paddle.onnx needs a package: pip install 'minipaddle[onnx]'") from error
    return onnx


SMALLEST = 18
"""The opset that the forms are written for. A graph that uses younger operators needs theirs."""


@cache
def schema(kind: str, opset: int):
    """The schema of an operator in an opset, or in the first one that has it."""
    defs = library().defs
    if defs.has(kind, max_inclusive_version=opset):
        return defs.get_schema(kind, max_inclusive_version=opset)
    return defs.get_schema(kind)


@cache
def inputs_of(kind: str, opset: int = SMALLEST) -> list[str]:
    """The names of the inputs."""
    return [x.name for x in schema(kind, opset).inputs]


@cache
def defaults(kind: str, opset: int) -> dict:
    """The attributes that have a value where a node says nothing."""
    attributes = schema(kind, opset).attributes.items()
    return {k: value_of(a.default_value) for k, a in attributes if a.default_value.name}


def value_of(attribute):
    """The value of an attribute; strings as text."""
    value = library().helper.get_attribute_value(attribute)
    decoded = lambda v: v.decode(errors="replace") if isinstance(v, bytes) else v
    return [*map(decoded, value)] if isinstance(value, list) else decoded(value)


class NoForm(Exception):
    """An operator, or these attributes of it, cannot be written in ONNX; the text says why."""


class OnnxValue:
    """A result in the graph: its name, dtype, and the shape if it is known."""

    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, graph: OnnxGraph, name: str, dtype, shape=None):
        self.graph, self.name, self.dtype, self.shape = graph, name, numpy.dtype(dtype), shape
        self.record: Record | None = None  # whose value it is

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def astype(self, dtype, copy=True) -> OnnxValue:
        """The value cast; itself if it has the dtype."""
        dtype = numpy.dtype(dtype)
        if dtype == self.dtype:
            return self
        to = library().helper.np_dtype_to_tensor_dtype(dtype)
        return self.graph("Cast", self, to=to, dtype=dtype, shape=self.shape)


class Main:
    """The state that a graph and its subgraphs share."""

    def __init__(self):
        self.taken: set[str] = set()
        self.count: dict[str, int] = {}
        self.constants: dict[tuple, OnnxValue] = {}
        self.initializers: list = []

    def name(self, kind: str) -> str:
        """A name that no other value has."""
        name, n = kind, self.count.get(kind, 0)
        while name in self.taken:
            n += 1
            name = f"{kind}_{n}"
        self.count[kind] = n
        self.taken.add(name)
        return name


class OnnxGraph:
    """Nodes in the order of their computation. `values` maps the program's records to values."""

    def __init__(self, outer: OnnxGraph | None = None):
        self.main = outer.main if outer else Main()
        self.nodes: list = []
        self.values: dict[Record, object] = dict(outer.values) if outer else {}
        self.places: dict[str, tuple] = dict(outer.places) if outer else {}  # size -> value, axis
        self.sizes: dict[str, OnnxValue] = dict(outer.sizes) if outer else {}
        self.record: Record | None = outer.record if outer else None  # which is being written

    # ---- values ------------------------------------------------------------------------------

    def put(self, record: Record, value) -> None:
        """`value` (of several results: a tuple) represents a record; new sizes are read from it."""
        self.values[record] = value
        if isinstance(value, OnnxValue):
            value.shape, value.record = record.shape, record
            for axis, name in new_sizes(record.spec, set(self.places)):
                self.places[name] = value, axis

    def add_input(self, name: str, record: Record) -> OnnxValue:
        """An input of the graph."""
        value = OnnxValue(self, name, record.dtype, record.shape)
        self.put(record, value)
        return value

    def constant(self, array, name: str = "") -> OnnxValue:
        """An initializer; equal small arrays are one."""
        array = numpy.ascontiguousarray(array).reshape(numpy.shape(array))
        key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes())
        if not name and key in self.main.constants and array.size <= 64:
            first = self.main.constants[key]
            return OnnxValue(self, first.name, first.dtype, first.shape)
        value = OnnxValue(self, name or self.main.name("constant"), array.dtype, array.shape)
        self.main.initializers.append(as_proto(array, value.name))
        if not name:
            self.main.constants[key] = value
        return value

    # ---- nodes -------------------------------------------------------------------------------

    def __call__(self, kind: str, *inputs, results: int = 1, dtype=None, shape=None, **attrs):
        """The result (a tuple of `results`) of a new node.

        Its dtype is that of the first input unless `dtype` says otherwise; numbers take it too.
        """
        first = next((x.dtype for x in inputs if isinstance(x, OnnxValue)), None)
        names = ["" if x is None else self.value(x, first).name for x in inputs]
        attrs = {k: v for k, v in attrs.items() if v is not None}
        dtype, outputs = dtype or first, [self.main.name(kind.lower()) for _ in range(results)]
        node = library().helper.make_node(kind, names, outputs, **self.origin(outputs[0]), **attrs)
        self.nodes.append(node)
        values = tuple(OnnxValue(self, name, dtype, shape) for name in outputs)
        return values[0] if results == 1 else values

    def origin(self, name: str) -> dict:
        """The name of a node, in the layer whose record is being written, and the user's line."""
        if self.record is None:
            return {"name": name}
        layers = layer_path(self.record)
        return {
            "name": f"{layers}/{name}" if layers else name,
            "doc_string": short_line(self.record) or None,
        }

    def value(self, x, dtype=None) -> OnnxValue:
        """Anything that may be an input of a node as a value."""
        if isinstance(x, OnnxValue):
            return x
        if isinstance(x, tuple | list):
            return self.size_vector(x)
        if isinstance(x, Dim):
            return self("Squeeze", self.size(x), (0,), shape=()).astype(dtype or INT64)
        if isinstance(x, numpy.ndarray | numpy.generic):
            return self.constant(x)
        return self.constant(numpy.array(x, dtype))

    # ---- sizes -------------------------------------------------------------------------------

    def size_vector(self, sizes) -> OnnxValue:
        """Sizes as one vector of int64."""
        if all(not isinstance(n, Dim) for n in sizes):
            return self.constant(numpy.array(sizes, INT64))
        parts = [self.size(n) for n in sizes]
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=0)

    def size(self, n) -> OnnxValue:
        """A size as a vector of one int64."""
        if not isinstance(n, Dim):
            return self.constant(numpy.array([n], INT64))
        if n.text not in self.sizes:
            self.sizes[n.text] = self.sum_of(n)
        return self.sizes[n.text]

    def sum_of(self, n: Dim) -> OnnxValue:
        """The value of a polynomial of sizes."""
        total = None
        for monomial, factor in terms_of(n).items():
            parts = [self.atom(a) for a in monomial]
            parts += [self.size(factor)] if factor != 1 or not parts else []
            term = parts[0]
            for part in parts[1:]:
                term = self("Mul", term, part)
            total = term if total is None else self("Add", total, term)
        return total

    def atom(self, a) -> OnnxValue:
        """The value of a symbol: the axis that shows it, or a quotient and the like."""
        if type(a) is not Composite:
            if a not in self.places:
                raise NoForm(f"the size {a} is used before a value shows it")
            value, axis = self.places[a]
            return self("Shape", value, start=axis, end=axis + 1, dtype=INT64)
        over, under = self.size(a.over), self.size(a.under)
        if a.sign in ("max", "min"):
            return self(a.sign.title(), over, under)
        rest = self("Mod", over, under)
        if a.sign == "%":
            return rest
        low, _ = bounds(a.over)
        if low is None or low < 0:  # ONNX divides towards 0
            over = self("Sub", over, rest)
        return self("Div", over, under)


def as_proto(array, name: str):
    """A NumPy array as a tensor of ONNX."""
    return library().numpy_helper.from_array(array, name)


def refusal(record: Record, why: str) -> Exception:
    """The error that names an operator without ONNX form and the user's line."""
    specs = ", ".join(str(r.spec) for r in record.inputs if r.dtype is not None)
    return not_supported(
        f"paddle.onnx.export: {record.op.name}({specs}) has no ONNX form: {why}",
        expected="operators of ONNX; `minipaddle.onnx.forms()` lists those that have one",
        where=record.where or "a line that is not known",
        hint="write this part with other operators, or leave it out of the exported layer",
    )
