"""A loop nest with reductions in C: row by row.

    for (each row)
        for (along the row)
            fold
        for (along the row)
            use

`minipaddle/codegen` has other forms: `columns` for a nest whose innermost loop is kept.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from operator import attrgetter

from ..core.polynomial import ZERO, Polynomial, as_polynomial
from ..core.slots import slot
from ..passes.nest import NestNode, reach
from .accumulator import Accumulator, reduction_clauses
from .kernel import C_TYPES, stack_array
from .kernel_schedule import pick
from .scalar import ScalarText, read, wide
from .writer import NestWriter, in_c

ALONG = 2048
"""Terms of a row that are summed in their own dtype before the sum continues in double. Each lane
of a vector has such a sum."""

ROW_BUFFER = 1 << 16
"""Largest buffer, in bytes, that keeps values of a row between two stages."""


def collapse(threads: tuple, loops, rule: int) -> tuple:
    """The OpenMP clauses, with the number of outer loops that are collapsed into one."""
    if not threads or len(loops) < 2:
        return threads
    count = pick("collapse", rule, range(1, len(loops) + 1))
    return (f"{threads[0]} collapse({count})", *threads[1:]) if count > 1 else threads


class Rows:
    """A nest with reductions, one row after the other. Each stage is one walk along the loops that
    are folded: it computes outputs and values that are kept for later, and adds terms to the
    accumulators.
    """

    element = ""  # which element of an accumulator belongs to an iteration
    width: int | None = None  # elements of an accumulator, if it is an array

    def __init__(self, writer: NestWriter):
        self.w, self.nest = writer, writer.nest
        self.along = [a for a in self.nest.loops if a not in writer.parallel]
        self.kept = [a for a in self.nest.loops if a in writer.parallel]
        self.length = prod(a.extent for a in self.along)
        self.later: dict[NestNode, None] = {}  # values that a later stage reads back
        self.row: dict[NestNode, ScalarText] = {}  # values that are computed once for each row

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
        w.put(*(f.last for f in folds if f.last))
        w.known.update({f.node: f.result(totals.get(f), element) for f in folds})

    def body(self, folds, outputs, buffers) -> None:
        """The statements for one element."""
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
                self.w.known[node] = read(f"{name}[{in_c(at)}]", record.dtype)

    def write(self) -> None:
        w, nest = self.w, self.nest
        threads = w.threads(nest.size) if nest.rows > 1 else ()
        threads = collapse(threads, self.kept, len(self.kept))
        self.later = self.find_buffered()
        with w.each_row(self.kept, *threads):
            for stage in range(w.stages):
                self.row_outputs(stage)
                self.stage(stage)

    def find_buffered(self) -> dict[NestNode, None]:
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
        w.known.update({n: ScalarText(t, (), wide(n.dtype)) for n, t in buffers.items()})

    def buffer(self, node: NestNode) -> str:
        name = self.w.fresh("row")
        self.w.put(stack_array(C_TYPES[wide(node.dtype)], name, self.length, ROW_BUFFER // 8))
        return f"{name}[{self.flat()}]"

    def flat(self) -> Polynomial:
        """The index of an element in its row."""
        i = ZERO
        for a in self.along:
            i = i * a.extent + as_polynomial(a)
        return i

    def hoist(self, roots: list[NestNode]) -> None:
        """Compute the values of the row that the loop needs before the loop begins."""
        w = self.w
        nodes = reach(roots, lambda n: n not in w.known and not w.nest.is_row(n))
        nodes = [n for n in nodes if n not in w.known and w.nest.is_row(n)]
        nodes = [n for n in nodes if n.kind in ("apply", "load", "select")]
        for node in sorted(nodes, key=attrgetter("depth")):  # operands first
            name = w.fresh(node.of.op.name if node.kind == "apply" else "r")
            dtype = wide(node.dtype)
            w.assign([(f"const {C_TYPES[dtype]} {name}", w.text(node, self.row), dtype)])
            self.row[node] = w.known[node] = ScalarText(name, (), dtype)

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


WRITERS: list[type[Rows]] = [Rows]
"""The last one writes. `minipaddle.codegen` adds one that helps gcc with flags and extremes."""


@slot("codegen.row_nest")
def row_nest(writer: NestWriter) -> None:
    """A nest with reductions: a row, then the next."""
    WRITERS[-1](writer).write()
