"""Products of float32 that come from half precision read the halves themselves.

    product(cast(x, float32), cast(y, float32))   →   wide_product(x, y)

The result is the same: a product of two halves is exact in float32, in which both are summed. It
runs on the tensor cores of a GPU and reads half as much; the CPU multiplies floats.
"""

from __future__ import annotations

from ..engine.core.dtype import HALVES, float32
from ..engine.ir.program import Program
from ..engine.ops.elementwise import cast
from ..engine.ops.movement import reshape, transpose
from ..engine.passes.decompose import RULES
from ..engine.passes.patterns import as_tensor
from ..engine.passes.registry import LOOKS_FOR, program_pass
from ..engine.passes.rewriting import made_by, rewritten
from ..ops.products import product, wide_product


def widen_factors(record, x, y):
    """The product of float32 for one of halves."""
    return product(x.astype(record.dtype), y.astype(record.dtype), **record.attrs)


RULES[wide_product] = widen_factors
LOOKS_FOR["decompose"].append(wide_product)


def find_half(x):
    """The array of half precision that was cast to x, also before a view of it; None if there is
    none.
    """
    record = made_by(x)
    if record is None or record.op not in (cast, reshape, transpose):
        return None
    before = as_tensor(record.inputs[0])
    if record.op is cast:
        return before if before.spec.dtype in HALVES else None
    half = find_half(before)
    return None if half is None else record.op(half, **record.attrs)


def multiply_halves(record, x, y):
    """The product of the halves, if both factors are halves of one dtype."""
    halves = [*map(find_half, (x, y))]
    if record.dtype != float32.numpy or None in halves or len({h.spec.dtype for h in halves}) > 1:
        return None
    return wide_product(*halves, **record.attrs)


@program_pass("half_products", looks_for=[product], keep_halves=(False,))
def half_products(program: Program, *, keep_halves: bool) -> Program:
    """The program in which halves are multiplied without being cast, where a device can do it."""
    return rewritten(program, {product: multiply_halves}) if keep_halves else program
