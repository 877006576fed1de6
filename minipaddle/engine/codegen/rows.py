"""The three forms of a loop nest in C.

    for (each element)    for (each row)                for (each block of columns)
        store                 for (along the row)           for (down the columns)
                                  fold                          for (across) accumulate
                              for (along the row)           for (across)
                                  use                           use

A nest whose innermost loop is folded runs by rows; one whose innermost loop is kept runs by
columns, with arrays of accumulators.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from operator import attrgetter

from ..core import dtype as dt
from ..core.polynomial import ZERO, Polynomial, as_polynomial
from ..core.slots import slot
from ..passes.node import Node, reached
from .accumulator import Accumulator, reduction_clauses
from .kernel import C_TYPES, stack_array
from .kernel_schedule import pick
from .scalar import Text, wide
from .writer import Writer, expensive, in_c

BLOCK = 1024
"""Columns that are accumulated together."""

WIDENED = 4096
"""Longest row of flags that is read in advance."""

ALONG, DOWN = 2048, 128
"""Terms of a row, or of a column, that are summed in their own dtype before the sum continues in
double. A row may have more terms: each vector lane has a partial sum; a column has only one."""

ROW_BUFFER = 1 << 16
"""Largest buffer, in bytes, that keeps values of a row between two stages."""


def body_of(writer: Writer) -> str:
    """The body of the function that computes a nest."""
    loops = writer.nest.loops
    if not writer.nest.reduces:
        elementwise(writer, loops)
    elif not loops or loops[-1] not in writer.parallel:
        row_nest(writer)
    else:
        Columns(writer).write()
    return "\n".join(writer.lines)


def elementwise(w: Writer, loops) -> None:
    """A nest without reductions: each element once."""
    if len(loops) == 1:
        with w.along_rows(loops[0]):
            w.assign(w.stores(w.outputs(), {}))
        return
    threads = collapse(w.threads(w.nest.size), loops[:-1], 1)
    with w.each_row(loops[:-1], *threads), w.loop(loops[-1:], w.simd):
        w.assign(w.stores(w.outputs(), {}))


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


class Rows:
    """A nest whose innermost loop is folded: each row is read once a stage."""

    def __init__(self, writer: Writer):
        self.w, self.nest = writer, writer.nest
        self.along = [a for a in self.nest.loops if a not in writer.parallel]
        self.row: dict[Node, Text] = {}  # values that are computed once for each row
        self.length = prod(a.extent for a in self.along)

    def write(self) -> None:
        w, nest = self.w, self.nest
        kept = [a for a in nest.loops if a in w.parallel]
        threads = w.threads(nest.size) if nest.rows > 1 else ()
        threads = collapse(threads, kept, len(kept))
        self.later = self.buffered_values()
        with w.each_row(kept, *threads):
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
        outputs = self.w.outputs(stage, True)
        if outputs:
            self.w.assign(self.w.stores(outputs, self.row))

    def stage(self, stage: int) -> None:
        """One loop along the row: fold, keep, store."""
        w = self.w
        folds = [Accumulator(n, w.fresh(n.of.op.name)) for n in w.folds(stage)]
        outputs = w.outputs(stage, False)
        stored = {n for *_, n, _ in outputs}
        kept = [n for n in self.later if n.stage == stage and n not in stored]
        if not (folds or outputs or kept):
            return
        self.hoist([f.node.args[0] for f in folds] + [n for *_, n, _ in outputs] + kept)
        buffers = {n: self.buffer(n) for n in kept}
        totals = self.loops(folds, outputs, buffers)
        w.known.update({f.node: f.result(totals.get(f)) for f in folds})
        for name, record, node, at in outputs:
            if node in self.later:
                w.known[node] = self.reread(f"{name}[{in_c(at)}]", record.dtype)
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

    @staticmethod
    def reread(text: str, dtype) -> Text:
        text = f"widen({text})" if dtype == dt.bfloat16.numpy else text
        return Text(text, (), wide(dtype))

    def hoist(self, roots: list[Node]) -> None:
        """Compute the values of the row that the loop needs before the loop begins."""
        w = self.w
        nodes = reached(roots, lambda n: n not in w.known and not w.nest.is_row(n))
        found = [n for n in nodes if n not in w.known and w.nest.is_row(n)]
        found = [n for n in found if n.kind in ("apply", "load", "select")]
        for node in sorted(found, key=attrgetter("depth")):  # operands come first
            name, dtype = (
                w.fresh(node.of.op.name if node.kind == "apply" else "r"),
                wide(node.dtype),
            )
            w.assign([(f"const {C_TYPES[dtype]} {name}", w.text(node, self.row), dtype)])
            self.row[node] = w.known[node] = Text(name, (), dtype)

    def loops(self, folds, outputs, buffers) -> dict[Accumulator, str]:
        """The loops along the row. If there is only one row, threads share them. Returns the totals
        of the sums that continue in double.
        """
        w, few = self.w, self.length <= ALONG
        totals = {} if few else {f: w.fresh("total") for f in folds if f.is_rounded}
        others = [f for f in folds if f not in totals]
        w.put(*(f"{f.type} {f.name} = {f.identity};" for f in others))
        w.put(*(f"double {total} = 0;" for total in totals.values()))
        share = w.threads(self.length) if self.nest.rows == 1 else ()
        across = (
            (*share, *reduction_clauses(others), *reduction_clauses(totals, totals))
            if share
            else ()
        )
        with w.blocks(self.along, ALONG, *across) as along:
            w.put(*(f"{f.type} {f.name} = 0;" for f in totals))
            lanes = (w.simd, *reduction_clauses(folds))
            with w.loop(along[:-1], *(across if few else ())), w.loop(along[-1:], *lanes):
                self.body(folds, outputs, buffers)
            w.put(*(f"{total} += {f.name};" for f, total in totals.items()))
        return totals

    def body(self, folds, outputs, buffers) -> None:
        w, memo = self.w, {}
        targets = w.stores(outputs, memo)
        targets += [(t, w.text(n, memo), wide(n.dtype)) for n, t in buffers.items()]
        targets += [
            (f.name, f.combine(w.text(f.node.args[0], memo), f.name), f.dtype) for f in folds
        ]
        w.assign(targets)


class Columns:
    """A nest whose innermost loop is kept: sums go down, across many columns at a time."""

    def __init__(self, writer: Writer):
        self.w, self.nest = writer, writer.nest
        self.down = [a for a in self.nest.loops if a not in writer.parallel]
        kept = [a for a in self.nest.loops if a in writer.parallel]
        self.outer, self.across = kept[:-1], kept[-1]
        n = self.across.extent
        self.block = pick("columns", BLOCK, [b for b in (64, 128, 256, 512, 2048, 4096) if b < n])
        self.width, self.blocked = min(n, self.block), n > self.block

    def write(self) -> None:
        w, j = self.w, self.across.name
        threads = w.threads(self.nest.size)
        many = prod(a.extent for a in self.outer) > 1
        self.later = w.needed_later(False)
        with w.loop(self.outer, *(threads if many else ())):
            if self.blocked:
                if threads and not many:
                    w.put("#pragma omp " + " ".join(threads))
                end, n = self.across.extent, self.block
                w.put(f"for (int64_t first = 0; first < {end}; first += {n}) {{")
                w.depth += 1
                w.put(f"const int64_t last = first + {n} < {end} ? first + {n} : {end};")
            self.shared = threads if threads and not many and not self.blocked else ()
            self.place = f"{j} - first" if self.blocked else j
            for stage in range(w.stages):
                self.finish(stage)
                self.stage(stage)
            if self.blocked:
                w.depth -= 1
                w.put("}")

    @contextmanager
    def columns(self):
        """The loop across the columns."""
        w, j = self.w, self.across.name
        low, high = ("first", "last") if self.blocked else ("0", str(self.across.extent))
        w.put(f"#pragma omp {w.simd}", f"for (int64_t {j} = {low}; {j} < {high}; {j}++) {{")
        w.depth += 1
        yield
        w.depth -= 1
        w.put("}")

    def set(self, *values: tuple[str, str], sign: str = "=") -> None:
        """A loop across the columns that sets, or adds to, arrays of accumulators."""
        if values:
            with self.columns():
                self.w.put(*(f"{name}[{self.place}] {sign} {value};" for name, value in values))

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
                targets += [(f"{name}[{self.place}]", w.text(n, memo), wide(n.dtype))
                            for n, name in arrays.items()]  # fmt: skip
                w.assign(targets)
        w.known.update(
            {n: Text(f"{name}[{self.place}]", (), wide(n.dtype)) for n, name in arrays.items()}
        )

    def stage(self, stage: int) -> None:
        """One pass down the columns: accumulate and store."""
        w = self.w
        folds = [Accumulator(n, w.fresh(n.of.op.name)) for n in w.folds(stage)]
        outputs = w.outputs(stage, False)
        if not (folds or outputs):
            return
        few = prod(a.extent for a in self.down) <= DOWN
        totals = {} if few else {f: w.fresh("total") for f in folds if f.is_rounded}
        others = [f for f in folds if f not in totals]
        w.put(*(stack_array(f.type, f.name, self.width) for f in others))
        w.put(*(stack_array("double", total, self.width) for total in totals.values()))
        self.set(*((f.name, f.identity) for f in others), *((t, "0") for t in totals.values()))
        across = [
            *reduction_clauses(others, size=self.width),
            *reduction_clauses(totals, totals, self.width),
        ]
        simple = all(f.clause in "+*" for f in folds)
        share = (*self.shared, *across) if self.shared and simple else ()
        with w.blocks(self.down, DOWN, *share) as down:
            w.put(*(stack_array(f.type, f.name, self.width) for f in totals))
            self.set(*((f.name, "0") for f in totals))
            with w.loop(down, *(share if few else ())), self.columns():
                memo: dict = {}
                targets = w.stores(outputs, memo)
                for f in folds:
                    target = f"{f.name}[{self.place}]"
                    term = w.text(f.node.args[0], memo)
                    targets.append((target, f.combine(term, target), f.dtype))
                w.assign(targets)
            self.set(*((t, f"{f.name}[{self.place}]") for f, t in totals.items()), sign="+=")
        for f in folds:
            w.known[f.node] = f.result(totals.get(f), f"[{self.place}]")
        for name, record, node, at in outputs:
            if node in self.later:
                w.known[node] = Rows.reread(f"{name}[{in_c(at)}]", record.dtype)
