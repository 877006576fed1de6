"""Constant folding at inference (`frozen`): values that depend only on weights.

A value that depends only on states which the program does not update is computed before the run,
and again after one of these was written or replaced (`Prepared`): so weights are transposed, or
folded with a batch norm, once. A weight that a product of not many rows reads, is such a value,
too (`BorrowedWeight`): the kernel may want it in another form.
"""

from __future__ import annotations

from dataclasses import replace

from ..engine.core.dtype import HALVES, float32
from ..engine.core.record import Record
from ..engine.eager.device import NUMPY
from ..engine.eager.storage import TensorStorage
from ..engine.ir.edit import map_records, with_inputs
from ..engine.ir.program import INPUT, Program, State
from ..engine.ops.elementwise import cast
from ..engine.ops.movement import reshape, transpose
from ..engine.passes.folding import FOLDERS, ConstantFolder, ConstantStorage, value_of
from ..ops.products import product
from .half_products import multiplies_halves

FEWEST, MOST = 8, 256
"""Rows of products whose weights are borrowed: fewer read a weight as it lies, as fast as it comes
from memory; for more, packing it in each run takes a small part of the time."""

FEWEST_HALVES = 3
"""The same for half precision, which tiles read from panels alone."""

BLAS, TALL = 1 << 20, 32
"""Elements of a matrix and rows from which on OpenBLAS, which packs by itself, is faster."""

LARGE = 1 << 17
"""Fewest bytes of a weight that is borrowed: smaller ones stay in the second-level cache."""


class Prepared(ConstantStorage):
    """Where the value of a record is kept, made of `cells` that may change between runs."""

    def __init__(self, array, record: Record, cells: dict):
        super().__init__(NUMPY.array(array, dtype=record.dtype, order="C"))
        self.record, self.cells = record, cells

    @property
    def sources(self) -> list:
        """The cells that may change."""
        cells = []
        for cell in self.cells.values():
            cells += cell.sources if isinstance(cell, Prepared) else [cell]
        return cells

    def renew(self) -> None:
        """Compute the value again, into the same memory."""
        values = {record: cell.read() for record, cell in self.cells.items()}
        self.array[...] = value_of(self.record, values)


class BorrowedWeight(Prepared):
    """A weight as it is: the array of its cell, without a copy until `keep` makes one."""

    kept = False

    def __init__(self, cell: TensorStorage, record: Record):
        self.array, self.record, self.cells = cell.read(), record, {record: cell}

    def read(self):
        return self.array if self.kept else self.sources[0].read()

    def keep(self) -> None:
        """Copy the weight, for a kernel that reads it as it is."""
        if not self.kept:
            self.array, self.kept = NUMPY.array(self.read(), self.record.dtype, order="C"), True

    def renew(self) -> None:
        if self.kept:
            self.array[...] = self.sources[0].read()


def borrows(record: Record, weight: Record) -> bool:
    """Whether a record is a product of not many rows and a large matrix."""
    x, y = record.inputs[0].spec, weight.spec
    rows = x.size // max(y.shape[record.attrs["y_perm"][0]], 1)
    half = y.dtype in HALVES
    most = MOST if y.size < BLAS or half else TALL
    return (FEWEST_HALVES if half else FEWEST) <= rows < most and y.nbytes >= LARGE


def weight_of(record: Record, weights: dict) -> Record | None:
    """The matrix that a product reads, if it is one of these weights. Half precision is read as it
    is stored: a product of float32 widens it.
    """
    if record.op is not product or record.inputs[1].spec.ndim != 2:
        return None
    x, y = record.inputs
    if y.op is cast and y.dtype == x.dtype == float32.numpy and y.inputs[0].dtype in HALVES:
        (y,) = y.inputs
    return y if y in weights else None


def with_borrowed_weights(program: Program) -> Program:
    """The program whose products read half-precision weights as they are stored, and, if they have
    not many rows, through states of its own.
    """
    known = [s for s in program.states if is_weight(s) or isinstance(s.storage, Prepared)]
    weights, states = {s.record: s for s in known}, []

    def each(record, inputs):
        weight = weight_of(record, weights)
        if weight is not None and is_weight(weights[weight]) and borrows(record, weight):
            state = weights[weight]
            borrowed = Record(INPUT, (), {"name": f"{state.name}_borrowed"}, *state.record.spec)
            states.append(
                State(state.name, borrowed, None, BorrowedWeight(state.storage, state.record))
            )
            inputs = [inputs[0], borrowed]
        elif weight is not None:
            inputs = [inputs[0], weight]
        return with_inputs(record, inputs)

    new = map_records(program, each)
    return replace(new, states=[*new.states, *states]) if states else new


def is_weight(state: State) -> bool:
    """Whether a state is a tensor that the program does not update."""
    return state.update is None and isinstance(state.storage, TensorStorage)


def widening_of(x: Record) -> list[Record]:
    """The records from x to the cast of half precision that it is a view of; [] if none is."""
    if x.op in (reshape, transpose):
        rest = widening_of(x.inputs[0])
        return rest and [x, *rest]
    return [x] if x.op is cast and x.inputs[0].dtype in HALVES else []


class FrozenFolder(ConstantFolder):
    """Folds what depends on constants and on states that the program does not update."""

    prepared = Prepared

    def run(self) -> Program:
        self.kept: set[Record] = set()  # weights that a product reads in half precision
        products = [r for r in self.program.records if r.op is product]
        if products and not self.inside:  # first: a known value is folded, a widened weight too
            self.program = with_borrowed_weights(self.program)
            products = [r for r in self.program.records if r.op is product]
        for record in products:
            x, y = map(widening_of, record.inputs)
            halves = [chain[-1].inputs[0] for chain in (x, y) if chain]
            if len(halves) == 2 and multiplies_halves(record, *halves, packed=True):
                self.kept.update(y)
        return super().run()

    def constant(self, record: Record) -> Record | None:
        return None if record in self.kept else super().constant(record)

    def is_known(self, state: State) -> bool:
        return is_weight(state) or super().is_known(state)


FOLDERS[True] = FrozenFolder
