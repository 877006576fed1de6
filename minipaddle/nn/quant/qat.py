"""`Linear` and `Conv2D` on rounded weights and inputs.

Before they are converted they multiply floats that are rounded (see `fake_quantize`), so that they
can be trained or observed. Afterwards the weight is whole numbers of one byte, and so is the input,
and the product is exact: eager execution, interpreter and C give the same floats to the last bit.
"""

from math import prod

from ...core.prelude import Tensor
from ...ops.quantized import can_multiply, quantized_conv, quantized_matmul
from .. import functional as F
from ..functional.conv import add_bias, prepare
from .format import ConvertibleQuantedLayer


class Quanted(ConvertibleQuantedLayer):
    """What the two layers have in common: a weight, a bias, and a quanter for weight and input."""

    seen: tuple[int, int] | None = None
    """Elements of the last input that was observed eagerly, and of the result: for a report."""

    axis: int
    """The axis of the weight along which outputs are."""

    def __init__(self, layer, q_config):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.weight_quanter = self.activation_quanter = None
        if q_config.weight is not None:
            self.weight_quanter = q_config.weight._instance(layer)
        if q_config.activation is not None:
            self.activation_quanter = q_config.activation._instance(layer)

    def weights_to_quanters(self) -> list[tuple[str, str]]:
        return [("weight", "weight_quanter")]

    def activation_quanters(self) -> list[str]:
        return ["activation_quanter"]

    def forward(self, input):
        pair = self.whole(input) if self.converted else None
        if pair is not None:
            return self.of_whole_numbers(*pair)
        x, w = self.activation_quanter, self.weight_quanter
        y = self.of_floats(
            input if x is None else x(input), self.weight if w is None else w(self.weight)
        )
        if not self.converted and type(y) is Tensor:  # not a symbolic array
            object.__setattr__(self, "seen", (input.size, y.size))
        return y

    def whole(self, input):
        """Input and weight in whole numbers; None if one of them has none, or cannot use them."""
        quanters = self.activation_quanter, self.weight_quanter
        if None in quanters:
            return None
        pair = tuple(q.whole(x) for q, x in zip(quanters, (input, self.weight), strict=True))
        shape = self.weight.shape
        terms = prod(shape) // shape[self.axis]
        return pair if None not in pair and can_multiply(*pair, self.axis, terms) else None


class QuantedLinear(Quanted):
    """`Linear` on a rounded weight and input.

    >>> from minipaddle.quantization import PTQ, QuantConfig
    >>> from minipaddle.quantization.observers import AbsmaxObserver
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(2, 3)).eval()
    >>> ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    >>> observed = ptq.quantize(net)
    >>> y = observed(paddle.ones([1, 2]))
    >>> ptq.convert(observed)[0].weight.dtype
    paddle.int8
    """

    axis = 1

    def __init__(self, layer, q_config):
        super().__init__(layer, q_config)
        self.name = layer.name

    def of_floats(self, input, weight):
        return F.linear(input, weight, self.bias, self.name)

    def of_whole_numbers(self, x, w):
        y = quantized_matmul(x, w)
        return y if self.bias is None else y + self.bias


class QuantedConv2D(Quanted):
    """`Conv2D` on a rounded weight and input.

    >>> from minipaddle.quantization import QAT, QuantConfig
    >>> from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> net = paddle.nn.Sequential(paddle.nn.Conv2D(1, 2, 3))
    >>> qat = QAT(QuantConfig(activation=None, weight=FakeQuanterWithAbsMaxObserver(bit_length=4)))
    >>> qat.quantize(net)[0](paddle.ones([1, 1, 3, 3])).shape
    [1, 2, 1, 1]
    """

    axis = 0

    def __init__(self, layer, q_config):
        super().__init__(layer, q_config)
        for name in ("stride", "padding", "padding_mode", "dilation", "groups", "data_format"):
            setattr(self, f"_{name}", getattr(layer, f"_{name}"))

    def framed(self, input):
        """(the input, with a border that does not hold zeros; the padding that is left to do)."""
        if self._padding_mode == "zeros":
            return input, self._padding
        pads = [self._padding] * 4
        return F.pad(input, pads, mode=self._padding_mode, data_format=self._data_format), 0

    def of_floats(self, input, weight):
        input, padding = self.framed(input)
        return F.conv2d(
            input, weight, self.bias, self._stride, padding, self._dilation, self._groups,
            self._data_format,
        )  # fmt: skip

    def of_whole_numbers(self, x, w):
        q, padding = self.framed(x.q)
        given = self._stride, padding, self._dilation, self._data_format
        q, _, stride, pairs, dilation, last = prepare("conv2d", 2, q, w.q, *given)
        at = {"stride": stride, "padding": pairs, "dilation": dilation, "groups": self._groups}
        return add_bias(quantized_conv(x._replace(q=q), w, **at), self.bias, last)
