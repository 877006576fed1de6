"""The groups that `attention` computes in tiles: products, a softmax between them, products."""

from __future__ import annotations

from typing import NamedTuple

from ...engine.codegen.scalar import wide
from ...engine.core import dtype as dt
from ...engine.ir.program import Program
from ...engine.passes.nest import Nest, NestNode
from ...passes.masks import masks
from ...passes.strip_products import sums_rows
from ..products.online_softmax import find_softmax, folds_of, is_multiple
from ..products.product import Product, product_of
from ..products.strip_products import split_region
from .calls import CUDA_TYPES
from .packs import NBYTES

TILE = 64
"""Columns of a tile, as in the template."""

WIDEST = 128
"""Most columns of a result: threads keep its rows in registers."""

MOST_STRIPS = 2
"""Most matrices that products read: 48 KB of shared memory hold as many strips."""

FEWEST = 32
"""Fewest rows and columns of scores."""

FLOAT = dt.float32.numpy


class TileProduct(NamedTuple):
    """A product with the names of its operands, of which `x` may be a strip. It `sums` over the
    rows of the strip, or it reads them.
    """

    p: Product
    x: str
    y: str
    out: str
    sums: bool = False

    def lanes(self, of: str, dtype) -> int:
        """How many neighbours in a line of operand `of` are loaded at once."""
        p, lanes = self.p, NBYTES // dtype.itemsize
        lines = [(getattr(a, of), a.size) for a in (p.m if of == "x" else p.n, p.k)]
        steps = [getattr(a, of) for a in p.batch] + [step for step, _ in lines if step != 1]
        sizes = [size for step, size in lines if step == 1]
        return lanes if len(sizes) == 1 and not any(n % lanes for n in steps + sizes) else 1


class Tiling(NamedTuple):
    """How the threads of a block share a tile, in the template: `across` threads, of which each has
    `tall` rows, and the same number of columns of each `unit`.
    """

    name: str
    across: int
    tall: int
    unit: int

    def columns(self, reader: TileProduct) -> int:
        """Columns of a result that a thread has."""
        return self.unit // self.across * -(-reader.p.n.size // self.unit)


def choose_tiling(dtype, height: int, widest: int) -> Tiling:
    """The tiles for operands of a dtype and results of `widest` columns: halves are for tensor
    cores; of floats a thread has what its registers can hold.
    """
    if dtype in dt.HALVES:
        return Tiling(f"HalfTiles<{CUDA_TYPES[dtype]}, {height}>", 4, 2, 8)
    tall = 8 if height == TILE and widest <= TILE else 4
    return Tiling(f"FloatTiles<{height}, {tall}>", 16, tall, TILE)


class TileAttention:
    """The products before the nest (`leads`), the nest, and the products that read it."""

    def __init__(self, region: Program, names, outs):
        leads, between, readers, _ = split_region(region)
        inside = {*between, *leads}
        self.read = [*dict.fromkeys(x for r in readers for x in r.inputs if x in inside)]
        self.nest = nest = Nest(between, self.read).merged()
        pointers = dict(zip(region.inputs, names, strict=True))
        pointers |= {x: f"strips[{k}]" for k, x in enumerate(self.read)}
        pointers |= dict(zip(region.outputs, outs, strict=True))
        pointers |= {x: f"scores_{k}" for k, x in enumerate(leads)}
        self.leads, self.readers = (
            [self.product(r, pointers) for r in rs] for rs in (leads, readers)
        )
        self.names = [pointers[x] for x in nest.inputs]
        self.loads = {n: leads.index(nest.loaded_input(n)) for n in nest.nodes()
                      if n.kind == "load" and nest.loaded_input(n) in leads}  # fmt: skip
        self.softmax = find_softmax(nest)
        self.masks = masks(nest, leads)
        self.folds, self.dtype = folds_of(nest), leads[0].dtype
        self.rows, self.columns = self.leads[0].p.m.size, self.leads[0].p.n.size

    def product(self, record, pointers) -> TileProduct:
        """A product, of which a strip is the left operand."""
        x, y = record.inputs
        p = product_of(x.spec, y.spec, record.spec, **record.attrs, keep_order=True)
        left, right = (y, x) if p.exchanged else (x, y)
        sums = left in self.read and sums_rows(record, left)
        return TileProduct(p, pointers[left], pointers[right], pointers[record], sums)

    @property
    def online(self) -> list[NestNode]:
        """The sums that grow with the softmax: its own, and those of multiples of it."""
        _, _, total, quotient = self.softmax
        more = [n for n in self.folds[2:] if n.of.op is total.of.op]
        return [total, *(n for n in more if is_multiple(n.args[0], quotient))]

    @property
    def at_once(self) -> bool:
        """Whether one walk along the rows is enough: all results are multiples of the softmax."""
        multiples = (is_multiple(n, self.softmax.quotient) for _, n, _ in self.nest.outputs)
        return len(self.folds) == 2 and all(multiples)


def fits_tiles(region: Program) -> bool:
    """Whether there is a kernel for a group."""
    leads, _, readers, after = split_region(region)
    whole = TileAttention(region, region.inputs, region.outputs)
    return (
        not after
        and whole.softmax is not None
        and len(whole.nest.reduction_loops) == 1
        and all(wide(r.dtype) == FLOAT for r in (*leads, *whole.folds))
        and {x.dtype for r in (*leads, *readers) for x in r.inputs} == {whole.dtype}
        and min(whole.rows, whole.columns) >= FEWEST
        and all(reader.p.n.size <= WIDEST for reader in whole.readers)
        and len(whole.read) <= MOST_STRIPS
    )
