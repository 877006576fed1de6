"""Formulas and derivative rules run on symbols instead of numbers, to be drawn and printed.

`Symbolic` is an interpreter: applying an operator makes a record and computes nothing. A formula's
`m` becomes a `SymbolModule`, where `m.exp(x)` is a record too. What asks for a number (a branch,
a loop over an attribute) raises `NotSymbolicError`.
"""

import ast
import numbers

from ..engine.core.dispatch import OUT, Interpreter, interpreter
from ..engine.core.op import OPS
from ..engine.core.record import Record, Spec
from ..engine.ops.var import Var


class NotSymbolicError(TypeError):
    """Something asked a symbol for its value."""


def refuse(self, *_):
    raise NotSymbolicError(f"{self!r} has no value")


class Attr:
    """An attribute by name; every use but handing it on is refused."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    __hash__ = object.__hash__
    __bool__ = __eq__ = __lt__ = __gt__ = __iter__ = __len__ = __index__ = refuse


class NamedShape(tuple):
    """A shape that knows its name: `x.shape`."""

    def __new__(cls, label: str, shape):
        named = super().__new__(cls, shape)
        named.label = label
        return named

    def __repr__(self) -> str:
        return self.label


class Name:
    """The `op` of a record of something that is no operator: a value, a function of m."""

    variadic = True

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind


OWN = {
    "record", "spec", "array", "shape", "dtype", "ndim", "size", "T", "astype", "sum_to",
    "stop_gradient",
}  # fmt: skip
"""The public attributes of a symbol."""


class NamedSymbol(Var):
    """A value that is only known by how it came about (its record)."""

    def __init__(self, record):
        self.record = record

    @property
    def spec(self):
        return self.record.spec

    array = property(lambda self: self)
    shape = property(lambda self: self.record.shape)
    dtype = property(lambda self: self.record.dtype)
    size = property(lambda self: self.record.spec.size)
    T = property(lambda self: call(".T", [self], {}))

    def __getitem__(self, index):
        return call("index", [self, index], {})

    def __getattribute__(self, name: str):
        """Record a method of the array by its name, even where one is registered with Var."""
        if name.startswith("_") or name in OWN:
            return object.__getattribute__(self, name)
        return lambda *args, **kwargs: call(f".{name}", [self, *args], kwargs)

    def __repr__(self) -> str:
        return self.record.op.name

    __hash__ = object.__hash__
    __bool__ = __iter__ = __len__ = __index__ = __float__ = refuse


def leaf(name: str, spec: Spec, kind: str = "input") -> NamedSymbol:
    """A symbol called `name`."""
    shape = NamedShape(f"{name}.shape", spec.shape)
    return NamedSymbol(Record(Name(name, kind), [], {}, shape, spec.dtype))


def call(name: str, args, kwargs) -> NamedSymbol:
    """The record of a call of a function of `m`, or of a method (`.name`)."""
    like = next((a for a in args if isinstance(a, NamedSymbol)), None)
    if like is None:
        raise NotSymbolicError(f"{name} of no symbol")
    inputs = [edge(a) for a in args]
    return NamedSymbol(Record(Name(name, kind_of(name)), inputs, kwargs, like.shape, like.dtype))


def kind_of(name: str) -> str:
    """The kind of the operator of that name; of other functions of the array module, a guess."""
    name = name.lstrip(".")
    if name in OPS:
        return OPS[name].kind
    return "movement" if name in ("index", "concatenate", "T") else "elementwise"


def edge(value):
    """The input of a record for an argument: a symbol's record, or the constant itself."""
    return value.record if isinstance(value, NamedSymbol) else value


class SymbolModule:
    """The array module of a formula: every function of it is a record."""

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: call(name, args, kwargs)


class Symbolic(Interpreter):
    """Applying an operator makes a record. `strict`: shapes must fit (a formula's are unknown)."""

    recording = False

    def __init__(self, leaves: dict, strict: bool):
        self.leaves, self.strict = leaves, strict

    def apply(self, op, inputs, attrs):
        known = all(isinstance(x, NamedSymbol | numbers.Number) for x in inputs)
        if not known:
            raise NotSymbolicError(f"{op.name} of {inputs!r}")
        record = Record(op, [edge(x) for x in inputs], attrs, *self.spec(op, inputs, attrs))
        if record.dtype is not None:
            return NamedSymbol(record)
        return tuple(part(record, k, spec) for k, spec in enumerate(record.shape))

    def spec(self, op, inputs, attrs):
        try:
            result = op.result_spec([getattr(x, "spec", x) for x in inputs], attrs)
        except Exception:
            if self.strict:
                raise
            result = next(x.spec for x in inputs if isinstance(x, NamedSymbol))
        return result if isinstance(result, Spec) else (result, None)

    def read(self, record, k):
        return self.leaves[k]

    def full(self, spec, value, like):
        return leaf(repr(value), spec)

    def constant(self, data, dtype=None, place=None):
        raise NotSymbolicError("a rule that makes constants of arrays")


def part(record, k: int, spec) -> NamedSymbol:
    """Result number `k` of a record that has several."""
    return NamedSymbol(Record(Name("index", "movement"), [record, k], {}, *spec))


def formula(op, specs, _, given):
    """The record(s) of an operator's body on symbols, with the attributes `given`."""
    leaves = map(leaf, names(op, len(specs)), specs)
    with interpreter(Symbolic({}, strict=False)):
        return edges(op.body(SymbolModule(), *leaves, **given))


def derivative(op, k: int, specs, attrs, given):
    """The record(s) of a rule: for the input in place `k`, on symbols; `given` are the attributes
    it sees, `attrs` those that shapes are computed with.
    """
    leaves = dict(enumerate(map(leaf, names(op, len(specs)), specs)))
    result = op.result_spec(list(specs), attrs)
    several = not isinstance(result, Spec)
    g = leaf("g", specs[0] if several else result, "gradient")
    parts = [leaf(f"g[{j}]", s, "gradient") for j, s in enumerate(result)] if several else g
    leaves[OUT] = leaf("out", specs[0] if several else result, "output")
    shape, dtype = (result, None) if several else result
    record = Record(op, [leaves[j].record for j in range(len(specs))], given, shape, dtype)
    with interpreter(Symbolic(leaves, strict=True)):
        return edges(op.rule(k)(record, parts, k))


def names(op, n: int) -> list[str]:
    """The names of `n` inputs."""
    return [f"{op.inputs[0]}[{k}]" for k in range(n)] if op.variadic else op.inputs[:n]


def edges(result):
    """Records of a result, which may be a tuple, a list or a dict of symbols."""
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, list | tuple):
        return tuple(map(edges, result))
    if not isinstance(result, NamedSymbol):
        raise NotSymbolicError(f"the result is {result!r}")
    return result.record


# ---- as text ---------------------------------------------------------------------------------

INFIX = {
    "equal": ast.Eq, "not_equal": ast.NotEq, "less_than": ast.Lt, "less_equal": ast.LtE,
    "greater_than": ast.Gt, "greater_equal": ast.GtE, "bitwise_or": ast.BitOr,
    "bitwise_xor": ast.BitXor, "bitwise_and": ast.BitAnd, "bitwise_left_shift": ast.LShift,
    "bitwise_right_shift": ast.RShift, "add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult,
    "divide": ast.Div, "floor_divide": ast.FloorDiv, "remainder": ast.Mod, "matmul": ast.MatMult,
    "pow": ast.Pow,
}  # fmt: skip
"""Operators that Python writes between their inputs."""
PREFIX = {"neg": ast.USub, "bitwise_not": ast.Invert}


def size(found) -> int:
    """How many operators and values the text of a record names: shared parts count each time."""
    known = {}

    def parts(record) -> int:
        if not isinstance(record, Record):
            return 1
        if id(record) not in known:
            known[id(record)] = 1 + sum(map(parts, record.inputs))
        return known[id(record)]

    return sum(map(parts, found)) if isinstance(found, tuple) else parts(found)


def text(record) -> str:
    """A record as Python would write it, with only the brackets that are needed."""
    if isinstance(record, tuple) and record and all(isinstance(r, Record) for r in record):
        return ", ".join(map(text, record))
    return ast.unparse(expression(record)).replace(" ** ", "**")


def expression(record) -> ast.expr:
    """A record as Python's syntax; constants are names whose text is the constant's."""
    if not isinstance(record, Record):
        return ast.Name(constant_text(record))
    name, attrs = record.op.name, record.attrs
    if not record.inputs and record.op.kind in ("input", "gradient", "output"):
        return ast.Name(name)
    if name == "index":
        return ast.Subscript(expression(record.inputs[0]), ast.Name(index_text(record.inputs[1])))
    inputs = [expression(x) for x in record.inputs]
    if name in PREFIX and len(inputs) == 1:
        return ast.UnaryOp(PREFIX[name](), inputs[0])
    if name in INFIX and len(inputs) == 2 and attrs in ({}, getattr(record.op, "defaults", {})):
        (left, right), sign = inputs, INFIX[name]()
        compares = isinstance(sign, ast.cmpop)
        return ast.Compare(left, [sign], [right]) if compares else ast.BinOp(left, sign, right)
    keywords = [ast.keyword(k, ast.Name(constant_text(v))) for k, v in attrs.items()]
    if name == ".T":
        return ast.Attribute(inputs[0], "T")
    if name.startswith("."):
        return ast.Call(ast.Attribute(inputs[0], name[1:]), inputs[1:], keywords)
    return ast.Call(ast.Name(name), inputs, keywords)


def constant_text(value) -> str:
    """A constant: numbers short, dtypes by name, named shapes by name."""
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) < 1e6 and value == int(value) else f"{value:.6g}"
    if isinstance(value, list | tuple) and not isinstance(value, NamedShape):
        inner = ", ".join(text(edge(v)) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    return str(value)


def index_text(index) -> str:
    """An index as written between square brackets."""
    if isinstance(index, tuple):
        return ", ".join(map(index_text, index))
    if isinstance(index, slice):
        ends = ["" if v is None else str(v) for v in (index.start, index.stop, index.step)]
        return ":".join(ends if ends[2] else ends[:2])
    return "..." if index is Ellipsis else text(edge(index))
