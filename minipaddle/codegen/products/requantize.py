"""The usual epilogue of a product of whole numbers: sums become floats, and these bytes again.

A network on 8 bits does this between any two layers. GCC's vectors of the loop take twice as many
instructions as `requantize.c`: a comparison and a selection for each bound, and masks and
permutations where the processor packs numbers that fit.
"""

from __future__ import annotations

from typing import NamedTuple

from ...engine.codegen.kernel import read_template
from ...engine.core.dtype import float32, int8, int32
from ...engine.core.record import Record
from ...engine.ir.program import NUMBER
from ...ops.quantization import dequantize, quantize
from .bias_and_bounds import BOUNDS, find_steps

HELPERS = read_template("integers.c", __file__), read_template("requantize.c", __file__)


class Requantize(NamedTuple):
    """The values of the formula in `requantize.c`: records of a region."""

    high: int
    step: Record
    bias: Record
    more: Record | None
    activation: str
    scale: Record
    floats: Record | None  # an output, too
    q: Record

    def call(self, names: dict, first: str, last: str, n: int) -> str:
        """C text; `names` are those of pointers."""
        low, top = BOUNDS[self.activation]
        more, floats = (names[x] if x else "0" for x in (self.more, self.floats))
        return (
            f"requantize({first}, {last}, {n}, out0, {self.high}.0f, {names[self.step]}, "
            f"{names[self.bias]}, {more}, {floats},\n"
            f"           {int(self.activation != '')}, {low}, {top}, {names[self.scale]}[0], "
            f"{names[self.q]});\n"
        )


def find_requantize(region) -> Requantize | None:
    """The formula of a region that begins with a product; None if it is another one."""
    total, *records = region.records
    given = {x for x in region.inputs if x.dtype == float32.numpy}
    if total.dtype != int32.numpy or len(records) < 3:
        return None
    start, *between, q = records
    if start.op is not dequantize or q.op is not quantize:
        return None
    steps = find_steps(start, between, given, total.shape[-1])
    if steps is None or steps.bias is None:
        return None
    *steps, value = steps
    floats = value if value in region.outputs else None
    made = Requantize(start.attrs["high"], start.inputs[1], *steps, q.inputs[1], floats, q)
    return made if fits_formula(made, region, start, value, given) else None


def fits_formula(made: Requantize, region, start: Record, value: Record, given: set) -> bool:
    """Whether the records of a formula are connected as `requantize.c` has it, and of its types."""
    total, ends = region.records[0], {x for x in (made.floats, made.q) if x}
    zeros = [x.inputs[2] for x in (start, made.q)]
    return (
        start.inputs[0] is total
        and made.q.inputs[0] is value
        and {made.step, made.bias, made.scale} <= given
        and all(x.op is NUMBER and x.attrs["value"] == 0 for x in zeros)
        and made.high & (made.high - 1) == 0
        and made.step.spec.size == made.bias.spec.size == total.shape[-1]
        and made.step.shape[-1:] == total.shape[-1:]
        and (made.more is None or made.more.shape == total.shape)
        and made.scale.spec.size == 1
        and (made.q.dtype, made.q.attrs["low"], made.q.attrs["high"]) == (int8.numpy, -128, 127)
        and made.q.shape == total.shape
        and {*region.outputs} == ends
        and len(region.outputs) == len(ends)
    )
