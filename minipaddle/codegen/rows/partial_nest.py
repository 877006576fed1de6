"""A loop nest as C, for some of its rows: those that an earlier part of a kernel has completed.

It knows which rows; their formulas are written by the engine's `NestWriter`.
"""

from __future__ import annotations

from contextlib import contextmanager

from ...engine.codegen.writer import NestWriter, for_head
from ...engine.core.symbols import Loop
from ...engine.passes.nest import Nest
from ..open_sizes import is_open
from .collapsed_loops import count_from, count_on, declare_loops, flat_name


class RowsWriter(NestWriter):
    """Writes the body of a nest for `rows`: (first, last, elements of a row), on one thread."""

    def __init__(self, nest: Nest, names: list[str], outs: list[str], rows: tuple):
        super().__init__(nest, names, outs)
        self.rows = rows

    @contextmanager
    def each_row(self, loops: list[Loop], *words: str):
        first, last, _ = self.rows
        row = flat_name(loops, "row")
        counted = len(loops) > 1 and any(is_open(a.extent) for a in loops)
        with self.block(for_head(row, count_from(first, loops) if counted else first, last)):
            self.put(*([] if counted else declare_loops("int64_t", row, loops)))
            yield
            self.put(*([count_on(loops)] if counted else []))

    @contextmanager
    def along_rows(self, loop: Loop):
        first, last, length = self.rows
        self.put(f"#pragma omp {self.simd}")
        with self.block(for_head(loop.name, f"{first} * {length}", f"{last} * {length}")):
            yield

    def threads(self, size: int) -> tuple[str, ...]:
        return ()
