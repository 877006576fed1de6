"""Every contraction becomes one operator, `product`: of two arrays of one rank, no vectors.

It can read its operands, and write its result, in any order of axes. Vectors, and stacks of rows
times one matrix, become such arrays by reshapes around it, which move nothing.
"""

from __future__ import annotations

from math import prod

from ..engine.core.dtype import HALVES, float32
from ..engine.core.op import OPS
from ..engine.core.spec import promote
from ..engine.ir.program import Program
from ..engine.ops.contraction import VARS, contract
from ..engine.ops.movement import reshape, transpose
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten
from ..ops.products import product
from ..ops.quantization import matmul_integer, product_integer
from .one_hot_rows import look_up

ACROSS = {"x_perm": (0, 1), "y_perm": (1, 0), "out_perm": (0, 1)}


def as_product(record, x, y):
    """A contraction as a product, or as rows that are looked up."""
    rows = look_up(record, x, y)
    if rows is not None:
        return rows
    wide = promote(record.op.name, [x.spec, y.spec])
    letters = record.op.letters(x.spec, y.spec, **record.attrs)
    multiply = product if record.op.kind == "contraction" else product_integer
    return contract(VARS, x.astype(wide), y.astype(wide), letters, multiply)


def as_wide_product(record, x, y):
    """The same; half precision, which is only stored, is multiplied as float32 and rounded once."""
    if record.dtype not in HALVES:
        return as_product(record, x, y)
    x, y = x.astype(float32.numpy), y.astype(float32.numpy)
    return as_product(record, x, y).astype(record.dtype)


def as_packed(record, x, y):
    """The same, where the matrix y is transposed twice: if it is a weight, `folding` transposes it
    once, and a kernel may pack what comes out.
    """
    if y.spec.ndim != 2 or x.spec.ndim < 2:
        return as_product(record, x, y)
    rows = reshape(x, shape=(prod(x.spec.shape[:-1]), x.spec.shape[-1]))
    y = transpose(y, perm=(1, 0))
    return reshape(product_integer(rows, y, **ACROSS), shape=record.shape)


@program_pass(
    "canonicalize_matmul", looks_for=["contractions", matmul_integer], frozen=(False,),
    widen_products=(True,),
)  # fmt: skip
def canonicalize_matmul(program: Program, *, frozen: bool, widen_products: bool) -> Program:
    """The program with a `product` instead of each contraction. Those of half precision
    `widen_products`, where kernels multiply floats.
    """
    others = {op for op in OPS.values() if op.kind == "contraction"} - {product}
    multiply = as_wide_product if widen_products else as_product
    rules = {**dict.fromkeys(others, multiply), matmul_integer: as_product}
    return rewritten(program, rules | ({matmul_integer: as_packed} if frozen else {}))
