"""The number of threads of a nest, and the elements of each thread.

The elements that a reduction combines into one number are a *row*. A *team* of SIZE threads reduces
a row; each thread takes every SIZE-th element. Neighbouring threads read neighbouring memory:

    rows in memory      a team spans x: a warp of each of 4 rows, or a block of one row
    columns in memory   a team spans y, and 32 columns span x
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...engine.core.slots import slot
from ...engine.passes.nest import Nest

SHORT = 1024
"""Longest row that one warp reduces."""

BUSY = 128
"""Blocks that keep a GPU busy. With fewer blocks, long rows are split: into twice as many."""

MANY = 32768
"""Fewest elements of a nest for which another kernel pays, which joins the parts of rows."""


class Teams(NamedTuple):
    """Teams of `size` threads: `down` if they span y. `splits` teams share a row."""

    size: int
    beside: int  # teams of a block
    down: bool
    splits: int = 1

    @property
    def threads(self) -> tuple[int, int]:
        return (self.beside, self.size) if self.down else (self.size, self.beside)

    def row(self, T: str) -> str:
        """CUDA for the number of this thread's row, of type T."""
        block = "blockIdx.x" if T == "int" else f"({T})blockIdx.x"
        across = "x" if self.down else "y"
        return block if self.beside == 1 else f"{block} * {self.beside} + threadIdx.{across}"

    @property
    def member(self) -> str:
        return "threadIdx.y" if self.down else "threadIdx.x"

    def blocks(self, rows: int) -> int:
        return -(-rows // self.beside)

    @property
    def waits(self) -> bool:
        """Whether threads of several warps wait for each other."""
        return self.size > 32 or (self.down and self.size > 1)


@slot("codegen.cuda.teams")
def teams_of(nest: Nest) -> Teams:
    """The teams for a nest with reductions."""
    loops = nest.loops
    length = prod(a.extent for a in nest.reduction_loops)
    if loops and loops[-1] in nest.parallel_loops:
        size = 1 if length <= 8 else 8 if length <= 256 else 16
        return Teams(size, 32, True)
    if length <= 4:
        return Teams(1, 128, False)
    if length <= SHORT:
        return Teams(32, 4, False)
    return Teams(256 if length <= 8192 else 512, 1, False)


def splits_of(teams: Teams, nest: Nest) -> int:
    """The number of teams for each row, if there are too few rows."""
    length = prod(a.extent for a in nest.reduction_loops)
    blocks = teams.blocks(nest.rows)
    if blocks >= BUSY or nest.size < MANY:
        return 1
    return max(1, min(length // teams.size, -(-2 * BUSY // blocks)))


def index_type(nest: Nest) -> str:
    """The type of indices."""
    highest = max([nest.size, *(i.high for i in nest.indices())])
    return narrow_type(highest)


def narrow_type(highest: int) -> str:
    """The type of whole numbers up to this one: 64 bits take four times as long to divide."""
    return "int" if highest < 2**30 else "int64_t"
