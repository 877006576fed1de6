"""Constant folding at inference (`frozen`): values that depend only on weights.

A value that depends only on states which the program does not update is computed before the run,
and again after one of these was written or replaced (`Prepared`): so weights are transposed, or
folded with a batch norm, once.
"""

from __future__ import annotations

from ..engine.core.record import Record
from ..engine.eager.device import NUMPY
from ..engine.eager.storage import TensorStorage
from ..engine.ir.program import State
from ..engine.passes.folding import FOLDERS, Constant, Folder, value_of


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
        """Compute the value again, into the same memory."""
        values = {record: cell.read() for record, cell in self.cells.items()}
        self.array[...] = value_of(self.record, values)


class FrozenFolder(Folder):
    """Folds what depends on constants and on states that the program does not update."""

    prepared = Prepared

    def is_known(self, state: State) -> bool:
        frozen = state.update is None and isinstance(state.storage, TensorStorage)
        return frozen or super().is_known(state)


FOLDERS[True] = FrozenFolder
