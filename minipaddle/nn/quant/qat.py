"""`Linear` and `Conv2D` on rounded weights and inputs.

Before they are converted they multiply floats that are rounded (see `fake_quantize`), so that they
can be trained or observed. Afterwards the weight is whole numbers of one byte, and so is the input,
and the product is exact: eager execution, interpreter and C give the same floats to the last bit.
"""

from ...core.prelude import Tensor
from ...ops.quantized import whole_numbers
from .. import functional as F
from .format import ConvertibleQuantedLayer


class Quanted(ConvertibleQuantedLayer):
    """The base of the two layers: a weight, a bias, and a quanter for weight and input."""

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
        x = self.round(self.activation_quanter, input)
        w = self.round(self.weight_quanter, self.weight)
        with whole_numbers():
            y = self.multiply(x, w)
        if not self.converted and type(y) is Tensor:  # not a symbolic array
            object.__setattr__(self, "seen", (input.size, y.size))
        return y

    def round(self, quanter, x):
        """Input or weight as its quanter rounds it."""
        if quanter is None:
            return x
        return quanter.defer(x) if self.converted else quanter(x)


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

    def multiply(self, input, weight):
        return F.linear(input, weight, self.bias, self.name)


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

    def add_border(self, input):
        """(the input, with a border that does not hold zeros; the padding that is left to do)."""
        if self._padding_mode == "zeros":
            return input, self._padding
        pads = [self._padding] * 4
        return F.pad(input, pads, mode=self._padding_mode, data_format=self._data_format), 0

    def multiply(self, input, weight):
        input, padding = self.add_border(input)
        return F.conv2d(
            input, weight, self.bias, self._stride, padding, self._dilation, self._groups,
            self._data_format,
        )  # fmt: skip
