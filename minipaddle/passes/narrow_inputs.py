"""Elementwise operators read inputs that are not repeated yet: they broadcast by themselves.

The pass `algebra` begins with it.
"""

from __future__ import annotations

from ..engine.core.record import Record
from ..engine.core.spec import broadcast_shapes
from ..engine.ir.edit import in_regions, map_records, with_inputs
from ..engine.ir.program import NUMBER, Program
from ..engine.ops.creation import full
from ..engine.ops.movement import broadcast_to
from ..engine.passes.algebra import BEFORE
from ..engine.passes.registry import LOOKS_FOR


def narrow_inputs(program: Program) -> Program:
    """The program in which elementwise operators read the inputs of a `broadcast_to`, since they
    broadcast by themselves, and a number instead of an array that is full of it.
    """

    def each(record, inputs):
        if record.op.kind == "elementwise" and len(inputs) > 1:
            inputs = narrow(record, inputs)
        return with_inputs(record, inputs)

    program = in_regions(program, narrow_inputs)
    wide = {r.op for r in program.records} & {broadcast_to, full}
    return map_records(program, each) if wide else program


def narrow(record: Record, inputs: list[Record]) -> list[Record]:
    """The inputs as they were before they were repeated, where the result keeps its spec."""
    for k, source in enumerate(inputs):
        number_fits = source.op is full and k not in record.op.free
        if source.op is broadcast_to or number_fits:
            less = source.inputs[0] if source.op is broadcast_to else number(source)
            other = [*inputs[:k], less, *inputs[k + 1 :]]
            if fits(record, other):
                inputs = other
    return inputs


def number(record: Record) -> Record:
    """The number that fills an array."""
    return Record(NUMBER, (), {"value": record.attrs["value"]}, (), record.dtype)


def fits(record: Record, inputs: list[Record]) -> bool:
    """Whether the record keeps its spec with these inputs, and computes in the same dtype."""
    if broadcast_shapes(*(r.shape for r in inputs)) != record.shape:
        return False
    if all(r.op is NUMBER for r in inputs):
        return False
    old, new = ([spec_or_number(r) for r in rs] for rs in (record.inputs, inputs))
    return record.op.dtypes(new, record.attrs) == record.op.dtypes(old, record.attrs)


def spec_or_number(record: Record):
    """The answer to `Elementwise.dtypes` for an operand."""
    return record.attrs["value"] if record.op is NUMBER else record.spec


BEFORE.append(narrow_inputs)
LOOKS_FOR["algebra"] += [broadcast_to, full]
