"""Matrix products: calls of cuBLAS where each operand has neighbours along one of its axes, and a
kernel of tiles for all others.
"""

from __future__ import annotations

from itertools import product as places

from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import CannotWrite
from ...engine.core import dtype as dt
from ..products.product import Product, StridedAxis, product_of
from ..target import fill
from .calls import (
    CUDA_TYPES,
    Clear,
    Gemm,
    KernelCalls,
    Launch,
    Matrix,
    Operand,
    cuda_emitter,
    operands,
)
from .text import launch

TILE = 16
"""Rows and columns of a tile of our own kernel."""


@cuda_emitter("product", "wide_product")
def emit_product(record, name: str) -> KernelCalls:
    """The calls for a `product`, or for one that widens halves."""
    x, y = (e.spec for e in record.inputs)
    out = record.spec
    p = product_of(x, y, out, **record.attrs)
    if not (x.size and y.size):
        return KernelCalls((Clear(Operand("out"), out.nbytes),))
    return KernelCalls((find_gemm(p, x.dtype, out.dtype) or write_tiles(record, name, p),))


def find_gemm(p: Product, dtype, result) -> Gemm | None:
    """The product as one call of cuBLAS; None if it cannot do it."""
    x, y = Operand("in", int(p.exchanged)), Operand("in", 1 - int(p.exchanged))
    xs, ys = lines(p.k, p.m, "x"), lines(p.n, p.k, "y")
    if dtype not in dt.FLOATS or None in (xs, ys) or (p.n.out != 1 and p.n.size > 1):
        return None
    batch = p.batch or (StridedAxis(1, 0, 0, 0),)
    _, *steps = batch[0] if len(batch) == 1 else (0, 0, 0, 0)
    factors = Matrix(x, xs[0], steps[0], xs[1]), Matrix(y, ys[0], steps[1], ys[1])
    out = Matrix(Operand("out"), max(p.m.out, p.n.size), steps[2])
    starts = list_starts(batch, dtype.itemsize, result.itemsize) if len(batch) > 1 else ()
    sizes = p.m.size, p.n.size, p.k.size, p.count
    return Gemm(*factors, out, *sizes, dtype, result, starts=starts)


def list_starts(batch, factor: int, result: int) -> tuple[tuple[int, int, int], ...]:
    """Where each matrix of a batch of several axes begins: bytes in x, in y and in the result."""
    starts = []
    for at in places(*(range(a.size) for a in batch)):
        x, y, out = (sum(i * a[k] for i, a in zip(at, batch)) for k in (1, 2, 3))
        starts.append((x * factor, y * factor, out * result))
    return tuple(starts)


def lines(across: StridedAxis, down: StridedAxis, of: str) -> tuple[int, bool] | None:
    """(pitch, turned) of a matrix with axes down and across; None if neither has neighbours."""
    step, pitch = getattr(across, of), getattr(down, of)
    if (step == 1 or across.size == 1) and (pitch >= across.size or down.size == 1):
        return max(pitch, across.size), False
    if (pitch == 1 or down.size == 1) and (step >= down.size or across.size == 1):
        return max(step, down.size), True
    return None


KERNEL = read_template("product.cu", __file__).rstrip("\n")


def write_tiles(record, name: str, p: Product) -> Launch:
    """A kernel for operands with any steps: a block computes a tile of the result."""
    dtype, result = record.inputs[0].dtype, record.dtype
    if dtype == dt.bool_.numpy:
        raise CannotWrite("products of booleans")
    across, down = -(-p.n.size // TILE), -(-p.m.size // TILE)
    steps = []
    for a in reversed(p.batch):
        steps.append(f"    at_x += batch % {a.size} * {a.x}, at_y += batch % {a.size} * {a.y}, "
                     f"at_out += batch % {a.size} * {a.out}, batch /= {a.size};")  # fmt: skip
    words = {
        "ACROSS": across, "DOWN": down, "BATCH": "\n".join(steps), "TILE": TILE,
        "DEPTH": p.k.size, "ROWS": p.m.size, "COLUMNS": p.n.size, "MX": p.m.x, "KX": p.k.x,
        "NY": p.n.y, "KY": p.k.y, "MOUT": p.m.out, "NOUT": p.n.out,
    }  # fmt: skip
    if result != dtype:
        words["STORE"] = ""
    body = fill(KERNEL, CUDA_TYPES, dtype, words)
    E = CUDA_TYPES[dtype]
    inputs = f"const {E} *{'y' if p.exchanged else 'x'}, const {E} *{'x' if p.exchanged else 'y'}"
    blocks = across * down * p.count, 1
    return launch(
        name, [inputs, f"{CUDA_TYPES[result]} *out"], [body], blocks, (TILE, TILE), operands(record)
    )
