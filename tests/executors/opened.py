"""A program as it is for open sizes: each size of its inputs is one, though it is a number."""

from __future__ import annotations

from collections.abc import Callable

from minipaddle.codegen.open_sizes import MOST, PREFIX, OpenSize
from minipaddle.engine.core.dim import symbol
from minipaddle.engine.core.record import Record, Spec
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.ir.program import INPUT, NUMBER, Program, State, everywhere


def open_all_sizes(program: Program) -> Program | None:
    """The program whose sizes above 1 are formulas; None if it has branches or loops. Sizes of one
    number are one open size, also where the program has them for other reasons.
    """
    if any(record.op.kind == "control" for record in everywhere(program)):
        return None
    sizes = sorted({n for record in program.given for n in record.shape if n > 1})[:MOST]
    memo: dict = {}
    formulas = {n: OpenSize(n, symbol(f"{PREFIX}{k}", n), memo) for k, n in enumerate(sizes)}
    new: dict[Record, Record] = {}

    def open_shape(shape):
        return tuple(formulas.get(n, n) if type(n) is int else n for n in shape)

    def open_spec(r):
        if r.dtype is None:
            return tuple(Spec(open_shape(s.shape), s.dtype) for s in r.shape), None
        return open_shape(r.shape), r.dtype

    def again(r):
        return r if r.op is NUMBER else new[r]

    for r in program.given:
        new[r] = Record(INPUT, (), {"name": r.attrs.get("name", "")}, *open_spec(r))
    for r in program.records:
        attrs = {k: open_shape(v) if k == "shape" else v for k, v in r.attrs.items()}
        new[r] = r.copy([*map(again, r.inputs)], attrs, open_spec(r))
    inputs, records, outputs = (
        [*map(again, each)] for each in (program.inputs, program.records, program.outputs)
    )
    states = [
        State(s.name, new[s.record], s.update and again(s.update), s.storage)
        for s in program.states
    ]
    return Program(program.name, inputs, states, records, outputs)


def compile_opened(program: Program) -> Callable | None:
    """C for the program with open sizes."""
    opened = open_all_sizes(program)
    if opened is None:
        return None
    executable = Executable(opened)
    return lambda _, arrays: executable(opened, arrays)
