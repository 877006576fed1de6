"""What a program computes of parameters alone: before its runs, and again when one has changed."""

from __future__ import annotations

import threading
from operator import is_

from ..core import record
from ..passes.folding import Prepared

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
