"""Open sizes become numbers: a program is compiled for the sizes it is called with.

Whatever a program is given becomes an `input` record. The backward that `ir.cut` makes is given
values that records of the forward compute. No pass may look into these records, because the values
they were computed from are not there.
"""

from __future__ import annotations

from ..core.record import Record
from ..ir.edit import map_records, with_inputs, with_sizes
from ..ir.interpreter import check_guards
from ..ir.program import INPUT, Program, new_sizes
from .registry import program_pass


@program_pass("specialise", looks_for=["open sizes", "computed inputs"], sizes=(None,))
def specialise(program: Program, *, sizes: dict[str, int] | None) -> Program:
    """The program for the given sizes: numbers by the names of its open sizes."""
    return keep_input_records(with_sizes(program, sizes) if sizes else program)


def keep_input_records(program: Program) -> Program:
    """The program that is given `input` records only."""
    now = {r: Record(INPUT, (), {"name": ""}, *r.spec) for r in program.inputs if r.op is not INPUT}
    if not now:
        return program
    new = map_records(program, with_inputs, now)
    new.inputs = [now.get(r, r) for r in program.inputs]
    return new


def sizes_of(program: Program, shapes) -> dict[str, int]:
    """The open sizes that a program has for inputs (and states) of these shapes, by name.

    Raises ValueError if they contradict what the program assumes of its sizes.
    """
    known: set[str] = set()
    sizes = {
        name: shape[axis]
        for record, shape in zip(program.given, shapes)
        for axis, name in new_sizes(record.spec, known)
    }
    check_guards(program.guards, sizes, program)
    return sizes
