"""Products of int8 matrices in int32: in tiles (`grouped_tiles.py`), or as plain loops."""

from __future__ import annotations

from ...engine.codegen.kernel import Kernel, emits
from ..kernel_frame import KernelFrame
from .grouped_tiles import GroupedProduct
from .matmul import fits_rows, plain_product
from .product import product_of


@emits("product_integer")
def emit_product(record, name: str, rows=None, parameters=()) -> Kernel:
    """The kernel of a product of int8 matrices."""
    frame, (x, y), out = KernelFrame(record, name, rows, parameters), record.inputs, record.spec
    if not out.size:
        return frame.kernel("")
    p = product_of(x.spec, y.spec, out, **record.attrs, keep_columns=rows is not None)
    sizes = p.m.size, p.n.size, p.k.size
    tiles = GroupedProduct(frame, 1 - p.exchanged, 1, sizes, (p.n.y, p.k.y))
    in_rows = fits_rows(p, out) and p.n.out <= 1 and p.count == 1
    if not (p.k.size and in_rows and tiles.pays):
        return plain_product(frame)
    return tiles.kernel(tiles.load_rows(p))
