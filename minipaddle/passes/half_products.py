"""Products of float32 that come from half precision read the halves themselves.

    product(cast(x, float32), cast(y, float32))   →   wide_product(x, y)

The result is the same: a product of two halves is exact in float32, in which both are summed. It
runs on the tensor cores of a GPU and reads half as much. A CPU multiplies floats, but for the
products that a kernel of `TILES` multiplies as they are.
"""

from __future__ import annotations

from functools import partial

from ..engine.core.dtype import HALVES, float32
from ..engine.core.record import Record
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


TILES: list = []
"""Functions (record, x, y, packed): whether the kernel of a product would multiply halves x and y,
of which one may be `packed` before the run.
"""


def multiplies_halves(record: Record, x: Record, y: Record, packed: bool = False) -> bool:
    """Whether a kernel of `TILES` multiplies the halves x and y instead of a product's factors."""
    return any(tile(record, x, y, packed) for tile in TILES)


RULES[wide_product] = widen_factors
LOOKS_FOR["decompose"].append(wide_product)


def find_half(x):
    """The array of half precision that was cast to x, also before a view of it, or x itself; None
    if there is none.
    """
    if x.spec.dtype in HALVES:
        return x
    record = made_by(x)
    if record is None or record.op not in (cast, reshape, transpose):
        return None
    before = as_tensor(record.inputs[0])
    if record.op is cast:
        return before if before.spec.dtype in HALVES else None
    half = find_half(before)
    return None if half is None else record.op(half, **record.attrs)


def multiply_halves(record, x, y, *, fits):
    """The product of the halves, if both factors are halves of one dtype, and if that `fits`."""
    halves = [*map(find_half, (x, y))]
    if record.dtype != float32.numpy or None in halves or len({h.spec.dtype for h in halves}) > 1:
        return None
    if not fits(record, *map(made_by, halves)):
        return None
    return wide_product(*halves, **record.attrs)


@program_pass("half_products", looks_for=[product], keep_halves=(None,))
def half_products(program: Program, *, keep_halves: bool | None) -> Program:
    """The program in which halves are multiplied without being cast: all, none, or (None) those
    that a kernel multiplies so.
    """
    if keep_halves is False:
        return program
    fits = (lambda *_: True) if keep_halves else multiplies_halves
    return rewritten(program, {product: partial(multiply_halves, fits=fits)})
