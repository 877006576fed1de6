"""A compiled program with a clock around each kernel."""

from __future__ import annotations

import ctypes
from copy import copy

from ...codegen.timed_step import write_timed_source
from ...engine.core.record import Record
from ...engine.executors.native import Executable


class TimedExecutable(Executable):
    """A compiled program that adds up how long each kernel takes."""

    source_of = staticmethod(write_timed_source)

    def times(self) -> list[tuple[float, Record]]:
        """The total seconds of the kernel of each record so far."""
        count = len(self.source.timed)
        ticks = (ctypes.c_double * count).in_dll(self.library, f"{self.source.prefix}_seconds")
        return list(zip(ticks, self.source.timed, strict=True))


def add_timers(executable: Executable) -> TimedExecutable:
    """The same program with a clock around each kernel."""
    twin = copy(executable)
    twin.__class__ = TimedExecutable
    twin.weights, twin.seconds = copy(executable.weights), {}
    twin.source = write_timed_source(executable.kernels, executable.plan)
    twin.load()
    return twin
