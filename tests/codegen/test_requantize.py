"""Networks on bytes, whose sums become bytes again in one function: the same to the last bit."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization import observers as o
from tests.codegen.compiling import needs_gcc

pytestmark = needs_gcc


class Net(nn.Layer):
    """Convolutions of some channels, with the given activation, around a residual."""

    def __init__(self, channels: int, activation):
        super().__init__()
        self.first = nn.Conv2D(3, channels, 1)
        self.second = nn.Conv2D(channels, channels, 3, stride=2, padding=1)
        self.third = nn.Conv2D(channels, channels, 1)
        self.last = nn.Conv2D(channels, 5, 1)
        self.activation = activation

    def forward(self, x):
        x = self.activation(self.second(self.activation(self.first(x))))
        return self.last(self.activation(x + self.third(x)))


@pytest.mark.parametrize(
    ("channels", "activation"),
    [(40, F.relu), (37, F.relu6), (13, lambda x: x), (64, F.tanh)],
    ids=["relu", "relu6", "none", "tanh"],
)
def test_sums_become_bytes(channels, activation):
    paddle.seed(0)
    net, x = Net(channels, activation).eval(), 3 * paddle.randn([2, 3, 9, 7])
    kinds = o.AbsmaxObserver(), o.AbsMaxChannelWiseWeightObserver()
    ptq = PTQ(QuantConfig(activation=kinds[0], weight=kinds[1]))
    with paddle.no_grad():
        observed = ptq.quantize(net)
        observed(x / 2)  # some values are beyond what was observed
        small = ptq.convert(observed)
        run = paddle.jit.to_static(lambda x: small(x), backend="native")
        np.testing.assert_array_equal(run(x).numpy(), small(x).numpy())
    source = run.executables[0].source.own
    usual = activation is not F.tanh
    assert (source.count(" requantize(") > 2) is usual
    assert ("integer_rows_bytes(" in source) is (activation in (F.relu, F.relu6))


def test_biases_that_no_byte_holds():
    """Not numbers, and more than a whole number holds: with bounds before they are packed."""
    paddle.seed(0)
    net, x = Net(40, F.relu6).eval(), paddle.randn([1, 3, 9, 7])
    kinds = o.AbsmaxObserver(), o.AbsMaxChannelWiseWeightObserver()
    ptq = PTQ(QuantConfig(activation=kinds[0], weight=kinds[1]))
    with paddle.no_grad():
        observed = ptq.quantize(net)
        observed(x)
        small = ptq.convert(observed)
        biases = [value for name, value in small.state_dict().items() if name.endswith("bias")]
        for bias in biases[:-1]:
            given = bias.numpy()
            given[:4] = float("nan"), float("inf"), 1e30, -1e30
            bias.set_value(given)
        run = paddle.jit.to_static(lambda x: small(x), backend="native")
        np.testing.assert_array_equal(run(x).numpy(), small(x).numpy())
    assert " requantize(" in run.executables[0].source.own
