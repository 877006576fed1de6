"""Reductions along short rows: the rows are the lanes of a vector.

    for (each 16 rows)
        for (along a row)
            for (each of the rows) fold
        for (along a row)
            for (each of the rows) use

A row of 10 classes is no whole vector: along it, what is left beside whole vectors is computed one
by one, and so is the sum of the lanes. Across rows there is no such rest. Values that a later stage
reads back stay in a buffer in which the same element of all rows is contiguous.
"""

from __future__ import annotations

from contextlib import contextmanager

from ...engine.codegen.kernel import C_TYPES, stack_array
from ...engine.codegen.nest_kernel import FORMS
from ...engine.codegen.scalar import ScalarText, wide
from ...engine.codegen.writer import NestWriter, for_head, least
from .column_nest import Columns
from .vector_row_nest import LANES

NARROW = 4
"""Bytes of the smallest elements: with smaller ones a vector has more lanes than a block rows."""


def has_short_rows(w: NestWriter) -> bool:
    """Whether a nest folds one loop, too short for whole vectors, in enough rows for a vector."""
    kept = [a for a in w.nest.loops if a in w.parallel]
    along = [a for a in w.nest.loops if a not in w.parallel]
    if len(along) != 1 or not kept or kept[-1].extent < LANES or (w.rows and len(kept) > 1):
        return False
    loads = [n.dtype for n in w.nest.nodes() if n.kind == "load"]
    stored = [record.dtype for record, *_ in w.nest.outputs]
    n = along[0].extent
    return n < 2 * LANES and n % LANES > 0 and min(d.itemsize for d in loads + stored) >= NARROW


class ShortRows(Columns):
    """A nest with short rows, some rows at a time."""

    most = LANES

    def write(self) -> None:
        w, width = self.w, self.width
        first, last, _ = w.rows or (0, self.across.extent, 0)
        self.later, self.share = w.needed_later(True), ()
        self.start, self.lane, count = w.fresh("start"), w.fresh("lane"), w.fresh("count")
        self.count, self.element = count, f"[{self.lane}]"
        threads = w.threads(self.nest.size)
        outside = threads if self.outer else ()
        with w.loop(self.outer, *outside):
            if threads and not outside:
                w.put("#pragma omp " + " ".join(threads))
            with w.block(for_head(self.start, first, last, width)):
                even = w.rows is None and last % width == 0
                rows = width if even else least(f"{last} - {self.start}", width)
                w.put(f"const int64_t {count} = {rows};")
                for stage in range(w.stages):
                    self.finish(stage)
                    self.stage(stage)

    def stage(self, stage: int) -> None:
        """One walk along the rows."""
        folds, outputs = self.accumulators(stage), self.w.outputs(stage, False)
        buffers = {n: self.buffer(n) for n in self.later if n.stage == stage}
        if folds or outputs or buffers:
            self.accumulate(folds, outputs, buffers, self.length, ())
            self.w.known |= {n: ScalarText(t, (), wide(n.dtype)) for n, t in buffers.items()}

    def buffer(self, node) -> str:
        """The place of an element of a value that is read back."""
        name = self.w.fresh("row")
        self.w.put(stack_array(C_TYPES[wide(node.dtype)], name, self.length * self.width))
        return f"{name}[{self.width} * {self.along[0].name} + {self.lane}]"

    @contextmanager
    def columns(self):
        w = self.w
        w.put(f"#pragma omp {w.simd}")
        with w.block(for_head(self.lane, 0, self.count)):
            w.put(f"const int64_t {self.across.name} = {self.start} + {self.lane};")
            yield


FORMS.insert(1, (has_short_rows, lambda writer: ShortRows(writer).write()))
