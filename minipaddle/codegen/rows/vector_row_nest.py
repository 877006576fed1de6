"""Rows whose innermost loop gcc makes vectors of: flags as integers, extremes without branches."""

from __future__ import annotations

from math import nan as NAN

from ...engine.codegen import rows
from ...engine.codegen.accumulator import EXTREMES, Accumulator
from ...engine.codegen.kernel import C_TYPES, stack_array
from ...engine.codegen.scalar import ScalarText, cast, literal
from ...engine.core import dtype as dt
from ...engine.passes.nest import NestNode
from ..open_sizes import is_open

WIDENED = 4096
"""Longest row of flags that is read in advance."""

LANES = 16
"""Floats in the longest vector. In a short row what is left beside whole vectors takes longest."""


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
