"""Whole numbers of Python that a loop on a tensor carries: the program raises OverflowError where
one leaves 64 bits, because there it would wrap around and Python would not.

Looked at is what an iteration computes from such numbers alone; arithmetic with tensors wraps in
eager mode too. What adds or subtracts a small constant, a counter, needs no check.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from ..engine.core.dispatch import Recording, current
from ..engine.core.dtype import float64, int64
from ..engine.core.record import Record
from ..engine.eager.tensor import Tensor, wrap
from ..engine.ir.program import NUMBER
from ..engine.jit.effects import check_held
from ..engine.jit.looping import KINDS
from ..engine.ops import elementwise, logic

GROWS = {"add": 2**31, "subtract": 2**31, "multiply": 2, "pow": 2, "bitwise_left_shift": 1}
"""Operators, and from which constant operand on their results need a check."""
KEEPS = {"neg", "abs", "cast", "assign", "reshape", "floor_divide", "remainder"}
LIMIT = 2.0**63

OVERFLOW = (
    "a whole number of Python leaves 64 bits in a loop on a tensor, where a program would wrap "
    "around: let it be a float, or a tensor from the start"
)


class CheckedLoop(KINDS[-1]):
    """A loop that checks the whole numbers of Python that it carries."""

    def iteration(self, slots, now) -> list:
        builder = current.top.builder
        own = [k for k, (i, j) in enumerate(slots) if type(self.before[i].leaves[j]) is int
               and now[k].spec.dtype == int64.numpy]  # fmt: skip
        sources = {builder.value(now[k].array) for k in own}
        found = super().iteration(slots, now)
        ends = [found[k + 1] for k in own if isinstance(found[k + 1], Tensor)]
        growing: dict[Record, None] = {}
        for x in ends:
            note_growing(builder.value(current.top.lift(x)), sources, growing)
        if growing:
            with Recording(False):
                check_held(reduce(and_, map(fits, growing)), OVERFLOW, OverflowError)
        return found


def note_growing(record: Record, sources: set, growing: dict) -> bool:
    """Whether a record is computed from numbers of Python alone; if so, note what may grow."""
    if record in sources or record.op is NUMBER or record in growing:
        return True
    if record.op.name not in GROWS.keys() | KEEPS or record.shape != () or record.dtype.kind != "i":
        return False
    own = [note_growing(r, sources, growing) for r in record.inputs]
    if not all(own):
        return False
    numbers = [abs(r.attrs["value"]) for r in record.inputs if r.op is NUMBER]
    least = GROWS.get(record.op.name)
    if least is not None and not any(n < least for n in numbers):
        growing[record] = None
    return True


def fits(record: Record) -> Tensor:
    """Whether the result of an arithmetic record, computed in double precision, has 64 bits."""
    builder = current.top.builder
    given = [
        float(r.attrs["value"]) if r.op is NUMBER
        else elementwise.cast(wrap(builder.symbolic(r, builder.place)), dtype=float64.numpy)
        for r in record.inputs
    ]  # fmt: skip
    if record.op.name == "bitwise_left_shift":
        result = given[0] * 2.0 ** given[1]
    else:
        result = record.op(*given)
    return logic.less_than(elementwise.abs(result), LIMIT)


KINDS.append(CheckedLoop)
