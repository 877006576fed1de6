"""What a program computes of parameters alone: before its runs, and again when one has changed."""

from __future__ import annotations

import ctypes
import threading
from operator import is_

from ..core import record
from ..eager.device import NUMPY
from ..passes.folding import Prepared
from .arrays import address

IN_A_ROW = 4
"""After so many runs with other parameters each it pays no more."""


class Preparation:
    """The prepared values of an executable; `changes` counts the runs in a row that found a source
    written or replaced. (Memory that another library writes to, by DLPack, is not watched.)
    """

    def __init__(self, cells):
        self.prepared = [cell for cell in cells if isinstance(cell, Prepared)]
        self.sources = [*dict.fromkeys(s for cell in self.prepared for s in cell.sources)]
        self.changes, self.lock = 0, threading.Lock()
        self.look()

    def look(self) -> None:
        """Remember what the sources hold, and when that was written."""
        self.held = [s.read() for s in self.sources]
        self.keys = [record.key_of(array) for array in self.held]
        self.written = [*map(record._written.get, self.keys)]

    def stale(self) -> bool:
        """Was a source written or replaced?"""
        same = all(map(is_, [s.read() for s in self.sources], self.held))
        if same and [*map(record._written.get, self.keys)] == self.written:
            self.changes = 0
            return False
        return True

    def renew(self) -> None:
        """Compute all values again, in their order."""
        with self.lock:
            self.changes += 1
            self.look()  # first: who writes while this is computed is noticed next time
            for cell in self.prepared:
                cell.renew()

    @property
    def restless(self) -> bool:
        """Do the sources change with every run?"""
        return self.changes >= IN_A_ROW


class Early:
    """What C makes of constants in advance, and reads in their place (`codegen.kernel.Ahead`)."""

    def __init__(self, made):
        self.constants, places = [*made.constants], []
        states = [s.record for s in made.program.states]
        for state, ahead in made.kernels.ahead.items():
            k = states.index(state)
            made.given[made.inputs + k] = shape, dtype = (ahead.elements,), state.dtype
            places.append(k - len(states) + len(self.constants))
            self.constants[places[-1]] = NUMPY.empty(shape, dtype)
        table = ctypes.c_void_p * len(places)
        self.tables = [
            table(*(address(all_[k]) for k in places)) for all_ in (made.constants, self.constants)
        ]
        self.function = getattr(made.library, f"{made.source.prefix}_ahead") if places else None
        self.renew()

    def renew(self) -> None:
        """Make it again."""
        if self.function is not None:
            self.function(*self.tables)
