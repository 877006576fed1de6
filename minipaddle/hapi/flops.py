"""`paddle.flops`: the arithmetic of one forward pass, counted layer by layer."""

import math

from ..engine.core.errors import type_error
from ..nn.layer import activation, batch_norm, common, conv, norm, pooling
from ..nn.layer.layers import Layer
from .summary import count, dims, line, sample, trial_run

__all__ = ["flops"]


def convolution(layer, x, y):
    """A multiply-add for each weight of an output's channel and group, and one for the bias."""
    per_output = layer._in_channels // layer._groups * math.prod(layer._kernel_size)
    return y.size * (per_output + (layer.bias is not None))


def linear(layer, x, y):
    """A multiply-add for each input of each output."""
    return y.size * layer.weight.shape[0]


def normalisation(layer, x, y):
    """With known statistics: one to shift and one to scale each element."""
    return 2 * x.size


def one_per_output(layer, x, y):
    """One operation for each output."""
    return y.size


def adaptive_average(layer, x, y):
    """The additions of a window and one division for each output."""
    window = (a // b for a, b in zip(x.shape[2:], y.shape[2:], strict=True))
    return y.size * (math.prod(window) + 1)


def nothing(layer, x, y):
    """Comparing and moving are not counted."""
    return 0


FORMULAS = {
    convolution: [conv.ConvND],
    linear: [common.Linear],
    normalisation: [
        batch_norm.BatchNormND, norm.LayerNorm, norm.RMSNorm, norm.GroupNorm, norm.InstanceNormND,
    ],
    one_per_output: [pooling.AvgPool1D, pooling.AvgPool2D, pooling.AvgPool3D, activation.LeakyReLU],
    adaptive_average: [pooling.AdaptiveAvg],
    nothing: [pooling.Pool, activation.ReLU, activation.ReLU6, common.Dropout],
}  # fmt: skip
COUNTS = {kind: formula for formula, kinds in FORMULAS.items() for kind in kinds}
"""How to count the operations of a layer of a class, or of one derived from it."""


def flops(net, input_size, custom_ops=None, print_detail=False):
    """Count the multiply-adds of `net` on an input of shape `input_size`, print and return them.

    Layers that hold no others are counted, by their formula in `COUNTS` or by that of their class
    in `custom_ops`: {class: f(layer, inputs, output)}, where f adds to `layer.total_ops`. A layer
    without a formula is named and counts as 0, as does arithmetic outside of layers. With
    `print_detail` a table shows every layer. The numbers are Paddle's; norms other than BatchNorm,
    which Paddle takes for 0, count like BatchNorm.

    >>> paddle.flops(paddle.nn.Linear(4, 3), [2, 4])  # doctest: +ELLIPSIS
    <class '...Linear'>'s flops has been counted
    Total Flops: 24     Total Params: 15
    24
    """
    if not isinstance(net, Layer):
        raise type_error(f"flops of a {type(net).__name__}", "a Layer")
    custom = custom_ops or {}
    leaves = [layer for layer in net.sublayers(include_self=True) if not layer._sub_layers]
    for kind in dict.fromkeys(map(type, leaves)):
        print(describe_count(kind, custom))
    rows = {}  # layer -> the cells of its row, as under HEAD

    def note(layer, inputs, outputs):
        x, y = inputs[0], outputs[0] if isinstance(outputs, list | tuple) else outputs
        if type(layer) in custom:
            ops = run_custom(custom[type(layer)], layer, inputs, outputs)
        else:
            ops = formula(type(layer))(layer, x, y)
        before = rows[layer][-1] if layer in rows else 0
        shapes = str(list(x.shape)), str(list(y.shape))
        rows[layer] = layer.full_name(), *shapes, count(layer.parameters()), before + ops

    trial_run(net, leaves, note, [sample(dims(input_size), "float32")])
    parameters, total = (sum(row[k] for row in rows.values()) for k in (3, 4))
    if print_detail:
        print(table([tuple(map(str, row)) for row in rows.values()]))
    print(f"Total Flops: {total}     Total Params: {parameters}")
    return total


def formula(kind: type):
    """The count of the nearest class that has one."""
    return next((COUNTS[base] for base in kind.__mro__ if base in COUNTS), nothing)


def run_custom(function, layer, inputs, outputs) -> int:
    """The operations that the user's function adds to `layer.total_ops`."""
    layer.total_ops = 0
    function(layer, inputs, outputs)
    ops = int(layer.total_ops)
    del layer.total_ops
    return ops


def describe_count(kind: type, custom: dict) -> str:
    """Paddle's sentence on a class of layers."""
    if kind in custom:
        return f"Customize Function has been applied to {kind}"
    if any(base in COUNTS for base in kind.__mro__):
        return f"{kind}'s flops has been counted"
    return f"Cannot find suitable count function for {kind}. Treat it as zero FLOPs."


HEAD = ("Layer Name", "Input Shape", "Output Shape", "Params", "Flops")


def table(rows: list[tuple[str, ...]]) -> str:
    """The rows under their heads, in a frame."""
    widths = [2 + max(map(len, cells)) for cells in zip(HEAD, *rows, strict=True)]
    rule = "+" + "+".join("-" * width for width in widths) + "+"

    head, *body = (f"|{line(cells, widths, '|')}|" for cells in (HEAD, *rows))
    return "\n".join([rule, head, rule, *body, rule])
