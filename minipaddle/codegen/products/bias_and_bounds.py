"""The usual end of a sum, done while it is in a register: a bias for each column, and bounds.

A pass over the finished rows would load and store each of them again, which takes as long as the
products where sums are short. Other epilogues are loop nests (`epilogue.py`). This file knows
records and the arguments of a function; it knows nothing of tiles.
"""

from __future__ import annotations

from typing import NamedTuple

from ...engine.core.op import Op
from ...engine.core.record import Record
from ...engine.ops.activation import relu
from ...engine.ops.elementwise import add
from ...ops.activations import relu6

BOUNDS = {
    None: ("-INFINITY", "INFINITY"), relu: ("0.0f", "INFINITY"), relu6: ("0.0f", "6.0f"),
}  # fmt: skip
"""Activations that clip, and their bounds as C text."""


class EpilogueSteps(NamedTuple):
    """Records that follow a value: what is added to it, and what clips it."""

    bias: Record | None
    more: Record | None
    activation: Op | None
    value: Record  # the last one


def find_steps(value: Record, records, operands: set, columns: int) -> EpilogueSteps | None:
    """The steps from a value on, which has these `operands`; None if there are others."""
    added, activation = [], None
    for record in records:
        others = [x for x in record.inputs if x is not value]
        if value not in record.inputs or activation:
            return None
        if record.op is add and len(others) == 1 and others[0] in operands and len(added) < 2:
            added += others
        elif record.op in BOUNDS:
            activation = record.op
        else:
            return None
        value = record
    if any(x.shape[-1:] != (columns,) for x in added):
        return None
    return EpilogueSteps(*added, *[None] * (2 - len(added)), activation, value)


NOTHING = "0, 0"
"""The arguments of a function that leaves sums as they are."""


class BiasAndBounds(NamedTuple):
    """C texts: a pointer to the biases, and the bounds."""

    bias: str
    low: str
    high: str

    def of(self, column: str) -> BiasAndBounds:
        """The same for the columns from this one on."""
        return self._replace(bias=f"{self.bias} + {column}")

    def text(self, T: str, last: str = "") -> str:
        """The arguments of a function: before the `last` terms of a sum there is no bias."""
        bias = f"{last} ? {self.bias} : 0" if last else self.bias
        return f"{bias}, (const {T}[]){{{self.low}, {self.high}}}"


def find_bias_and_bounds(region, names: dict) -> BiasAndBounds | None:
    """The end of the sums of a region that begins with a product and has no other formula; `names`
    are those of pointers.
    """
    total, *records = region.records
    operands, n = {x for x in region.inputs if x.dtype == total.dtype}, total.shape[-1]
    steps = find_steps(total, records, operands, n)
    if steps is None or steps.bias is None or steps.more or steps.bias.spec.size != n:
        return None
    if region.outputs != [steps.value] or steps.value.spec != total.spec:
        return None
    return BiasAndBounds(names[steps.bias], *BOUNDS[steps.activation])
