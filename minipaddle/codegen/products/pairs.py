"""Products of bfloat16 as it is stored, where the processor multiplies it (`vdpbf16ps`, AMX).

The instruction sums the products of two neighbouring terms, so a product becomes one of half as
many terms, which are `pairs`; tiles, panels and slices are those of float32. Each addition of a
pair rounds to float32: the error of K terms is at most K · 2^-24 · Σ |a b|. Numbers below 2^-126
count as 0, which a sum can miss K times.

AMX has registers for tiles: 16 rows of 16 pairs of A, 16 pairs for each of 16 columns of B (so
panels hold them as they are), 16 by 16 sums. It multiplies any number of rows faster than vectors
do, and needs the pairs of a row of A side by side: other rows are turned first.
"""

from __future__ import annotations

from ...engine.codegen.writer import least, worth_sharing
from ...engine.core.dtype import bfloat16
from ...engine.core.record import Record
from ...passes.half_products import TILES
from ..c_text import indent, share_loop
from ..kernel_frame import FloatKernel, KernelFrame
from ..machine import facts
from ..open_sizes import is_open
from . import microkernel
from .product import Product, product_of
from .product_plan import SERIAL

FEWEST = 3
"""Rows from which on a weight is read from panels, not as it is stored (`frozen_states`). Without
such panels, it is as many rows as a tile has."""


def are_halves(*edges: Record) -> bool:
    """Whether the processor multiplies these arrays in pairs."""
    return all(edge.dtype == bfloat16.numpy for edge in edges) and facts().bf16


def fits_pairs(p: Product, fewest: int) -> bool:
    """Whether the terms of a product, which has enough rows, are pairs: neighbours in x, or in rows
    of x that are zipped first.
    """
    neighbours = p.k.x == 1 and p.m.x % 2 == 0
    zipped = p.m.x == 1 < p.k.x
    if is_open(p.k.size) or is_open(p.m.x):
        return False  # they are even for this size
    even = p.count == 1 and p.k.size % 2 == 0 < p.k.size
    return even and (neighbours or zipped) and p.m.size >= fewest and p.n.size > 1


def multiplies_pairs(record: Record, x: Record, y: Record, packed: bool) -> bool:
    """Whether the kernel of a `product` of these halves multiplies pairs."""
    if not are_halves(x, y):
        return False
    p = product_of(*(edge.spec for edge in record.inputs), record.spec, **record.attrs)
    stored = {x, y} & {*record.inputs}
    return fits_pairs(p, 1 if packed else FEWEST if stored else microkernel.ROWS)


TILES.append(multiplies_pairs)


def is_paired(frame: KernelFrame, p: Product) -> bool:
    """Whether the kernel of a product multiplies pairs."""
    fewest = 1 if frame.is_constant(int(not p.exchanged)) else microkernel.ROWS
    return are_halves(*frame.record.inputs) and fits_pairs(p, fewest)


def pair_terms(frame: FloatKernel, p: Product) -> Product:
    """The product of pairs. The kernel reads x as pairs."""
    left, terms = int(p.exchanged), p.k.size // 2
    x = frame.names[left]
    k = p.k._replace(size=terms, x=1, y=2 * p.k.y)
    if p.k.x == 1:
        frame.names[left] = f"((const pairs *){x})"
        return p._replace(k=k, m=p.m._replace(x=p.m.x // 2))
    if microkernel.has_tiles(frame.E):
        frame.names[left] = turn_rows(frame, x, terms, p.m.size, p.k.x)
        return p._replace(k=k, m=p.m._replace(x=terms))
    frame.names[left] = zip_rows(frame, x, terms, p.m.size, p.k.x)
    return p._replace(k=k._replace(x=p.m.size), m=p.m._replace(x=1))


def turn_rows(frame: FloatKernel, x: str, pairs: int, size: int, apart: int) -> str:
    """The name of an array of rows of pairs: the columns of x, whose rows are `apart`."""
    name = frame.array("turned", pairs * size, microkernel.PAIRS)
    here = f"{size}, {least(f'{pairs} - k', 16)}, {x} + k * {2 * apart}, {apart}, {name} + k"
    pays = worth_sharing(pairs * size, SERIAL + 1)
    frame.text += indent(share_loop("k", pairs, f"turn_pairs({here}, {pairs});\n", pays, 16), 4)
    return name


def zip_rows(frame: FloatKernel, x: str, pairs: int, size: int, apart: int) -> str:
    """The name of an array of pairs: of each two neighbouring rows of x, which are `apart`."""
    name = frame.array("zipped", pairs * size, microkernel.PAIRS)
    text = f"zip_pairs({size}, {x} + k * {2 * apart}, {apart}, {name} + k * {size});\n"
    frame.text += indent(share_loop("k", pairs, text, worth_sharing(pairs * size, SERIAL + 1)), 4)
    return name
