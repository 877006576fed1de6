"""Results that had memory of their own keep it, since the caller may write to them.

A pass may turn `x * 1`, which is new memory, into x, or two equal results into one value. A result
that shares memory after the passes, but did not before, is copied.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.record import Record
from ..ir.program import ITEM, Program
from ..ops.creation import assign


def separate(old: Program, new: Program) -> Program:
    """The program `new`, made from `old`, with copies of results that share memory only in it."""
    constants = new.given[len(old.given) :]  # states that `old` does not have
    values = [*map(root, old.given), *constants]
    stands_for = dict(zip(new.given, values))  # for a value of `new` the one of `old` in its memory
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
    states = [replace(s, update=s.update and next(updates)) for s in new.states]
    return replace(new, states=states, records=[*new.records, *copies], outputs=outputs)


def root(record: Record) -> Record:
    """The value in whose memory a value lies: itself, unless it is a view."""
    while record.inputs and (record.op.view or record.op is ITEM):
        if record.op is ITEM and not record.inputs[0].op.view:
            return record
        record = record.inputs[0]
    return record
