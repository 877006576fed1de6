"""Which values share memory, and how long each is needed.

A *value* is a result of a record: the pair (record, k). A view (a contiguous reshape, an item of a
tuple) is another name of the value in whose memory it lies. Time is counted in records. While
record t runs, its inputs and its results are both in memory, so a value lives in [start, end):
start is when it is made, and end is one more than when it is read last.
"""

from __future__ import annotations

from ..core.dim import Dim
from ..core.errors import value_error
from ..core.record import Record, Spec
from ..core.slots import slot
from ..ir.control import custom
from ..ir.program import ITEM, NUMBER, Program
from .arena import Buffer

Value = tuple[Record, int]

GIVEN = -1
"""The time at which inputs and states begin: before the first record."""


class Life(Buffer):
    """A value is needed in [start, end)."""


def value_of_view(record: Record) -> Value | None:
    """The value that a record is a view of, one step back; None if it has its own memory."""
    if record.op is ITEM:
        whole, k = record.inputs[0], record.attrs["k"]
        return (whole.inputs[k], 0) if whole.op is custom else (whole, k)
    rule = record.op.alias
    if rule is None or record.inputs[0].op is NUMBER or not rule(record):
        return None
    return record.inputs[0], 0


@slot("memory.roots")
def roots(program: Program) -> dict[Record, Value]:
    """For each record of one result the value whose memory holds it."""
    root: dict[Record, Value] = {r: (r, 0) for r in program.given}
    for record in program.records:
        for r in record.inputs:
            if r.op is NUMBER:
                root[r] = r, 0
        if record.dtype is not None:
            seen = value_of_view(record)
            if seen is None:
                root[record] = record, 0
            else:
                root[record] = root.get(seen[0], seen)
    for r in program.results:
        root.setdefault(r, (r, 0))  # a number
    return root


ALIGNMENT = 64
"""Every buffer begins at a multiple of a cache line."""


def align(nbytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def specs_of(record: Record) -> tuple[Spec, ...]:
    """The specs of a record's results."""
    return record.shape if record.dtype is None else (Spec(record.shape, record.dtype),)


def bytes_of(spec: Spec) -> int:
    """The bytes of a value; ValueError while a size is open."""
    if Dim in map(type, spec.shape):
        raise value_error(
            f"the memory of {spec} cannot be planned: it has an open size",
            expected="a program whose sizes are numbers",
            hint="specialise the program for the shapes it is run with",
        )
    return spec.nbytes


def is_view(record: Record, root: dict[Record, Value]) -> bool:
    """Whether a record computes nothing: its results are other names of values."""
    return record.op is custom if record.dtype is None else root[record][0] is not record


def values_of(record: Record, root: dict[Record, Value]) -> list[Value]:
    """The values that a record computes, each in its own memory."""
    if record.dtype is not None:
        return [(record, 0)] if root[record][0] is record else []
    return [] if record.op is custom else [(record, k) for k in range(len(record.shape))]


def last_reads(program: Program, root: dict[Record, Value]) -> dict[Value, int]:
    """When each value is read for the last time by a record."""
    kernels = [(t, r) for t, r in enumerate(program.records) if not is_view(r, root)]
    return {root[x]: t for t, r in kernels for x in r.inputs if x.dtype is not None}


@slot("memory.lifetimes")
def lifetimes(program: Program, root: dict[Record, Value] | None = None) -> dict[Value, Life]:
    """How long each value is needed: results to the end, unused values while they are made."""
    root = roots(program) if root is None else root
    reads, end = last_reads(program, root), len(program.records)
    results = {root[r] for r in program.results}
    starts = {(r, 0): GIVEN for r in program.given}
    for t, record in enumerate(program.records):
        starts.update(dict.fromkeys(values_of(record, root), t))
    return {
        value: Life(
            start,
            end + 1 if value in results else max(reads.get(value, start), start) + 1,
            bytes_of(specs_of(value[0])[value[1]]),
        )
        for value, start in starts.items()
    }
