"""Convolutions and pooling compute on images with the channels last.

Each operator becomes its sibling of `ops.channels_last` between transposes. Sinking moves these
through the operators between two convolutions, where they cancel. Weights stay as Paddle has them,
[O, C, *kernel]: the program transposes each once, which costs little beside a convolution.
"""

from __future__ import annotations

from ..engine.core.spec import promote
from ..engine.ir.program import Program
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten
from ..ops.channels_last import SIBLINGS, permute


def channels_last(record, *inputs):
    """The sibling of an operator, between transposes."""
    op, into, back = SIBLINGS[record.op]
    if op.promoted:
        wide = promote(op.name, [x.spec for x in inputs])
        inputs = [x.astype(wide) for x in inputs]
    return permute(op(*map(permute, inputs, [o.last for o in into]), **record.attrs), back.first)


@program_pass("layout", looks_for=SIBLINGS)
def layout(program: Program) -> Program:
    """The program with the channels last in convolutions and pooling."""
    return rewritten(program, dict.fromkeys(SIBLINGS, channels_last))
