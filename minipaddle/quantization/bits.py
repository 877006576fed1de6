"""How many bits each layer gets: more where rounding hurts more."""

from collections.abc import Callable, Sequence

from .. import nn
from ..core.prelude import Recording, slot, value_error
from .quanters import FakeQuanterChannelWiseAbsMax


def sensitivity(net: nn.Layer, score: Callable, choices: Sequence[int] = (8, 4, 3, 2)) -> dict:
    """For each `Linear` and `Conv2D` below a network {bits: how much the score rises}.

    One layer's weight is rounded at a time, with a scale for each output; afterwards it is what it
    was. `score(net)` is a number that is small where the network is good, such as its loss.

    >>> from minipaddle.quantization.bits import sensitivity
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(2, 1, bias_attr=False))
    >>> net[0].weight.set_value([[1.0], [0.4]])
    >>> rises = sensitivity(net, lambda net: net(paddle.ones([1, 2])).item(), choices=(4, 2))
    >>> {bits: round(rise, 2) for bits, rise in rises[net[0]].items()}
    {4: 0.03, 2: -0.4}
    """
    rises, usual = {}, score(net)
    for layer in net.sublayers():
        if isinstance(layer, nn.Linear | nn.Conv2D):
            weight = layer.weight.numpy()
            rises[layer] = {}
            for bits in choices:
                rounding = FakeQuanterChannelWiseAbsMax(bit_length=bits)._instance(layer)
                with Recording(False):
                    layer.weight.set_value(rounding(layer.weight))
                rises[layer][bits] = score(net) - usual
                layer.weight.set_value(weight)
    return rises


@slot("quantization.choose_bits")
def choose_bits(rises: list, sizes: list, budget: int) -> list:
    """The number of bits for each layer, within a budget of bits for all weights together.

    `rises[k]` is {bits: how much the score rises} of a layer with `sizes[k]` weights. Every
    layer begins with its most bits. While the sum exceeds the budget, the layer whose score rises
    least per bit saved takes its next lower choice. Raises ValueError if the lowest choices of all
    layers exceed the budget.

    >>> from minipaddle.quantization.bits import choose_bits
    >>> choose_bits([{8: 0.0, 4: 0.1}, {8: 0.0, 4: 0.3}], [100, 100], budget=1200)
    [4, 8]
    """
    bits = [max(own) for own in rises]
    while (used := sum(b * size for b, size in zip(bits, sizes, strict=True))) > budget:
        steps = []
        for k, own in enumerate(rises):
            fewer = [b for b in own if b < bits[k]]
            if fewer and sizes[k]:
                saved = (bits[k] - max(fewer)) * sizes[k]
                steps.append(((own[max(fewer)] - own[bits[k]]) / saved, k, max(fewer)))
        if not steps:
            raise value_error(f"choose_bits: a budget of {budget} bits", f"at least {used}")
        _, k, now = min(steps)
        bits[k] = now
    return bits
