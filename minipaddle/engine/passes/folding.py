"""Constant folding: a value that depends on no input is computed once, not at every run.

A value that is one number everywhere becomes `full`, which costs nothing. Any other becomes a
state that holds it and is never written. `minipaddle/passes/frozen_states.py` computes what depends
on weights before the run, too.

A value of more than `LARGEST` bytes becomes a state only if it is no larger than the states it is
computed from. Reshapes and broadcasts are free and stay.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.dim import Dim
from ..core.record import Record
from ..eager.device import NUMPY, QUIET
from ..ir.cut import has_effect
from ..ir.edit import in_regions, substitute, with_records
from ..ir.program import INPUT, ITEM, NUMBER, Program, State
from ..ops.creation import assign, full
from ..ops.movement import broadcast_to, reshape
from .registry import program_pass

LARGEST = 1 << 18
FREE = {reshape, broadcast_to, assign}


class ConstantStorage:
    """The storage of a state that is never written."""

    def __init__(self, array):
        self.array = array

    def read(self):
        return self.array


class ConstantFolder:
    """Finds the known values of a program, and builds it with constants. In a region (`inside`)
    only values that are one number everywhere become constants.
    """

    prepared: type[ConstantStorage]  # holds a value that is computed from states which may change

    def __init__(self, program: Program, inside: bool = False):
        self.program, self.inside = program, inside
        self.cells = {s.record: s.storage for s in program.states if self.is_known(s)}
        self.sources = {r: {r: cell} for r, cell in self.cells.items()}
        """The known values, and for each the cells of all states that it depends on."""
        self.values: dict[Record, object] = {}
        self.states: list[State] = []
        self.constants: dict[Record, Record | None] = {}  # None: it stays computed

    def run(self) -> Program:
        for record in self.program.records:
            if self.knows(record):
                of_inputs = [self.sources.get(r, {}) for r in record.inputs]
                self.sources[record] = {r: c for cells in of_inputs for r, c in cells.items()}
            else:
                self.make_constants(record.inputs)
        self.make_constants(self.program.results)
        new = in_regions(
            self.with_constants(), lambda region: ConstantFolder(region, inside=True).run()
        )
        return replace(new, states=[*new.states, *self.states]) if self.states else new

    def is_known(self, state: State) -> bool:
        """Whether a state has the same value now and at every run."""
        return isinstance(state.storage, ConstantStorage)

    def knows(self, record: Record) -> bool:
        """Whether a value can be computed now."""
        if record.dtype is None or record.op is ITEM or record.op.kind == "control":
            return False
        unknown = [r for r in record.inputs if r not in self.sources and r.op is not NUMBER]
        return (
            not unknown
            and Dim not in map(type, record.shape)
            and not has_effect(record)
            and not hasattr(record.attrs.get("value"), "formula")  # C computes it
        )

    def make_constants(self, records) -> None:
        """Make constants of the known values among these, which the program uses at run time."""
        todo = [*reversed(records)]
        while todo:
            r = todo.pop()
            if r in self.sources and r not in self.constants and r.op is not INPUT:
                self.constants[r] = self.constant(r)
                todo += reversed(r.inputs) if self.constants[r] is None else ()

    def constant(self, record: Record) -> Record | None:
        """The constant for a known value; None if the program must compute it."""
        sources = self.sources[record]
        size = sum(r.spec.nbytes for r in sources)
        if not record.inputs or record.spec.nbytes > max(LARGEST, size):
            return None
        try:
            array = self.value(record)
        except Exception:  # the run raises it, if it computes this record
            return None
        cells = {r: cell for r, cell in sources.items() if type(cell) is not ConstantStorage}
        if uniform(array) and not cells:
            attrs = {"shape": record.shape, "value": array.flat[0].item(), "dtype": record.dtype}
            return record.derive(full, [], attrs, record.spec, 0)
        if record.op in FREE or self.inside:
            return None
        largest = max(sources, key=lambda r: r.spec.size, default=record)
        name = f"{largest.attrs.get('name') or record.op.name}_folded"
        constant = Record(INPUT, (), {"name": name}, record.shape, record.dtype)
        cell = self.prepared(array, record, cells) if cells else ConstantStorage(array)
        self.states.append(State(name, constant, None, cell))
        return constant

    def with_constants(self) -> Program:
        """The program with its constants; the records that computed them are left as dead code."""
        now, records = {}, []
        for record in self.program.records:
            new = self.constants.get(record)
            if new is None:
                new = substitute(record, now) if now else record
            else:
                now[record] = new
            if new.op is not INPUT:
                records.append(new)
        return with_records(self.program, records, now)

    def value(self, record: Record):
        """The value of a known record."""
        for r in self.cells.keys() - self.values.keys():
            self.values[r] = self.cells[r].read()
        return value_of(record, self.values)


def value_of(record: Record, values: dict):
    """The value of a record, computed from `values`, to which it is added."""
    todo = [record]
    while todo:  # unrolled loops are too deep for recursion
        r = todo[-1]
        missing = [x for x in r.inputs if x.op is not NUMBER and x not in values]
        if r not in values and missing:
            todo += missing
            continue
        if todo.pop() not in values:
            arrays = [x.attrs["value"] if x.op is NUMBER else values[x] for x in r.inputs]
            values[r] = QUIET.copy().run(r.op.evaluate, NUMPY, arrays, r.attrs)
    return values[record]


def uniform(array) -> bool:
    """Whether all elements of an array are equal to the last bit."""
    if not array.size:
        return False
    bits = NUMPY.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")
    return bool((bits == bits[0]).all())


FOLDERS: dict[bool, type[ConstantFolder]] = {False: ConstantFolder, True: ConstantFolder}
"""The folder, by whether states are frozen: `minipaddle.passes` has one for these."""


@program_pass("folding", looks_for=["known values"], frozen=(False,))
def folding(program: Program, *, frozen: bool) -> Program:
    """The program with constants instead of records whose values are known."""
    return FOLDERS[bool(frozen)](program).run()
