"""A loop nest as C, for some of its rows: those that an earlier part of a kernel has completed.

It knows which rows; their formulas are written by the engine's `NestWriter`.
"""

from __future__ import annotations

from contextlib import contextmanager

from ...engine.codegen.writer import NestWriter, for_head
from ...engine.core.symbols import Loop
from ...engine.passes.nest import Nest
from .collapsed_loops import declare_loops, flat_name


class RowsWriter(NestWriter):
    """Writes the body of a nest for `rows`: (first, last, elements of a row), on one thread."""

    def __init__(self, nest: Nest, names: list[str], outs: list[str], rows: tuple):
        super().__init__(nest, names, outs)
        self.rows = rows

    @contextmanager
    def each_row(self, loops: list[Loop], *words: str):
        first, last, _ = self.rows
        row = flat_name(loops, "row")
        with self.block(for_head(row, first, last)):
            self.put(*declare_loops("int64_t", row, loops))
            yield

    @contextmanager
    def along_rows(self, loop: Loop):
        first, last, length = self.rows
        self.put(f"#pragma omp {self.simd}")
        with self.block(for_head(loop.name, f"{first} * {length}", f"{last} * {length}")):
            yield

    def threads(self, size: int) -> tuple[str, ...]:
        return ()
