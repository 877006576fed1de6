"""Common subexpression elimination: the same operator on the same inputs is computed once.

Random numbers need no exception: they are a formula of a state, and two draws read two states. An
operator with an effect is computed as often as it was written. Two results stay two arrays even if
they are equal: the caller may write to one of them.
"""

from __future__ import annotations

from collections import Counter

from ..core.record import Record
from ..core.slots import slot
from ..ir.cut import has_effect
from ..ir.edit import in_regions, substitute, with_records
from ..ir.program import NUMBER, Program, binders
from .registry import program_pass


@program_pass("cse", looks_for=["repeated operators"])
def cse(program: Program) -> Program:
    """The program with equal records written once, in each region for itself."""
    program = in_regions(program, cse)
    counts = Counter([(r.op, r.shape) for r in program.records if r.op.kind != "control"])
    results, fixed = set(program.results), binders(program)
    first: dict[tuple, Record] = {}
    now: dict[Record, Record] = {}
    records = []
    for record in program.records:
        new = substitute(record, now) if now else record
        if record in results:
            results.add(new)
        if counts[record.op, record.shape] > 1 and record not in fixed and not has_effect(record):
            key = new.op, new.dtype, new.shape, *map(identity, new.inputs), *map(exact, items(new))
            same = first.setdefault(key, new)
            if same is not new and not (record in results and same in results):
                now[record] = same
                if record in results:
                    results.add(same)
                continue
        records.append(new)
    return with_records(program, records, now)


def identity(record: Record):
    """A key that equal inputs share: the record, or the number with its type and sign."""
    return exact(record.attrs["value"]) if record.op is NUMBER else record


def items(record: Record):
    return sorted(record.attrs.items())


@slot("cse.exact")
def exact(value):
    """An attribute as a key that tells 0.0 from -0.0 and 1 from True."""
    if type(value) is tuple:
        return tuple(map(exact, value))
    return type(value), repr(value) if type(value) is float else value
