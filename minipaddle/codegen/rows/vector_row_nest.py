"""Rows whose innermost loop gcc makes vectors of: flags as integers, extremes without branches."""

from __future__ import annotations

from math import nan as NAN

from ...engine.codegen import rows
from ...engine.codegen.accumulator import EXTREMES, Accumulator, reduction_clauses
from ...engine.codegen.kernel import C_TYPES, stack_array
from ...engine.codegen.scalar import ScalarText, cast, literal
from ...engine.codegen.writer import expensive, for_head
from ...engine.core import dtype as dt
from ...engine.passes.nest import NestNode
from ..open_sizes import is_open

WIDENED = 4096
"""Longest row of flags that is read in advance."""

LANES = 16
"""Floats in the longest vector. In a short row what is left beside whole vectors takes longest."""


CHAINS = 4 * LANES
"""Sums that a long row is added to in turn: an addition waits for the one before it, so one vector
of sums takes longer than the memory.
"""

FLAGS = {dt.float32.numpy: dt.int32.numpy, dt.float64.numpy: dt.int64.numpy}
"""Integers as wide as floats: vectors of both have equally many lanes."""


class Extreme(Accumulator):
    """A largest or smallest value. The variable `nan` notes whether a term was NaN, and OpenMP
    joins both in a few instructions.
    """

    def __init__(self, node: NestNode, name: str, nan: str):
        super().__init__(node, name)
        self.nan, self.flag = nan, FLAGS[self.dtype]
        self.last = f"{name} = {nan} ? {literal(NAN, self.dtype).template} : {name};"

    @property
    def variables(self) -> list[tuple]:
        return [*super().variables, (C_TYPES[self.flag], self.nan, "0")]

    def steps(self, term: ScalarText, element: str) -> list[tuple]:
        into, term = self.name + element, cast(term, self.dtype)
        text = f"({{0}} {EXTREMES[self.op]} {into} ? {{0}} : {into})"
        noted = ScalarText(f"({{0}} != {{0}} ? 1 : {self.nan})", [term], self.flag)
        return [
            (into, ScalarText(text, [term], self.dtype), self.dtype),
            (self.nan, noted, self.flag),
        ]

    @property
    def clauses(self) -> list[tuple[str, str]]:
        return [(self.op.name, self.name), ("|", self.nan)]


class VectorRows(rows.Rows):
    """Rows as the engine writes them, in a form that gcc makes better vectors of."""

    def accumulators(self, stage: int) -> list[Accumulator]:
        accumulators, n = super().accumulators(stage), self.length
        if not is_open(n) and n <= 2 * LANES and n % LANES:
            return accumulators
        return [
            Extreme(f.node, f.name, self.w.fresh("nan"))
            if f.op in EXTREMES and f.dtype.kind == "f"
            else f
            for f in accumulators
        ]

    def accumulate(self, folds, outputs, buffers, limit: int, share: tuple) -> None:
        if outputs or buffers or not self.has_chains(folds, limit):
            return super().accumulate(folds, outputs, buffers, limit, share)
        w, a, totals = self.w, self.along[-1], {f: self.w.fresh("total") for f in folds}
        types = {f: "double" if f.is_rounded else f.type for f in folds}
        self.declare([(types[f], total, f.identity) for f, total in totals.items()])
        chained, first, k = reduction_clauses(folds, totals), w.fresh("first"), w.fresh("lane")
        with w.blocks(self.along, limit, *share, *chained * bool(share)) as along:
            w.put(*(stack_array(f.type, f.name, CHAINS) for f in folds))
            with w.block(for_head(k, 0, CHAINS)):
                w.put(*(f"{f.name}[{k}] = {f.identity};" for f in folds))
            chains = for_head(first, w.starts.get(a, 0), w.end(a), CHAINS)
            with w.loop(along[:-1]), w.block(chains):
                w.put("#pragma GCC unroll 16")
                with w.block(for_head(k, 0, CHAINS)):
                    w.put(f"const int64_t {a.name} = {first} + {k};")
                    self.element = f"[{k}]"
                    self.body(folds, [], {})
            w.put(" ".join(["#pragma omp simd", *chained]))
            with w.block(for_head(k, 0, CHAINS)):
                w.put(*(f"{t} {f.clause}= {f.name}[{k}];" for f, t in totals.items()))
        self.element = ""
        w.known.update({f.node: f.result(total) for f, total in totals.items()})

    def has_chains(self, folds, limit: int) -> bool:
        """Whether a row is long, its terms are sooner there than their sum, and each of its blocks
        is a whole number of chains.
        """
        if is_open(self.length) or not 4 * CHAINS <= limit < self.length:
            return False
        if self.along[-1].extent % CHAINS or limit % CHAINS:
            return False
        plain = all(f.clause in ("+", "*") and f.dtype.kind == "f" for f in folds)
        return plain and not any(expensive(f.node.args[0]) for f in folds)

    def row_outputs(self, stage: int) -> None:
        if stage == 0:
            self.widen()
        super().row_outputs(stage)

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
        w.put(*(stack_array("int32_t", name, self.length, WIDENED) for name, _ in read))
        with w.loop(self.along, w.simd):
            w.put(*(f"{name}[{self.flat()}] = {text};" for name, text in read))
        for node, (name, _) in zip(flags, read, strict=True):
            w.known[node] = ScalarText(f"{name}[{self.flat()}]", (), node.dtype)


rows.WRITERS.append(VectorRows)
