"""Products of dequantized arrays become products of the whole numbers themselves.

    matmul(dequantize(q), dequantize(w))   →   dequantize(matmul_integer(q, w))

What follows, a bias, an activation, the quantization for the next product, then joins the product's
loops (see `epilogue`). The weight stays in one byte: so this comes before `folding`, which would
compute its floats ahead. The sums are exact, those of floats are not: results differ by some units
in the last place.
"""

from __future__ import annotations

from math import prod

from ..engine.core.dispatch import current
from ..engine.ir.program import Program
from ..engine.ops.conv import conv
from ..engine.ops.linalg import matmul
from ..engine.ops.var import Var
from ..engine.passes.patterns import as_tensor
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.affine import affine, linear
from ..ops.quantization import dequantize, fake_quantize, quantize
from ..ops.quantized import Quantized, can_multiply, quantized_conv, quantized_matmul


def quantized(x) -> Quantized | None:
    """The whole numbers of a value that is dequantized, or that is rounded to what these stand for
    and used once: a training step needs the floats for its derivative.
    """
    record = made_by(x) if isinstance(x, Var) else None
    if record is None or record.op not in (dequantize, fake_quantize):
        return None
    first, scale, zero = map(as_tensor, record.inputs)
    if record.op is fake_quantize:
        if current.top.builder.uses(record) > 1:
            return None
        first = quantize(first, scale, zero, **record.attrs)
    return Quantized(first, scale, zero, record.attrs["high"])


def of_matrices(record, x, w, bias=None):
    """The product of a dequantized matrix and a dequantized weight [in, out], maybe with a bias."""
    pair = quantized(x), quantized(w)
    if None in pair or w.spec.ndim != 2 or record.attrs.get("transpose"):
        return None
    if not can_multiply(*pair, 1, w.spec.shape[0]):
        return None
    y = quantized_matmul(*pair)
    return y if bias is None else y + bias


def of_images(record, x, w):
    """The convolution of a dequantized image with a dequantized weight."""
    pair = quantized(x), quantized(w)
    if None in pair or not can_multiply(*pair, 0, prod(w.spec.shape[1:])):
        return None
    return quantized_conv(*pair, **record.attrs)


PRODUCTS = {matmul: of_matrices, linear: of_matrices, affine: of_matrices, conv: of_images}


@program_pass("quantized_products", looks_for=[dequantize, fake_quantize])
def quantized_products(program: Program) -> Program:
    """The program in which dequantized arrays are multiplied as whole numbers."""
    return rewritten(program, PRODUCTS)
