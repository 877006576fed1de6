"""A graph of ONNX read node by node, into the program that is being traced."""

from __future__ import annotations

import difflib
from math import inf, isnan, prod

import numpy

from ..core.prelude import Recording, Tensor, teach
from ..engine.core.dispatch import interpreter
from ..engine.eager.device import QUIET
from ..engine.eager.execution import Eager
from .functions import FUNCTIONS, SIZES
from .functions.control import CONTROL
from .graph import library, value_of
from .reading import DEEPEST, MOST_AXES, DamagedFile, array_of
from .table import OnnxNode, UnreadableNode, tensor

MOST_NODES = 1 << 16
"""Nodes that are read in branches, loops that are written out and functions, each time they are."""
LARGEST_CONSTANT = 1 << 22
"""Elements that are computed while a model is read; larger arrays are computed when it runs."""
GROWING = {"ConstantOfShape", "Expand", "Range", "Tile", "Pad", "OneHot", "Resize", "Upsample",
           "Col2Im"}  # fmt: skip
"""Operators whose results are as large as their inputs say, and not only as large as these."""


class GraphReader:
    """Reads a graph: each node, by its function, into the program that is being traced.

    `kept` are the values of initializers and Constants, here and in subgraphs.
    """

    def __init__(self, opset: int, folder: str, functions: dict, kept: dict, outer=None):
        self.opset, self.folder, self.functions, self.kept = opset, folder, functions, kept
        self.values: dict[str, object] = {}
        self.outer, self.depth = outer, outer.depth + 1 if outer else 0
        self.inside = outer.inside if outer else [0]  # how many nodes were read in inner graphs
        if self.depth > DEEPEST:
            raise DamagedFile(f"graphs nested more than {DEEPEST} deep")

    def get(self, name: str):
        """The value of a name, here or in a graph around."""
        reading = self
        while reading is not None:
            if name in reading.values:
                return reading.values[name]
            reading = reading.outer
        if name in self.kept:
            return self.kept[name]
        raise DamagedFile(f"{name[:80]!r} is used before it is computed")

    def graph(self, proto, given=()) -> list:
        """The outputs of a subgraph for its inputs."""
        inner = GraphReader(self.opset, self.folder, self.functions, self.kept, self)
        return inner.read(proto, proto.input, given)

    def read(self, proto, inputs, given) -> list:
        """The outputs of a graph for some inputs."""
        for t in proto.initializer:
            if t.name not in self.kept:
                self.values[t.name] = array_of(t, self.folder)
        self.values |= {v.name: x for v, x in zip(inputs, given, strict=True)}
        self.run(proto.node)
        return [self.get(v.name) for v in proto.output]

    def run(self, nodes, attributes: dict | None = None) -> None:
        """Read nodes in their order; `attributes` are those of a function that is called."""
        for node in nodes:
            self.count()
            if node.op_type == "Constant" and node.output[0] in self.kept:
                continue
            attrs = {a.name: self.attribute(a, attributes) for a in node.attribute}
            attrs = {k: v for k, v in attrs.items() if v is not None}
            inputs = [self.get(name) if name else None for name in node.input]
            while inputs and inputs[-1] is None:
                inputs.pop()
            try:
                outputs = self.apply(node, inputs, attrs)
            except (DamagedFile, WrongNode):
                raise
            except (UnreadableNode, NotImplementedError) as error:
                raise unreadable(node, f"cannot be read: {error}") from None
            except Exception as error:  # its inputs or attributes make no sense
                raise wrong(node, error) from error
            outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
            self.values |= {n: plain(x) for n, x in zip(node.output, outputs) if n}

    def count(self) -> None:
        """Count a node of an inner graph. A short file could ask for any number of them: functions
        that call each other ten times on nine levels.
        """
        self.inside[0] += self.depth > 0
        if self.inside[0] > MOST_NODES:
            raise DamagedFile(
                f"its functions, branches and loops come to over {MOST_NODES:,} nodes"
            )

    def attribute(self, a, given: dict | None):
        """The value of an attribute."""
        kinds = library().AttributeProto
        if a.ref_attr_name:
            return (given or {}).get(a.ref_attr_name)
        if a.type == kinds.TENSOR:
            return array_of(a.t, self.folder)
        if a.type == kinds.GRAPH:
            return a.g
        if a.type not in (kinds.FLOAT, kinds.INT, kinds.STRING, kinds.FLOATS, kinds.INTS,
                          kinds.STRINGS):  # fmt: skip
            raise DamagedFile(f"the attribute {a.name[:80]!r} is of a kind that is not supported")
        return value_of(a)

    def apply(self, node, inputs: list, attrs: dict):
        """The results of a node."""
        local = self.functions.get((node.domain, node.op_type))
        if local is not None:
            return self.call(local, inputs, attrs)
        kind = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        if kind not in FUNCTIONS:
            raise unreadable(node, "is not supported")
        named = [k for k, name in enumerate(node.output, 1) if name]
        about = OnnxNode(kind, self.opset, max(named, default=1), self)
        if kind in CONTROL:
            return call_function(about, inputs, attrs)
        constant = inputs and all(x is None or isinstance(x, numpy.ndarray) for x in inputs)
        if constant and kind not in ("Shape", "Size"):
            outputs = self.compute(about, inputs, attrs)
            if outputs is not None:
                return outputs
        return call_function(about, inputs, attrs)

    def compute(self, about: OnnxNode, inputs: list, attrs: dict):
        """The results for values that are known now; None if they must wait."""
        arrays = [x for x in inputs if x is not None]
        if any(x.dtype == object for x in arrays):
            rule = SIZES.get(about.kind)
            result = NotImplemented if rule is None else rule(*inputs, **attrs)
            return None if result is NotImplemented else numpy.asarray(result)
        numbers = [v for v in attrs.values() if isinstance(v, list)]
        if largest(arrays, numbers + arrays * (about.kind in GROWING)) > LARGEST_CONSTANT:
            return None
        return QUIET.copy().run(eagerly, about, inputs, attrs)

    def call(self, function, inputs: list, attrs: dict) -> list:
        """The results of a function that the file defines."""
        inner = GraphReader(self.opset, self.folder, self.functions, {}, self)
        inner.outer = None  # a function sees only its own
        inputs += [None] * (len(function.input) - len(inputs))
        inner.values = dict(zip(function.input, inputs))
        defaults = {a.name: self.attribute(a, None) for a in function.attribute_proto}
        inner.run(function.node, defaults | attrs)
        return [inner.get(name) for name in function.output]


RAW = {*GROWING, "Reshape", "Gather", "Slice", "Squeeze", "Unsqueeze", "Clip", "Split", "Trilu",
       "TopK", "CumSum", *(k for k in FUNCTIONS if k.startswith("Reduce"))}  # fmt: skip
"""Operators that read numbers among their inputs."""


def eagerly(about: OnnxNode, inputs: list, attrs: dict) -> tuple:
    """The results for known values, as arrays."""
    with interpreter(Eager()), Recording(False):
        operands = [x if x is None or about.kind in RAW else Tensor(x) for x in inputs]
        outputs = call_function(about, operands, attrs)
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        return tuple(x.numpy() if isinstance(x, Tensor) else x for x in outputs)


def largest(arrays, vectors) -> float:
    """A bound on the elements of a result: as many as all inputs multiplied have, times what short
    vectors of numbers (sizes, repeats, pads, scales, the ends and the step of a range) say.
    """
    vectors = [numpy.atleast_1d(v) for v in vectors if numpy.size(v) <= MOST_AXES]
    vectors = [numpy.abs(v.astype("float64")) for v in vectors if v.dtype.kind in "iuf"]
    times = [float(numpy.prod(1 + v) / min(1, v[v > 0].min(initial=1))) for v in vectors]
    bound = prod(x.size for x in arrays) * prod(times)
    return inf if isnan(bound) else bound


def call_function(about: OnnxNode, inputs: list, attrs: dict):
    """The results of a node by its function; its parameters before `/` are tensors."""
    function = FUNCTIONS[about.kind]
    first = function.__code__.co_posonlyargcount
    inputs = [x if x is None else tensor(x) for x in inputs[:first]] + inputs[first:]
    extra = {"node": about} if "node" in names_of(function) else {}
    return function(*inputs, **attrs, **extra)


def names_of(function) -> tuple:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def plain(x):
    """A value in one form: sizes that are all numbers are int64."""
    if isinstance(x, numpy.ndarray) and x.dtype == object:
        ints = all(isinstance(n, int | numpy.integer | bool | numpy.bool_) for n in x.reshape(-1))
        truth = ints and x.size and all(isinstance(n, bool | numpy.bool_) for n in x.reshape(-1))
        return x.astype(bool if truth else "int64") if ints else x
    return x


def describe(node) -> str:
    return (
        f"the node {(node.name or node.output[0])[:120]!r} ({node.domain or 'onnx'}.{node.op_type})"
    )


class NotReadable(NotImplementedError, ValueError):
    """A node of a file that this package has no operator for: there may be one some day, and until
    then the file is one that cannot be loaded.
    """


class WrongNode(ValueError):
    """A node whose inputs or attributes make no sense; the message names it."""


def unreadable(node, why: str) -> NotReadable:
    """The error that names a node that cannot be read."""
    near = difflib.get_close_matches(node.op_type, FUNCTIONS, 1, cutoff=0.3)
    nearest = f", of which {near[0]} is the nearest" if near and near[0] != node.op_type else ""
    return NotReadable(
        teach(
            f"paddle.onnx.load: {describe(node)} {why}",
            expected=f"one of {len(FUNCTIONS)} operators (minipaddle.onnx.FUNCTIONS){nearest}",
            hint="export the model with another opset, or write this part with other operators",
        )
    )


def wrong(node, error: Exception) -> WrongNode:
    """The error of a node whose inputs or attributes make no sense."""
    what = str(error) if isinstance(error, ValueError | TypeError) else repr(error)
    return WrongNode(teach(f"paddle.onnx.load: {describe(node)}: {what:.600}"))
