"""Every matrix product becomes one operator, `product`: of two arrays of one rank, no vectors.

It can read its operands, and write its result, in any order of axes. Vectors, and stacks of rows
times one matrix, become such arrays by reshapes around it, which move nothing.
"""

from __future__ import annotations

from ..engine.core.spec import promote
from ..engine.ir.program import Program
from ..engine.ops.linalg import as_column, as_row, matmul, rows
from ..engine.ops.movement import reshape, transpose
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten
from ..ops.products import product
from ..ops.quantization import matmul_integer, product_integer

ACROSS = {"x_perm": (0, 1), "y_perm": (1, 0), "out_perm": (0, 1)}
PRODUCTS = {matmul: product, matmul_integer: product_integer}


def as_product(record, x, y):
    """matmul(x, y) as a product."""
    wide = promote("matmul", [x.spec, y.spec])
    x, y = as_row(x.astype(wide)), as_column(y.astype(wide))
    if y.spec.ndim == 2 and x.spec.ndim > 2:
        x = rows(x)
    n = max(x.spec.ndim, y.spec.ndim)
    order = tuple(range(n))
    perms = dict.fromkeys(("x_perm", "y_perm", "out_perm"), order)
    z = PRODUCTS[record.op](with_rank(x, n), with_rank(y, n), **perms)
    return z if z.spec.shape == record.shape else reshape(z, shape=record.shape)


def with_rank(x, ndim: int):
    """x with leading axes of size 1."""
    extra = ndim - x.spec.ndim
    return reshape(x, shape=(1,) * extra + x.spec.shape) if extra else x


def as_packed(record, x, y):
    """The same, where the matrix y is transposed twice: if it is a weight, `folding` transposes it
    once, and a kernel may pack what comes out.
    """
    if y.spec.ndim != 2 or x.spec.ndim < 2:
        return as_product(record, x, y)
    return reshape(
        product_integer(rows(x), transpose(y, perm=(1, 0)), **ACROSS), shape=record.shape
    )


@program_pass("canonicalize_matmul", looks_for=PRODUCTS, frozen=(False,))
def canonicalize_matmul(program: Program, *, frozen: bool) -> Program:
    """The program with a `product` instead of each `matmul`."""
    rules = dict.fromkeys(PRODUCTS, as_product)
    return rewritten(program, rules | ({matmul_integer: as_packed} if frozen else {}))
