"""Who gets a result may write to it: what was memory of its own stays so, whatever passes did.

`x * 1` is new memory, and becomes x; two results that are equal may become one value. Where a
program shared less memory than what was made of it, the result is copied.
"""

from __future__ import annotations

from ..core.record import Record
from ..ir.edit import with_update
from ..ir.program import ITEM, Program
from ..ops.creation import assign


def separate(old: Program, new: Program) -> Program:
    """The program `new`, made from `old`, with copies of results that would share memory anew."""
    constants = new.given[len(old.given) :]  # states that `old` has not
    given = [*map(root, old.given), *constants]
    stands_for = dict(zip(new.given, given))  # whose memory of `old` a memory of `new` is
    results, copies = [], []
    for before, after in zip(old.results, new.results, strict=True):
        mine = root(before)
        if stands_for.setdefault(root(after), mine) is not mine:
            after = after.derive(assign, [after], {}, after.spec, after.saved)
            copies.append(after)
        results.append(after)
    if not copies:
        return new
    outputs, updates = results[: len(new.outputs)], iter(results[len(new.outputs) :])
    states = [with_update(s, None if s.update is None else next(updates)) for s in new.states]
    return Program(new.name, new.inputs, states, [*new.records, *copies], outputs, new.guards)


def root(record: Record) -> Record:
    """The value whose memory a value looks into: itself, unless it is a view."""
    while record.inputs and (record.op.view or record.op is ITEM):
        if record.op is ITEM and not record.inputs[0].op.view:
            return record
        record = record.inputs[0]
    return record
