"""A nest with reductions whose innermost loop is kept: sums run down many columns at a time.

for (each block of columns)
    for (down the columns)
        for (across) accumulate
    for (across)
        use
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod

from ...engine.codegen.kernel import C_TYPES, stack_array
from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.nest_kernel import FORMS
from ...engine.codegen.rows import Rows
from ...engine.codegen.scalar import ScalarText, wide
from ...engine.codegen.writer import NestWriter, expensive
from ...engine.passes.nest import NestNode, reach

BLOCK = 1024
"""Columns that are accumulated together."""

DOWN = 64
"""Terms of a column that are summed in their own dtype before the sum continues in double."""


def keeps_innermost(w: NestWriter) -> bool:
    """Whether a nest keeps its innermost loop."""
    return bool(w.nest.loops) and w.nest.loops[-1] in w.parallel


class Columns(Rows):
    """A nest by columns, with arrays of accumulators."""

    most = BLOCK  # columns at a time, by default

    def __init__(self, writer: NestWriter):
        super().__init__(writer)
        *self.outer, self.across = self.kept
        n, sizes = self.across.extent, (64, 128, 256, 512, 2048, 4096)
        self.block = pick("columns", self.most, [b for b in sizes if b < n])
        self.width = min(n, self.block)

    def write(self) -> None:
        w, across = self.w, self.across
        threads = w.threads(self.nest.size)
        outside = threads if prod(a.extent for a in self.outer) > 1 else ()
        blocks = threads if self.width < across.extent and not outside else ()
        self.share = () if outside or blocks else threads
        self.later = w.needed_later(False)
        with w.loop(self.outer, *outside), w.blocks([across], self.block, *blocks):
            start = w.starts.get(across)
            self.element = f"[{across.name} - {start}]" if start else f"[{across.name}]"
            for stage in range(w.stages):
                self.finish(stage)
                self.stage(stage)

    def finish(self, stage: int) -> None:
        """Compute all that each column now allows: outputs, and values that later stages need."""
        w = self.w
        outputs = w.outputs(stage, True)
        wanted: dict[NestNode, None] = {}

        def is_own(node: NestNode) -> bool:
            row = w.nest.is_row(node) and node.kind == "apply" and node.stage == stage
            return row and node not in w.known and bool(stage or expensive(node))

        def is_before(node: NestNode) -> bool:
            return node not in w.known and (not w.nest.is_row(node) or node.stage <= stage)

        for later in range(stage, w.stages):
            roots = [f.args[0] for f in w.folds(later)]
            roots += [n for *_, n, _ in w.outputs(later, False)]
            for node in reach(roots, lambda n: not is_own(n) and is_before(n)):
                if is_own(node):
                    wanted[node] = None
        arrays = {n: w.fresh(n.of.op.name) for n in wanted}
        for n, name in arrays.items():
            w.put(stack_array(C_TYPES[wide(n.dtype)], name, self.width))
        if outputs or arrays:
            with self.columns():
                memo: dict = {}
                targets = w.stores(outputs, memo)
                targets += [(f"{name}{self.element}", w.text(n, memo), wide(n.dtype))
                            for n, name in arrays.items()]  # fmt: skip
                w.assign(targets)
        w.known |= {
            n: ScalarText(f"{x}{self.element}", (), wide(n.dtype)) for n, x in arrays.items()
        }

    def stage(self, stage: int) -> None:
        """One walk down the columns."""
        folds, outputs = self.accumulators(stage), self.w.outputs(stage, False)
        if folds or outputs:
            share = self.share if all(f.clause in "+*" for f in folds) else ()
            self.accumulate(folds, outputs, {}, DOWN, share)
            self.read_back(outputs)

    @contextmanager
    def walk(self, along, folds, words):
        with self.w.loop(along, *words), self.columns():
            yield

    @contextmanager
    def columns(self):
        """The loop across the columns."""
        with self.w.loop([self.across], self.w.simd):
            yield

    def declare(self, variables) -> None:
        self.w.put(*(stack_array(T, name, self.width) for T, name, _ in variables))
        self.each([f"{name}{self.element} = {value};" for _, name, value in variables])

    def each(self, lines: list[str]) -> None:
        """The same lines for each column."""
        if lines:
            with self.columns():
                self.w.put(*lines)


FORMS.insert(0, (keeps_innermost, lambda writer: Columns(writer).write()))
