"""The usual epilogue of a product of whole numbers: sums become floats, and these bytes again.

A network on 8 bits does this between any two layers. GCC's vectors of the loop take twice as many
instructions as `requantize.c`: a comparison and a selection for each bound, and masks and
permutations where the processor packs numbers that fit.
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple

from ...engine.codegen.kernel import read_template
from ...engine.core.dtype import float32, int8, int32
from ...engine.core.op import Op
from ...engine.core.record import Record
from ...engine.ir.program import NUMBER
from ...ops.quantization import dequantize, quantize
from .bias_and_bounds import BOUNDS, find_steps

LANES = Template(read_template("requantize_lanes.c", __file__))
HELPERS = (
    read_template("integers.c", __file__),
    LANES.substitute(lanes=8, needs="__AVX2__"),
    LANES.substitute(lanes=16, needs="__AVX512F__"),
    read_template("requantize.c", __file__),
)


class Requantize(NamedTuple):
    """The values of the formula in `requantize.c`: records of a region."""

    high: int
    step: Record
    bias: Record
    more: Record | None
    activation: Op | None
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
            f"           {int(self.activation is not None)}, {low}, {top}, {names[self.scale]}[0], "
            f"{names[self.q]});\n"
        )


def find_requantize(region) -> Requantize | None:
    """The formula of a region that begins with a product; None if it is another one."""
    total, *records = region.records
    operands = {x for x in region.inputs if x.dtype == float32.numpy}
    if total.dtype != int32.numpy or len(records) < 3:
        return None
    start, *between, q = records
    if start.op is not dequantize or q.op is not quantize:
        return None
    steps = find_steps(start, between, operands, total.shape[-1])
    if steps is None or steps.bias is None:
        return None
    *steps, value = steps
    floats = value if value in region.outputs else None
    formula = Requantize(start.attrs["high"], start.inputs[1], *steps, q.inputs[1], floats, q)
    return formula if fits_formula(formula, region, start, value, operands) else None


def fits_formula(formula: Requantize, region, start: Record, value: Record, operands: set) -> bool:
    """Whether the records of a formula are connected as `requantize.c` has it, and of its types."""
    total, ends = region.records[0], {x for x in (formula.floats, formula.q) if x}
    q = formula.q
    zeros = [x.inputs[2] for x in (start, q)]
    return (
        start.inputs[0] is total
        and q.inputs[0] is value
        and {formula.step, formula.bias, formula.scale} <= operands
        and all(x.op is NUMBER and x.attrs["value"] == 0 for x in zeros)
        and formula.high & (formula.high - 1) == 0
        and formula.step.spec.size == formula.bias.spec.size == total.shape[-1]
        and formula.step.shape[-1:] == total.shape[-1:]
        and (formula.more is None or formula.more.shape == total.shape)
        and formula.scale.spec.size == 1
        and q.dtype == int8.numpy
        and (q.attrs["low"], q.attrs["high"]) == (-128, 127)
        and q.shape == total.shape
        and {*region.outputs} == ends
        and len(region.outputs) == len(ends)
    )
