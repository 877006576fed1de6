"""The C file of a program that adds up how long each kernel takes."""

from __future__ import annotations

from ..engine.codegen.kernel import read_template
from ..engine.codegen.step import KernelTable
from ..engine.codegen.translation_unit import SourceFile
from ..engine.core.record import Record
from ..engine.passes.buffer_assignment import MemoryPlan
from .open_sizes import SizedStep, write_sized_source

NOW = read_template("now.c", __file__)


class TimedStep(SizedStep):
    """A file with the array `PREFIX_seconds`, which holds the seconds of the records in `timed`."""

    def __init__(self, kernels: KernelTable, plan: MemoryPlan):
        self.timed: list[Record] = []
        super().__init__(kernels, plan)
        seconds = f"double PREFIX_seconds[{max(len(self.timed), 1)}];"
        self.functions.insert(0, f'{NOW}__attribute__((visibility("default"))) {seconds}\n')

    def record(self, plan: MemoryPlan, record: Record) -> list[str]:
        """The computation of a record, by a kernel or the host, with the clock around it."""
        lines = super().record(plan, record)
        if record not in self.kernels.of:
            return lines
        self.timed.append(record)
        seconds = f"PREFIX_seconds[{len(self.timed) - 1}]"
        return [f"{seconds} -= now();", *lines, f"{seconds} += now();"]


def write_timed_source(kernels: KernelTable, plan: MemoryPlan) -> SourceFile:
    """The C file of a program, and in `timed` the records whose seconds it adds up."""
    step = TimedStep(kernels, plan)
    source = write_sized_source(kernels, step)
    source.timed = step.timed
    return source
