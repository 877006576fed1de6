"""The two forms of a loop nest with reductions in C.

    for (each row)                for (each block of columns)
        for (along the row)           for (down the columns)
            fold                          for (across) accumulate
        for (along the row)           for (across)
            use                           use

A nest whose innermost loop is folded runs by rows; one whose innermost loop is kept runs by
columns, with arrays of accumulators.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import nan, prod
from operator import attrgetter

from ..core import dtype as dt
from ..core.polynomial import ZERO, Polynomial, as_polynomial
from ..core.slots import slot
from ..passes.nest import Node, reached
from .accumulator import EXTREMES, Accumulator, reduction_clauses
from .kernel import C_TYPES, stack_array
from .kernel_schedule import pick
from .scalar import Text, literal, wide
from .writer import Writer, expensive, in_c

BLOCK = 1024
"""Columns that are accumulated together."""

WIDENED = 4096
"""Longest row of flags that is read in advance."""

ALONG, DOWN = 2048, 64
"""Terms of a row, or of a column, that are summed in their own dtype before the sum continues in
double. A row may have more: each lane of its innermost loop has a sum; a column has only one."""

LANES = 16
"""Floats in the longest vector. In a short row what is left beside whole vectors takes longest."""

ROW_BUFFER = 1 << 16
"""Largest buffer, in bytes, that keeps values of a row between two stages."""


def collapse(threads: tuple, loops, rule: int) -> tuple:
    """The OpenMP clauses, with the number of outer loops that are collapsed into one."""
    if not threads or len(loops) < 2:
        return threads
    count = pick("collapse", rule, range(1, len(loops) + 1))
    return (f"{threads[0]} collapse({count})", *threads[1:]) if count > 1 else threads


@slot("codegen.row_nest")
def row_nest(writer: Writer) -> None:
    """A nest whose innermost loop is folded: a row, then the next."""
    Rows(writer).write()


class Folding:
    """A nest with reductions. Each stage is one walk along the loops that are folded: it computes
    outputs and values that are kept for later, and adds terms to the accumulators.
    """

    element = ""  # which element of an accumulator belongs to an iteration
    width: int | None = None  # elements of an accumulator, if it is an array

    def __init__(self, writer: Writer):
        self.w, self.nest = writer, writer.nest
        self.along = [a for a in self.nest.loops if a not in writer.parallel]
        self.kept = [a for a in self.nest.loops if a in writer.parallel]
        self.length = prod(a.extent for a in self.along)
        self.later: dict[Node, None] = {}  # values that a later stage reads back

    def accumulators(self, stage: int) -> list[Accumulator]:
        return [Accumulator(n, self.w.fresh(n.of.op.name)) for n in self.w.folds(stage)]

    def accumulate(self, folds, outputs, buffers, limit: int, share: tuple) -> None:
        """One walk. Sums of more than `limit` terms continue in double. `share` are the OpenMP
        words with which threads share the walk.
        """
        w, few = self.w, self.length <= limit
        totals = {} if few else {f: w.fresh("total") for f in folds if f.is_rounded}
        others = [f for f in folds if f not in totals]
        sums = [("double", total, "0") for total in totals.values()]
        self.declare([each for f in others for each in f.variables] + sums)
        if share:
            clauses = reduction_clauses(others, size=self.width)
            share = (*share, *clauses, *reduction_clauses(totals, totals, self.width))
        with w.blocks(self.along, limit, *share) as along:
            self.declare([(f.type, f.name, "0") for f in totals])
            with self.walk(along, folds, share if few else ()):
                self.body(folds, outputs, buffers)
            element = self.element
            self.each([f"{t}{element} += {f.name}{element};" for f, t in totals.items()])
        w.put(*(f"{f.name} = {f.nan} ? {literal(nan, f.dtype).template} : {f.name};"
                for f in folds if f.nan))  # fmt: skip
        w.known.update({f.node: f.result(totals.get(f), element) for f in folds})

    def body(self, folds, outputs, buffers) -> None:
        """What is done with one element."""
        w, memo = self.w, {}
        targets = w.stores(outputs, memo)
        targets += [(t, w.text(n, memo), wide(n.dtype)) for n, t in buffers.items()]
        for f in folds:
            targets += f.steps(w.text(f.node.args[0], memo), self.element)
        w.assign(targets)

    def read_back(self, outputs) -> None:
        """Later stages read what these outputs have stored."""
        for name, record, node, at in outputs:
            if node in self.later:
                text = f"{name}[{in_c(at)}]"
                text = f"widen({text})" if record.dtype == dt.bfloat16.numpy else text
                self.w.known[node] = Text(text, (), wide(record.dtype))


class Rows(Folding):
    """A nest whose innermost loop is folded: each row is read once a stage."""

    def accumulators(self, stage: int) -> list[Accumulator]:
        found, n = super().accumulators(stage), self.length
        for f in found if n > 2 * LANES or n % LANES == 0 else ():
            if f.op.name in EXTREMES and f.dtype.kind == "f":
                f.nan = self.w.fresh("nan")
        return found

    def __init__(self, writer: Writer):
        super().__init__(writer)
        self.row: dict[Node, Text] = {}  # values that are computed once for each row

    def write(self) -> None:
        w, nest = self.w, self.nest
        threads = w.threads(nest.size) if nest.rows > 1 else ()
        threads = collapse(threads, self.kept, len(self.kept))
        self.later = self.buffered_values()
        with w.each_row(self.kept, *threads):
            self.widen()
            for stage in range(w.stages):
                self.row_outputs(stage)
                self.stage(stage)

    def widen(self) -> None:
        """Read the flags of a row once, as integers as wide as floats. In a loop over bytes gcc
        gives a sum of floats as many lanes as a vector has bytes, and adds them one by one.
        """
        w, along = self.w, {*self.along}
        flags = [n for n in self.nest.nodes() if n.kind == "load" and n.dtype == dt.bool_.numpy]
        flags = [n for n in flags if n.loops & along and not n.guard]
        if not flags or len(along) > 1 or self.length > WIDENED:
            return
        read = [(w.fresh("flags"), w.text(n, {}).template) for n in flags]
        w.put(*(stack_array("int32_t", name, self.length) for name, _ in read))
        with w.loop(self.along, w.simd):
            w.put(*(f"{name}[{self.flat()}] = {text};" for name, text in read))
        for node, (name, _) in zip(flags, read, strict=True):
            w.known[node] = Text(f"{name}[{self.flat()}]", (), node.dtype)

    def buffered_values(self) -> dict[Node, None]:
        """The values that a later stage reads back; in a short row also expensive ones."""
        kept = self.w.needed_later(self.length * 8 <= ROW_BUFFER)
        stored = self.w.needed_later(False)
        return kept if len(kept) == len(stored) or pick("keep", True, (False, True)) else stored

    def row_outputs(self, stage: int) -> None:
        if outputs := self.w.outputs(stage, True):
            self.w.assign(self.w.stores(outputs, self.row))

    def stage(self, stage: int) -> None:
        """One walk along the row."""
        w, folds = self.w, self.accumulators(stage)
        outputs = w.outputs(stage, False)
        stored = {n for *_, n, _ in outputs}
        kept = [n for n in self.later if n.stage == stage and n not in stored]
        if not (folds or outputs or kept):
            return
        self.hoist([f.node.args[0] for f in folds] + [n for *_, n, _ in outputs] + kept)
        buffers = {n: self.buffer(n) for n in kept}
        self.along_row(folds, outputs, buffers)
        self.read_back(outputs)
        w.known.update({n: Text(t, (), wide(n.dtype)) for n, t in buffers.items()})

    def buffer(self, node: Node) -> str:
        name = self.w.fresh("row")
        self.w.put(stack_array(C_TYPES[wide(node.dtype)], name, self.length))
        return f"{name}[{self.flat()}]"

    def flat(self) -> Polynomial:
        """The index of an element in its row."""
        i = ZERO
        for a in self.along:
            i = i * a.extent + as_polynomial(a)
        return i

    def hoist(self, roots: list[Node]) -> None:
        """Compute the values of the row that the loop needs before the loop begins."""
        w = self.w
        nodes = reached(roots, lambda n: n not in w.known and not w.nest.is_row(n))
        nodes = [n for n in nodes if n not in w.known and w.nest.is_row(n)]
        nodes = [n for n in nodes if n.kind in ("apply", "load", "select")]
        for node in sorted(nodes, key=attrgetter("depth")):  # operands come first
            name = w.fresh(node.of.op.name if node.kind == "apply" else "r")
            dtype = wide(node.dtype)
            w.assign([(f"const {C_TYPES[dtype]} {name}", w.text(node, self.row), dtype)])
            self.row[node] = w.known[node] = Text(name, (), dtype)

    def along_row(self, folds, outputs, buffers) -> None:
        """The loops along the row. If there is only one row, threads share them."""
        share = self.w.threads(self.length) if self.nest.rows == 1 else ()
        inner = self.along[-1:] if any(f.is_rounded for f in folds) else self.along
        self.accumulate(folds, outputs, buffers, min(prod(a.extent for a in inner), ALONG), share)

    @contextmanager
    def walk(self, along, folds, words):
        lanes = (self.w.simd, *reduction_clauses(folds))
        with self.w.loop(along[:-1], *words), self.w.loop(along[-1:], *lanes):
            yield

    def declare(self, variables) -> None:
        self.w.put(*(f"{T} {name} = {value};" for T, name, value in variables))

    def each(self, lines: list[str]) -> None:
        self.w.put(*lines)


class Columns(Folding):
    """A nest whose innermost loop is kept: sums go down, across many columns at a time."""

    most = BLOCK  # columns at a time, by default

    def __init__(self, writer: Writer):
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
        wanted: dict[Node, None] = {}

        def own(node: Node) -> bool:
            row = w.nest.is_row(node) and node.kind == "apply" and node.stage == stage
            return row and node not in w.known and bool(stage or expensive(node))

        def before(node: Node) -> bool:
            return node not in w.known and (not w.nest.is_row(node) or node.stage <= stage)

        for later in range(stage, w.stages):
            roots = [f.args[0] for f in w.folds(later)]
            roots += [n for *_, n, _ in w.outputs(later, False)]
            for node in reached(roots, lambda n: not own(n) and before(n)):
                if own(node):
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
        w.known |= {n: Text(f"{x}{self.element}", (), wide(n.dtype)) for n, x in arrays.items()}

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
