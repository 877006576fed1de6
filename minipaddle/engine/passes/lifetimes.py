"""Which values share memory, and how long each is needed.

A *value* is a result of a record: the pair (record, which). A view (a contiguous reshape, an item
of a tuple) is another name of the value it looks into. Time is counted in records: while record t
runs, what it reads and what it makes are both there, so a value lives in [start, end) with start
the time it is made and end one more than the time it is read last.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import value_error
from ..core.record import Record, Spec
from ..core.slots import slot
from ..ir.control import custom
from ..ir.program import ITEM, NUMBER, Program
from ..ops import creation, gradient, movement, ordering

Value = tuple[Record, int]

GIVEN = -1
"""The time at which inputs and states are there: before the first record."""


class Life(NamedTuple):
    """A value is needed in [start, end)."""

    start: int
    end: int
    nbytes: int


def same_size(record: Record) -> bool:
    return record.spec.size == record.inputs[0].spec.size


def always(record: Record) -> bool:
    return True


def in_order(record: Record) -> bool:
    """Does a transpose leave the axes that are longer than 1 in their order?"""
    shape = record.inputs[0].shape
    long = [d for d in record.attrs["perm"] if shape[d] != 1]
    return long == sorted(long)


def forwards(record: Record) -> bool:
    """Does a slice take all, in its order?"""
    steps = [k[2] for k in record.attrs["index"] if type(k) is tuple]
    return same_size(record) and all(step is None or step > 0 for step in steps)


VIEWS = {
    movement.reshape: always,
    movement.transpose: in_order,
    movement.broadcast_to: same_size,
    movement.slice_: forwards,
    creation.assign: always,
    ordering.after: always,
    gradient.gradient: always,
}
"""Operators whose result may be the memory of their input, and when it may: values never change."""


def looked_into(record: Record) -> Value | None:
    """The value that a record is a view of, one step back; None if it has memory of its own."""
    if record.op is ITEM:
        whole, k = record.inputs[0], record.attrs["k"]
        return (whole.inputs[k], 0) if whole.op is custom else (whole, k)
    rule = VIEWS.get(record.op)
    if rule is None or record.inputs[0].op is NUMBER or not rule(record):
        return None
    return record.inputs[0], 0


@slot("memory.roots")
def roots(program: Program) -> dict[Record, Value]:
    """For each record of one result the value whose memory holds it."""
    found: dict[Record, Value] = {r: (r, 0) for r in program.given}
    for record in program.records:
        for r in record.inputs:
            if r.op is NUMBER:
                found[r] = r, 0
        if record.dtype is not None:
            seen = looked_into(record)
            if seen is None:
                found[record] = record, 0
            else:
                found[record] = found.get(seen[0], seen)
    for r in program.results:
        found.setdefault(r, (r, 0))  # a number
    return found


def specs_of(record: Record) -> tuple[Spec, ...]:
    """What the results of a record are."""
    return record.shape if record.dtype is None else (record.spec,)


def bytes_of(spec: Spec) -> int:
    """The bytes of a value; ValueError while a size is open."""
    if not all(type(n) is int for n in spec.shape):
        raise value_error(
            f"the memory of {spec} can not be planned: it has an open size",
            expected="a program whose sizes are numbers",
            hint="specialise the program for the shapes it is run with",
        )
    return spec.nbytes


def looks_only(record: Record, root: dict[Record, Value]) -> bool:
    """Is nothing read or made when the record's turn comes?"""
    return record.op is custom if record.dtype is None else root[record][0] is not record


def made_by(record: Record, root: dict[Record, Value]) -> list[Value]:
    """The values that a record makes in memory of its own."""
    if looks_only(record, root):
        return []
    return [(record, k) for k in range(len(record.shape) if record.dtype is None else 1)]


def starts(program: Program, root: dict[Record, Value]) -> dict[Value, int]:
    """When each value is made."""
    found = {(r, 0): GIVEN for r in program.given}
    for t, record in enumerate(program.records):
        found.update(dict.fromkeys(made_by(record, root), t))
    return found


def last_reads(program: Program, root: dict[Record, Value]) -> dict[Value, int]:
    """When each value that is read at all is read for the last time, results not counted."""
    found = {}
    for t, record in enumerate(program.records):
        if not looks_only(record, root):
            for r in record.inputs:
                if r.dtype is not None:
                    found[root[r]] = t
    return found


@slot("memory.lifetimes")
def lifetimes(program: Program, root: dict[Record, Value] | None = None) -> dict[Value, Life]:
    """How long each value is needed; results to the end, and those nobody reads while made."""
    root = roots(program) if root is None else root
    reads, end = last_reads(program, root), len(program.records)
    kept = {root[r] for r in program.results}
    return {
        value: Life(
            start,
            end + 1 if value in kept else max(reads.get(value, start), start) + 1,
            bytes_of(specs_of(value[0])[value[1]]),
        )
        for value, start in starts(program, root).items()
    }
