"""Products of dequantized arrays become products of the whole numbers themselves.

    matmul(dequantize(q), dequantize(w))   →   dequantize(matmul_integer(q, w))

What follows, a bias, an activation, the quantization for the next product, then joins the product's
loops (see `epilogue`). The weight stays in one byte: so this comes before `folding`, which would
compute its floats ahead. The sums are exact, those of floats are not: results differ by some units
in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.program import Program
from ..engine.ops.conv import conv
from ..engine.ops.linalg import matmul
from ..engine.ops.var import Var
from ..engine.passes.decompose import as_dtype
from ..engine.passes.patterns import as_tensor
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.affine import affine, linear
from ..ops.quantization import dequantize, fake_quantize, quantize
from ..ops.quantized import Quantized, can_multiply, quantized_conv, quantized_matmul
from .quantized_pooling import quantized_pooling


def source_of(x) -> Record | None:
    """The record that dequantizes a value, or rounds it to what whole numbers stand for; the latter
    only if it is used once: a training step needs the floats for its derivative.
    """
    record = made_by(x) if isinstance(x, Var) else None
    if record is None or record.op not in (dequantize, fake_quantize):
        return None
    alone = record.op is dequantize or current.top.builder.uses(record) == 1
    return record if alone else None


def quantized(record: Record) -> Quantized:
    """The whole numbers of such a record, and what they stand for."""
    first, scale, zero = map(as_tensor, record.inputs)
    if record.op is fake_quantize:
        first = quantize(first, scale, zero, **record.attrs)
    return Quantized(first, scale, zero, record.attrs["high"])


def multiplied(x, w, axis: int, multiply: Callable, **attrs):
    """The product of the whole numbers of x and of the weight w, whose outputs are along `axis`;
    None if it must be one of floats.
    """
    sources = source_of(x), source_of(w)
    if None in sources:
        return None
    pair = tuple(map(quantized, sources))
    terms = prod(n for d, n in enumerate(w.spec.shape) if d != axis)
    return multiply(*pair, **attrs) if can_multiply(*pair, axis, terms) else None


def of_matrices(record, x, w, bias=None):
    """The product of a dequantized matrix and a dequantized weight [in, out], maybe with a bias."""
    if w.spec.ndim != 2 or record.attrs.get("transpose"):
        return None
    y = multiplied(x, w, 1, quantized_matmul)
    if y is None:
        return None
    return as_dtype(y if bias is None else y + bias, record.dtype)


def of_images(record, x, w):
    """The convolution of a dequantized image with a dequantized weight."""
    y = multiplied(x, w, 0, quantized_conv, **record.attrs)
    return None if y is None else as_dtype(y, record.dtype)


PRODUCTS = {matmul: of_matrices, linear: of_matrices, affine: of_matrices, conv: of_images}


@program_pass(
    "quantized_products",
    looks_for=[dequantize, fake_quantize],
    pool_bytes=(False, "maxima of windows are those of whole numbers: less memory, more time"),
)
def quantized_products(program: Program, *, pool_bytes: bool) -> Program:
    """The program in which dequantized arrays are multiplied as whole numbers."""
    program = rewritten(program, PRODUCTS)
    return quantized_pooling(program) if pool_bytes else program
