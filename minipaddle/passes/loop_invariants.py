"""Loop-invariant code motion: a loop computes once what is the same in each of its iterations."""

from __future__ import annotations

from ..engine.core.record import Record
from ..engine.ir.control import while_loop
from ..engine.ir.edit import substitute, with_records
from ..engine.ir.program import NUMBER, Program, open_sizes
from ..engine.passes.registry import program_pass
from .loop_edit import LoopEdit, is_item, move_item


@program_pass("loop_invariants", looks_for=[while_loop])
def loop_invariants(program: Program) -> Program:
    """The program that computes what its loops need of their constants alone before the loops."""
    if open_sizes(program):
        return program
    new: dict[Record, Record] = {}
    records: list[Record] = []
    for record in program.records:
        moved = find_invariants(record) if record.op is while_loop else []
        if moved:
            edit = LoopEdit(record.copy([*map(new.get, record.inputs, record.inputs)]))
            outer = dict(zip(edit.inner, edit.outer, strict=True))
            inner: dict[Record, Record] = {}
            for r in moved:
                outer[r] = r.copy([outer.get(x, x) for x in r.inputs])
                records.append(outer[r])
                inner[r] = edit.constant(outer[r])
            edit.records = [substitute(r, inner) for r in edit.records if r not in outer]
            edit.rename(inner)
            new[record] = edit.close()
            records.append(new[record])
        elif is_item(record) and record.inputs[0] in new:
            new[record] = move_item(record, new[record.inputs[0]])
            records.append(new[record])
        else:
            records.append(substitute(record, new))
    return with_records(program, records, new) if new else program


CANNOT_FAIL = {"elementwise", "reduction", "contraction"}
"""Kinds of operators; movements may, if their index is in the data."""


def find_invariants(loop: Record) -> list[Record]:
    """The records of a body that need only constants of the loop. They cannot fail, as the loop may
    have no iteration, and are no larger than an input: what only repeats one stays in the kernel
    that reads it.
    """
    known = {*loop.attrs["body"].inputs[loop.attrs["carried"] :]}
    invariants = []
    for record in loop.attrs["body"].records:
        read = [x for x in record.inputs if x.op is not NUMBER]
        op = record.op
        safe = op.source if op.kind == "movement" else op.kind in CANNOT_FAIL
        if not safe or not read or not known.issuperset(read):
            continue
        if record.spec.size <= max(x.spec.size for x in read) and all(x.spec.size for x in read):
            invariants.append(record)
            known.add(record)
    return invariants
