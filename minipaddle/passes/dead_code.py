"""Dead code: records whose values nobody needs are left out, in regions too; constants as well.

What has an effect stays, and what is the first to show a size that other records go by.
"""

from __future__ import annotations

from ..core.slots import slot
from ..ir.cut import pruned
from ..ir.program import Program, regions
from .folding import Constant
from .rewriting import uses, with_inputs, with_records


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
    return without_constants(with_records(whole, copy.records, {}))


def without_constants(program: Program) -> Program:
    """The program without the constants that nobody uses. (Other states are the caller's.)"""
    constants = [s for s in program.states if isinstance(s.cell, Constant)]
    used = uses(program) if constants else {}
    unused = [s for s in constants if not used[s.record]]
    if not unused:
        return program
    states = [s for s in program.states if s not in unused]
    return Program(**vars(program) | {"states": states})
