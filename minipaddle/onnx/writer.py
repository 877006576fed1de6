"""A program as an ONNX model: its records in order, each by its formula or its form."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import numpy

from ..engine.core import dtype as dt
from ..engine.core.dim import Dim
from ..engine.core.record import Record, Spec
from ..engine.eager.device import NUMPY
from ..engine.ir.program import INPUT, ITEM, NUMBER, Program
from .formulas import elementwise
from .graph import SMALLEST, NoForm, OnnxGraph, OnnxValue, library, refusal, schema
from .preparing import find_needed, read_by
from .table import FORMS

IR_VERSION = 10
"""Of the file; onnxruntime 1.18 and later read it."""


class GraphWriter(OnnxGraph):
    """Writes records into a graph."""

    def __init__(self, outer: GraphWriter | None = None, arrays: dict | None = None):
        super().__init__(outer)
        arrays = {} if arrays is None else arrays
        self.arrays: dict[Record, object] = outer.arrays if outer else arrays  # known, or None
        self.counts = Counter()  # how often records of the program here are used

    # ---- records -----------------------------------------------------------------------------

    def read(self, record: Record):
        """The value of a record; a Python number for a number."""
        if record.op is NUMBER:
            n = record.attrs["value"]
            return self.value(n) if isinstance(n, Dim) else n
        return self.values[record]

    def write(self, record: Record) -> None:
        """The nodes of a record."""
        if any(x in self.arrays and self.arrays[x] is None for x in record.inputs):
            self.arrays[record] = None  # so that `fold` need not walk back to the inputs
        with self.writing(record):
            try:
                inputs = [self.read(r) for r in read_by(record)]
                inputs += [None] * (len(record.inputs) - len(inputs))
                self.put(record, self.form(record, inputs))
            except NoForm as error:
                raise refusal(record, str(error)) from None

    @contextmanager
    def writing(self, record: Record):
        """Within the block nodes belong to this record."""
        before, self.record = self.record, record
        try:
            yield
        finally:
            self.record = before

    def form(self, record: Record, inputs: list):
        """The value of a record (a tuple if it has several results)."""
        op = record.op
        if op is ITEM:
            return inputs[0][record.attrs["k"]]
        half = op.kind not in ("movement", "control") and any(
            isinstance(x, OnnxValue) and x.dtype in dt.HALVES for x in inputs
        )
        if half:  # half precision is widened, and rounded once
            inputs = [widen(x) for x in inputs]
        if op.name in FORMS:
            y = FORMS[op.name](self, *inputs, **record.attrs)
        elif op.kind == "elementwise":
            y = elementwise(self, record, inputs)
        elif op.kind == "contraction":
            equation = op.letters(*(x.spec for x in record.inputs), **record.attrs)
            y = self("Einsum", *inputs, equation=equation, dtype=inputs[0].dtype)
        else:
            raise NoForm("there is no rule for it")
        if isinstance(y, tuple):
            return tuple(round_to_spec(v, s) for v, s in zip(y, record.shape, strict=False))
        return round_to_spec(y, record.spec)

    def uses(self, record: Record) -> int:
        """How often a record of the program that is being written is used."""
        return self.counts[record]

    def reads_beyond(self, record: Record, k: int) -> bool:
        """Whether a result of a record is read whose number is at least k."""
        items = (r for r in self.counts if r.op is ITEM and r.inputs[0] is record)
        return any(r.attrs["k"] >= k for r in items)

    # ---- programs ----------------------------------------------------------------------------

    def enter(self, region: Program, given) -> None:
        """Write the records of a region, for the values of its inputs."""
        for record, value in zip(region.inputs, given, strict=True):
            value = self.value(value, record.dtype)
            self.values[record], self.arrays[record] = value, None
            if value.shape is None:
                value.shape = record.shape
            for axis, n in enumerate(record.shape):
                if isinstance(n, Dim) and n.text in n.atoms:
                    self.places.setdefault(n.text, (value, axis))
        self.write_all(region)

    def write_all(self, program: Program) -> None:
        """The records that the results of a program need."""
        records = find_needed(program)
        self.counts.update([x for r in records for x in read_by(r)] + program.results)
        for record in records:
            self.write(record)

    def inline(self, region: Program, given) -> list[OnnxValue]:
        """The results of a region, written into this graph."""
        self.enter(region, given)
        return [self.value(self.read(r), r.dtype) for r in region.outputs]

    def fold(self, x):
        """A value that depends on weights and numbers alone, as an array; None for others."""
        if isinstance(x, OnnxValue):
            x = x.record
            if x is None:
                return None
        if not isinstance(x, Record):
            return numpy.asarray(x)
        if x not in self.arrays:
            self.arrays[x] = self.compute(x)
        return self.arrays[x]

    def compute(self, x: Record):
        """The value of a record whose inputs are known; None if one is not."""
        if x.op is NUMBER:
            return numpy.asarray(x.attrs["value"])
        if x.op is INPUT or x.op.kind == "control" or x.dtype is None or x.op is ITEM:
            return None
        operands = [self.fold(r) for r in x.inputs]
        if any(v is None for v in operands):
            return None
        pairs = zip(x.inputs, operands, strict=True)
        values = [r.attrs["value"] if r.op is NUMBER else v for r, v in pairs]
        return numpy.asarray(x.op.evaluate(NUMPY, values, x.attrs))

    # ---- the model ---------------------------------------------------------------------------

    def proto(self, name: str, inputs, outputs, initializers=()):
        """The graph with these inputs and outputs."""
        return library().helper.make_graph(
            self.nodes, name, [*map(value_info, inputs)], [*map(value_info, outputs)],
            list(initializers),
        )  # fmt: skip


def widen(x):
    return x.astype(dt.float32.numpy) if isinstance(x, OnnxValue) and x.dtype in dt.HALVES else x


def round_to_spec(value: OnnxValue, spec: Spec) -> OnnxValue:
    """A value in the dtype of the result, which other records may know it by."""
    value = value.astype(spec.dtype)
    return OnnxValue(value.graph, value.name, spec.dtype, spec.shape)


def value_info(value: OnnxValue):
    """An input or output as the file declares it; open sizes have names."""
    sizes = [n if not isinstance(n, Dim) else n.text for n in value.shape or ()]
    code = library().helper.np_dtype_to_tensor_dtype(value.dtype)
    shape = sizes if value.shape is not None else None
    return library().helper.make_tensor_value_info(value.name, code, shape)


def write_graph(program: Program, arrays: dict[str, object], outputs: list[str]) -> tuple:
    """(the graph of a program as a proto, the operators it uses). `arrays` are its states by name,
    `outputs` names for its results.
    """
    of_records = {s.record: arrays[s.name] for s in program.states}
    writer = GraphWriter(arrays=of_records)
    names = [r.attrs["name"] for r in program.inputs] + [s.name for s in program.states]
    writer.main.taken.update(names)
    outputs = [writer.main.name(name) for name in outputs]
    inputs = [writer.add_input(r.attrs["name"], r) for r in program.inputs]
    for state in program.states:
        value = writer.constant(of_records[state.record], state.name)
        writer.put(state.record, value)
    of_records |= dict.fromkeys(program.inputs)
    writer.write_all(program)
    results = []
    for name, record in zip(outputs, program.outputs, strict=True):
        value = writer.value(writer.read(record), record.dtype)
        results.append(name_output(writer, value, name, record.shape))
    writer.nodes = useful(writer.nodes, {v.name for v in results})
    used = names_used(writer.nodes) | {v.name for v in results}
    kept = [t for t in writer.main.initializers if t.name in used]
    return writer.proto("main", inputs, results, kept), kinds_of(writer.nodes)


def name_output(writer: GraphWriter, value: OnnxValue, name: str, shape) -> OnnxValue:
    """An output of that name."""
    node = library().helper.make_node("Identity", [value.name], [name], name=name)
    writer.nodes.append(node)
    return OnnxValue(writer, name, value.dtype, shape)


def kinds_of(nodes) -> set[str]:
    """The operators of nodes and of those in their subgraphs."""
    inner = [a.g.node for node in nodes for a in node.attribute if a.HasField("g")]
    return {node.op_type for node in nodes}.union(*map(kinds_of, inner))


def names_used(nodes) -> set[str]:
    """The names that nodes, and those of their subgraphs, read."""
    names = set()
    for node in nodes:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= names_used(attribute.g.node) | {v.name for v in attribute.g.output}
    return names


def useful(nodes, wanted: set[str]) -> list:
    """The nodes, those of subgraphs too, whose results are read."""
    used = []
    for node in reversed(nodes):
        if wanted.isdisjoint(node.output):
            continue
        for attribute in node.attribute:
            if attribute.HasField("g"):
                inner = attribute.g
                kept = useful(inner.node, {v.name for v in inner.output})
                del inner.node[:]
                inner.node.extend(kept)
        wanted |= names_used([node])
        used.append(node)
    return used[::-1]


def opset_of(kinds: set[str], wanted: int) -> int:
    """The smallest opset that has these operators, and is not below the one asked for."""
    return max(wanted, SMALLEST, *map(first_opset, kinds))


def first_opset(kind: str) -> int:
    """The first opset whose operator is as the forms write it."""
    if kind in FROM:
        return FROM[kind]
    since = schema(kind, SMALLEST).since_version
    return since if since > SMALLEST else 0


FROM = {"QuantizeLinear": 19, "DequantizeLinear": 19}
"""`onnx.reference` has these from 19 on."""
