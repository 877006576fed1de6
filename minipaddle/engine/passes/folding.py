"""Constants: what depends on no input and no state that changes is computed now, not at every run.

A value that is one number everywhere becomes `full`, which costs nothing. Another one becomes a
state that holds it and is never written. At inference (`frozen`) what depends on states alone that
the program does not update is computed before the run, and again when one of them was written or
replaced (`Prepared`): so weights are transposed, or folded with a batch norm, once.

What is kept must pay for its memory: beyond `LARGEST` elements a value is kept only if it is no
larger than the frozen states it was made of. Reshapes and broadcasts are free and stay.
"""

from __future__ import annotations

from ..core.record import Record
from ..eager.cells import TensorCell
from ..eager.device import NUMPY, QUIET
from ..ir.cut import has_effect
from ..ir.edit import map_regions, substitute, with_records
from ..ir.program import INPUT, ITEM, NUMBER, Program, State, regions
from ..ops.creation import assign, full
from ..ops.movement import broadcast_to, reshape
from .registry import program_pass

LARGEST = 1 << 16
FREE = {reshape, broadcast_to, assign}


class Constant:
    """Where a state is kept that is never written."""

    def __init__(self, array):
        self.array = array

    def read(self):
        return self.array


class Prepared(Constant):
    """Where the value of a record is kept, made of `cells` that may change between runs."""

    def __init__(self, array, record: Record, cells: dict):
        super().__init__(NUMPY.array(array, dtype=record.dtype, order="C"))
        self.record, self.cells = record, cells

    @property
    def sources(self) -> list:
        """The cells that may change."""
        found = []
        for cell in self.cells.values():
            found += cell.sources if isinstance(cell, Prepared) else [cell]
        return found

    def renew(self) -> None:
        """Compute it again, into the same memory."""
        values = {record: cell.read() for record, cell in self.cells.items()}
        self.array[...] = value_of(self.record, values)


class Folder:
    """Tells what is known of a program, and writes it with constants; in a region (`inside`) these
    can be nothing but numbers.
    """

    def __init__(self, program: Program, frozen: bool, inside: bool = False):
        self.program, self.inside = program, inside
        self.cells = {s.record: s.cell for s in program.states if is_known(s, frozen)}
        self.weight: dict[Record, int] = {}  # known values: elements of the states they are made of
        self.changing = {r: {r: c} for r, c in self.cells.items() if type(c) is not Constant}
        self.values: dict[Record, object] = {}
        self.states: list[State] = []
        self.constants: dict[Record, Record | None] = {}  # None: it had better be computed

    def run(self) -> Program:
        for record, cell in self.cells.items():
            self.weight[record] = cell.read().size
        for record in self.program.records:
            if self.knows(record):
                parts = {r for r in record.inputs if r.op is not NUMBER}
                self.weight[record] = sum(self.weight[r] for r in parts)
                made_of = [self.changing.get(r, {}) for r in parts]
                self.changing[record] = {r: c for cells in made_of for r, c in cells.items()}
            else:
                self.want(record.inputs)
        self.want(self.program.results)
        new = self.written()
        if self.states:
            new = Program(**vars(new))
            new.states = [*new.states, *self.states]
        return new

    def knows(self, record: Record) -> bool:
        """Can a value be computed now?"""
        computed = record.dtype is not None and record.op is not ITEM and not regions(record)
        return (
            computed
            and all(isinstance(n, int) for n in record.shape)
            and all(r.op is NUMBER or r in self.weight for r in record.inputs)
            and not has_effect(record)
        )

    def want(self, records) -> None:
        """Make constants of what is known of these values, which the program uses when it runs."""
        todo = [*reversed(records)]
        while todo:
            r = todo.pop()
            if r in self.weight and r not in self.constants and r.op is not INPUT:
                self.constants[r] = self.constant(r)
                todo += reversed(r.inputs) if self.constants[r] is None else ()

    def constant(self, record: Record) -> Record | None:
        """A known value as a constant; None if it had better be computed."""
        if not record.inputs or record.spec.size > max(LARGEST, self.weight[record]):
            return None
        try:
            array = self.value(record)
        except Exception:  # it is for the run to raise, if it ever comes there
            return None
        cells = self.changing[record]
        if uniform(array) and not cells:
            attrs = {"shape": record.shape, "value": array.flat[0].item(), "dtype": record.dtype}
            return record.derive(full, [], attrs, record.spec, 0)
        if record.op in FREE or self.inside:
            return None
        name = self.named(record)
        given = Record(INPUT, (), {"name": name}, record.shape, record.dtype)
        cell = Prepared(array, record, cells) if cells else Constant(array)
        self.states.append(State(name, given, None, cell))
        return given

    def named(self, record: Record) -> str:
        """A constant's name: that of the largest weight it was made of, or of its operator."""
        made, todo = {}, [record]
        while todo:
            r = todo.pop()
            if r not in made:
                made[r] = None
                todo += r.inputs
        sources = [r for r in made if r in self.cells]
        largest = max(sources, key=lambda r: r.spec.size, default=None)
        name = "" if largest is None else largest.attrs["name"]
        return f"{name or record.op.name}_folded"

    def written(self) -> Program:
        """The program with its constants; what they were computed by is dead."""
        now, records = {}, []
        for record in self.program.records:
            new = self.constants.get(record)
            if new is None:
                inside = map_regions(record, lambda region: Folder(region, False, True).run())
                new = substitute(record, now, inside)
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
    """The value of a record, which `values` says or it is computed from; they keep it."""
    todo = [record]
    while todo:  # a loop in Python makes chains too long for recursion
        r = todo[-1]
        missing = [x for x in r.inputs if x.op is not NUMBER and x not in values]
        if r not in values and missing:
            todo += missing
            continue
        if todo.pop() not in values:
            arrays = [x.attrs["value"] if x.op is NUMBER else values[x] for x in r.inputs]
            values[r] = QUIET.copy().run(r.op.evaluate, NUMPY, arrays, r.attrs)
    return values[record]


def is_known(state: State, frozen: bool) -> bool:
    """Does a state hold now what it will hold whenever the program runs?"""
    if isinstance(state.cell, Constant):
        return True
    return frozen and state.update is None and isinstance(state.cell, TensorCell)


def uniform(array) -> bool:
    """Is an array one number everywhere, to the last bit?"""
    if not array.size:
        return False
    bits = NUMPY.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")
    return bool((bits == bits[0]).all())


@program_pass(
    "folding",
    frozen=(False,),
)
def folding(program: Program, *, frozen: bool) -> Program:
    """The program with constants in the place of what is known."""
    return Folder(program, frozen).run()
