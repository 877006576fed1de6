"""Products of dequantized arrays become products of the whole numbers themselves.

    matmul(dequantize(q), dequantize(w))   →   dequantize(matmul_integer(q, w))

The rules are in `ops/quantized.py`. What follows, a bias, an activation, the quantization for the
next product, then joins the product's loops (see `epilogue`). The weight stays in one byte: so this
comes before `folding`, which would compute its floats ahead. The sums are exact, those of floats
are not: results differ by some units in the last place.
"""

from __future__ import annotations

from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.ir.program import Program
from ..engine.ops.var import Var
from ..engine.passes.decompose import as_dtype
from ..engine.passes.patterns import as_tensor
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.quantization import dequantize, fake_quantize, quantize
from ..ops.quantized import PRODUCTS, Quantized, multiply_whole
from .quantized_pooling import quantized_pooling


def find_source(x) -> Record | None:
    """The record that dequantizes a value, or rounds it to what whole numbers stand for; the latter
    only if it is used once: a training step needs the floats for its derivative.
    """
    record = made_by(x) if isinstance(x, Var) else None
    if record is None or record.op not in (dequantize, fake_quantize):
        return None
    alone = record.op is dequantize or current.top.builder.uses(record) == 1
    return record if alone else None


def read_quantized(record: Record) -> Quantized:
    """The whole numbers of such a record, and what they stand for."""
    first, scale, zero = map(as_tensor, record.inputs)
    if record.op is fake_quantize:
        first = quantize(first, scale, zero, **record.attrs)
    return Quantized(first, scale, zero, record.attrs["high"])


def multiply(record, *inputs):
    """The product of whole numbers for one of two dequantized arrays."""
    sources = [*map(find_source, inputs[:2])]
    if None in sources:
        return None
    y = multiply_whole(record.op, [*map(read_quantized, sources), *inputs[2:]], record.attrs)
    return None if y is None else as_dtype(y, record.dtype)


@program_pass(
    "quantized_products",
    looks_for=[dequantize, fake_quantize],
    pool_bytes=(False, "maxima of windows are those of whole numbers: less memory, more time"),
)
def quantized_products(program: Program, *, pool_bytes: bool) -> Program:
    """The program in which dequantized arrays are multiplied as whole numbers."""
    program = rewritten(program, dict.fromkeys(PRODUCTS, multiply))
    return quantized_pooling(program) if pool_bytes else program
