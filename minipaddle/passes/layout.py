"""Convolutions and pooling compute on images with the channels last.

Each operator becomes its sibling of `ops.channels_last` between transposes. Sinking moves these
through the operators between two convolutions, where they cancel. Weights stay as Paddle has them,
[O, C, *kernel]: the program transposes each once, which costs little beside a convolution.
"""

from __future__ import annotations

from ..engine.core.spec import promote
from ..engine.ir.program import Program
from ..engine.ops import conv, pooling
from ..engine.ops.movement import transpose
from ..engine.passes.registry import program_pass
from ..engine.passes.rewriting import rewritten
from ..ops import channels_last as last
from ..ops.channels_last import kernel_first, kernel_last, to_first, to_last
from ..ops.mean_pooling import avg_pool, avg_pool_grad

IMAGE, KERNEL = (to_last, to_first), (kernel_last, kernel_first)
"""The transposes of images and kernels to the new order, and back."""
SIBLINGS = {
    conv.conv: (last.conv_last, (IMAGE, KERNEL), IMAGE),
    conv.conv_input_grad: (last.conv_last_input_grad, (IMAGE, KERNEL), IMAGE),
    conv.conv_weight_grad: (last.conv_last_weight_grad, (IMAGE, IMAGE), KERNEL),
    pooling.max_pool: (last.max_pool_last, (IMAGE,), IMAGE),
    pooling.max_pool_grad: (last.max_pool_last_grad, (IMAGE, IMAGE, IMAGE), IMAGE),
    pooling.max_pool_take: (last.max_pool_last_take, (IMAGE, IMAGE, IMAGE), IMAGE),
    avg_pool: (last.avg_pool_last, (IMAGE,), IMAGE),
    avg_pool_grad: (last.avg_pool_last_grad, (IMAGE,), IMAGE),
}
"""For an operator its sibling, and whether each input and the result is an image or a kernel."""


def channels_last(record, *inputs):
    """The sibling of an operator, between transposes."""
    op, kinds, result = SIBLINGS[record.op]
    if op.promoted:
        wide = promote(op.name, [x.spec for x in inputs])
        inputs = [x if x.spec.dtype == wide else x.astype(wide) for x in inputs]
    turned = [transpose(x, perm=into(x.spec.ndim)) for x, (into, _) in zip(inputs, kinds)]
    y = op(*turned, **record.attrs)
    return transpose(y, perm=result[1](y.spec.ndim))


@program_pass("layout", looks_for=SIBLINGS.__contains__)
def layout(program: Program) -> Program:
    """The program with the channels last in convolutions and pooling."""
    return rewritten(program, dict.fromkeys(SIBLINGS, channels_last))
