"""Loops stack their iterations for a derivative; stacks that nothing reads are left out."""

from __future__ import annotations

from ..engine.core.record import Record
from ..engine.ir.control import while_loop
from ..engine.ir.edit import map_records, map_regions, with_inputs
from ..engine.ir.program import ITEM, Program
from ..engine.passes.registry import program_pass


@program_pass("unread_iterations", looks_for=[while_loop])
def unread_iterations(program: Program) -> Program:
    """The program whose loops keep the values of their iterations only if something reads them."""
    items = [r for r in program.records if r.op is ITEM and r.inputs[0].op is while_loop]
    read = {r.inputs[0] for r in items if r.attrs["k"] >= r.inputs[0].attrs["carried"]}

    def each(record: Record, inputs) -> Record:
        new = with_inputs(record, inputs, map_regions(record, unread_iterations))
        if record.op is not while_loop or not record.attrs["keep"] or record in read:
            return new
        specs = new.shape[: record.attrs["carried"]]
        return new.copy(new.inputs, new.attrs | {"keep": False}, specs)

    return map_records(program, each)
