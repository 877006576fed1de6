"""Dead code: records whose values nobody needs are left out, in regions too.

What has an effect stays, and what is the first to show a size that other records go by.
"""

from __future__ import annotations

from ..core.slots import slot
from ..ir.cut import pruned
from ..ir.program import Program, regions
from .rewriting import with_inputs, with_records


@slot("passes.dead_code")
def dead_code(program: Program) -> Program:
    """The program without the records that neither its results nor an effect need."""
    now, records = {}, []
    for record in program.records:
        inside = {name: dead_code(region) for name, region in regions(record).items()}
        new = with_inputs(record, [now.get(r, r) for r in record.inputs], inside)
        if new is not record:
            now[record] = new
        records.append(new)
    whole = with_records(program, records, now)
    copy = pruned(Program(whole.name, whole.inputs, whole.states, whole.records, whole.outputs))
    return with_records(whole, copy.records, {})
