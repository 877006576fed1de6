"""The choices for the text of a product: what threads share, and the sizes of its blocks."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import NamedTuple

from ...engine.codegen.kernel_schedule import pick
from ...engine.codegen.writer import least, worth_sharing
from ..c_text import BLOCK, PARALLEL, SIZES, Workspace, share_where
from ..machine import facts
from ..open_sizes import clamp, is_open
from . import microkernel
from .bias_and_bounds import BiasAndBounds
from .microkernel import CHUNK
from .product import TALL, Product

SERIAL = 30_000
"""Multiplications for each lane of a vector below which a second thread does not pay: they take as
long as starting it, and waiting for it."""

LARGE = 1_000_000
"""Multiplications from which on a tile of its own is worth the time of its compilation."""

DEEP = 256
"""Terms that are summed in one pass: this many rows of a panel stay in the second-level cache."""

SPAN = 8
"""Widths of a tile that take all slices of terms before the next columns do."""

SHALLOW = 128
"""Fewest terms of a slice of a large product: with fewer, packing takes a part of the time."""


class ProductPlan(NamedTuple):
    """The choices for the text of one product."""

    p: Product
    T: str
    how: str
    names: tuple[str, str, str]  # of x (the rows' operand), y and the result
    add: bool
    rows: object  # an epilogue for blocks of rows, or None
    last: int  # size of the last axis of the result
    room: Workspace
    packed: bool = False  # whether y was packed into panels before the run
    finish: BiasAndBounds | None = None  # what becomes of the sums in registers
    stored: str = ""  # the type of y in memory, where it is half precision

    parallel = PARALLEL  # how threads share blocks of rows

    @property
    def tile(self) -> microkernel.Tile:
        """The part of the result in registers."""
        return microkernel.tile()

    @property
    def E(self) -> str:
        """The type of the numbers of y that are multiplied."""
        as_it_lies = (self.packed or self.how in ("dots", "stream")) and self.T != microkernel.PAIRS
        return self.stored if self.stored and as_it_lies else self.T

    @property
    def pays(self) -> str:
        """When threads pay (see `worth_sharing`). Of few rows the time is that of reading y, which
        is four times that of its products at most.
        """
        p = self.p
        work = p.work if p.m.size >= 4 else 4 * p.count * p.n.size * p.k.size
        return worth_sharing(work, SERIAL * (facts().vector // SIZES[self.T]))

    @property
    def pragma(self) -> str:
        """The pragma of the loop that threads share."""
        return share_where(self.pays, self.parallel)

    @property
    def threads(self) -> str:
        """The axis that threads share: "batch", "rows", "columns" or none."""
        if not self.pays or self.how == "blas":
            return ""
        can = {"batch": self.p.count > 1, "rows": self.p.m.size >= 16, "columns": self.wide}
        return pick("threads", self.rule, ["", *(axis for axis, there in can.items() if there)])

    @property
    def wide(self) -> bool:
        """Whether threads may share columns: there are enough, and no slices."""
        sliced = self.how == "panels" and not self.packed
        return self.p.n.size >= 4 * microkernel.WIDEST and not sliced

    @property
    def rule(self) -> str:
        """The axis that threads share by default."""
        if self.p.count >= 4 or (self.p.count > 1 and self.p.m.size < 16):
            return "batch"
        few = 16 if self.rows and not self.packed else 4 * TALL + 1  # an epilogue reads whole rows
        if self.wide and self.p.m.size < few:
            return "columns"
        return "rows" if self.p.m.size >= 16 else ""

    @property
    def chunk(self) -> str:
        """C text of the columns that are computed at a time; "" for all of them."""
        n, shared = self.p.n.size, self.threads == "columns"
        if self.how == "rows" or self.packed:
            panels = 3 if n >= 12 * self.tile.widest else 1
            return str(panels * self.tile.widest) if shared else ""
        each = f"({n} / threads / 32 + 1) * 32" if shared else n
        if self.how == "stream" and n > CHUNK:
            return least(each, CHUNK) if shared else str(CHUNK)
        return each if shared else ""

    @property
    def block(self) -> int:
        m, rule = self.p.m.size, self.rows_of_block
        rule = share_rows(m, rule) if self.threads == "rows" else rule
        return pick("block", rule, [b for b in (16, 32, 64, 128, 256) if b < m])

    @property
    def rows_of_block(self) -> int:
        """Rows of a block by default."""
        return BLOCK

    @property
    def deep(self) -> int:
        """Terms that are summed in one pass."""
        k = self.p.k.size
        return pick("deep", self.depth, [d for d in (128, 256, 512, 1024, 2048, 4096) if d < k])

    @property
    def span(self) -> int:
        """The columns of a block: all slices of terms are added to one block before the next block
        begins, so its results stay in the caches. An epilogue needs complete rows.
        """
        (_, m, n, k, _), each = self.p, SPAN * self.tile.widest
        if self.rows or k.size <= self.deep or each >= n.size:
            return n.size
        large = m.size * n.size * SIZES[self.T] > facts().third // 4
        return pick("span", each if large else n.size, [each, 2 * each, n.size])

    @property
    def far(self) -> bool:
        """Whether y, all of its matrices, exceeds the second-level cache."""
        p = self.p
        many = prod(a.size for a in p.batch if a.y)
        return many * p.n.size * p.k.size * SIZES[self.E] > facts().second // 2

    @property
    def sliced(self) -> bool:
        """Whether y is read some terms at a time, and the next ones are fetched meanwhile: it is
        not packed, and larger than the caches that it could stay in.
        """
        p, machine = self.p, facts()
        once = p.m.size <= self.tile.tall  # each of its elements meets one tile
        most = machine.first if once else machine.second // 2
        return self.how == "rows" and p.n.size * p.k.size * SIZES[self.T] > most

    @property
    def depth(self) -> int:
        """Terms that are summed in one pass by default. Those of a slice of y that is read a tile's
        width at a time take half of the first-level cache.
        """
        if not self.sliced:
            return DEEP
        return self.split_evenly(facts().first // 2 // (self.tile.widest * SIZES[self.T]))

    def split_evenly(self, most: int) -> int:
        """The terms of a slice, at most about `most`: all slices have equally many."""
        most, k = max(most // 8 * 8, 8), self.p.k.size
        return -(-k // -(-k // most) // 8) * 8


def share_rows(m: int, most: int) -> int:
    """Rows of a block: `most`, or fewer, so that several threads have some of a few rows."""
    return most if is_open(m) else min(most, -(-m // 32) * 8)


class Alone(ProductPlan):
    """The choices for a product in a kernel of its own: sizes follow from the processor's."""

    @cached_property
    def tile(self) -> microkernel.Tile:
        p = self.p
        if microkernel.has_tiles(self.T) or (p.work < LARGE and not is_open(p.work)):
            return microkernel.tile()
        return microkernel.fit_tile(p.m.size, p.n.size, self.T)

    @cached_property
    def depth(self) -> int:
        """The same; of packed terms an eighth of the second-level cache holds a panel, and half of
        the third one all panels, but DEEP at most.
        """
        machine, size, (_, _, n, k, _) = facts(), SIZES[self.T], self.p
        if self.how != "panels" or not n.size * k.size:
            return super().depth
        panel, row = self.tile.widest * size, n.size * size
        deep = 2 * DEEP if microkernel.has_tiles(self.T) else DEEP
        most = min(machine.second // 8 // panel, machine.third // 2 // row, deep)
        return self.split_evenly(max(most, SHALLOW))

    @property
    def rows_of_block(self) -> int:
        """A quarter of the second-level cache holds the terms of a block's rows, and their results
        if an epilogue reads these."""
        width = max(min(self.deep, self.p.k.size) + (self.p.n.size if self.rows else 0), 1)
        rows = facts().second // 4 // (width * SIZES[self.T]) // 8 * 8
        return clamp(rows, BLOCK, 4 * BLOCK)
