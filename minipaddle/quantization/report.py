"""The gain of 8 bits, layer by layer, before a network is converted."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..nn.quant.qat import Quanted


class LayerCosts(NamedTuple):
    """The time of a product, of an element of inputs and outputs, and of a layer as such: in
    multiplications of floats, fitted to ResNet-18, MobileNetV2, LeNet and a GPT on AVX2.
    """

    product: float
    element: float
    layer: float

    def of(self, row: LayerCost) -> float:
        return self.product * row.products + self.element * row.elements + self.layer


FLOATS, WHOLE = LayerCosts(1.9, 29, 0), LayerCosts(0.5, 35, 140_000)

CALL = 400_000
"""The same for a run of a network, whatever is in it."""


class LayerCost(NamedTuple):
    """A layer: its multiplications, the elements of its input and output, the bytes of its weight
    in float32 and as whole numbers.
    """

    name: str
    products: int
    elements: int
    full: int
    small: int

    @property
    def gain(self) -> float:
        """How many times faster it becomes, as is estimated."""
        return FLOATS.of(self) / WHOLE.of(self)


class SpeedReport(tuple):
    """Rows of a network; its text is a table and a verdict."""

    @property
    def total(self) -> LayerCost:
        """The whole network as one row."""
        sums = [sum(column) for column in [*zip(*self, strict=True)][1:]] if self else [0] * 4
        return LayerCost("all", *sums)

    @property
    def gain(self) -> float:
        """How many times faster the network becomes, as is estimated from these layers."""
        before, after = (CALL + sum(map(costs.of, self)) for costs in (FLOATS, WHOLE))
        return before / after

    def __str__(self) -> str:
        heads = "products", "elements", "bytes", "8 bits", "gain"
        lines = ["{:<24}{:>14}{:>12}{:>12}{:>12}{:>7}".format("layer", *heads)]
        for row in self:
            lines.append(
                f"{row.name:<24}{row.products:>14,}{row.elements:>12,}{row.full:>12,}"
                f"{row.small:>12,}{row.gain:>7.2f}"
            )
        return "\n".join([*lines, self.verdict])

    __repr__ = __str__

    @property
    def verdict(self) -> str:
        """The gain to expect, in a sentence."""
        if not self:
            return "No layer with whole numbers has seen data: run the observed network first."
        share = self.total.small / max(self.total.full, 1)
        memory = f"weights take {share:.2f} of the bytes"
        if self.gain >= 1.05:
            return f"8 bits pay: about {self.gain:.1f} times faster, {memory}."
        return (
            f"8 bits do not pay in time: about {1 / self.gain:.1f} times as long, as rounding "
            f"costs more than its few products save; {memory}."
        )


def report(model) -> SpeedReport:
    """The gain of an observed or converted network by products of whole numbers.

    The estimate counts products and elements of the last input that the network saw eagerly; its
    costs are fitted to measured networks. A layer whose input is not rounded is left out: it
    multiplies floats. Ask before `convert`: small networks become slower.

    >>> from minipaddle.quantization import PTQ, QuantConfig, report
    >>> from minipaddle.quantization.observers import AbsmaxObserver
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(64, 8)).eval()
    >>> ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    >>> observed = ptq.quantize(net)
    >>> y = observed(paddle.ones([1, 64]))
    >>> print(report(observed).verdict.split(":")[0])
    8 bits do not pay in time
    """
    rows = []
    for name, layer in model.named_sublayers():
        if not (isinstance(layer, Quanted) and layer.activation_quanter and layer.seen):
            continue
        weight = layer.weight
        read, written = layer.seen
        terms = prod(weight.shape) // weight.shape[layer.axis]
        rows.append(LayerCost(name, written * terms, read + written, 4 * weight.size, weight.size))
    return SpeedReport(rows)
