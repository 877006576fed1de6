"""Networks on bytes, whose sums become bytes again in one function: the same to the last bit."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.codegen.machine import target_processor
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors.native import Executable
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization import observers as o
from tests.codegen.compiling import needs_gcc, on_each_processor, programs_for
from tests.passes.programs import program_of

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


KINDS = {
    "relu": (40, F.relu), "relu6": (37, F.relu6), "none": (13, lambda x: x), "tanh": (64, F.tanh),
}  # fmt: skip


def as_bytes(kind: str):
    """A network on bytes, of some channels and an activation, and its input."""
    channels, activation = KINDS[kind]
    paddle.seed(0)
    net, x = Net(channels, activation).eval(), 3 * paddle.randn([2, 3, 9, 7])
    kinds = o.AbsmaxObserver(), o.AbsMaxChannelWiseWeightObserver()
    ptq = PTQ(QuantConfig(activation=kinds[0], weight=kinds[1]))
    with paddle.no_grad():
        observed = ptq.quantize(net)
        observed(x / 2)  # some values are beyond what was observed
        return ptq.convert(observed), x


@pytest.mark.parametrize("kind", KINDS)
@on_each_processor
def test_sums_become_bytes(processor, kind):
    small, x = as_bytes(kind)
    with paddle.no_grad(), programs_for(processor):
        run = paddle.jit.to_static(lambda x: small(x), backend="native")
        np.testing.assert_array_equal(run(x).numpy(), small(x).numpy())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("processor", "form"), [("x86-64-v3", "bytes"), ("icelake-server", "fours")]
)
def test_one_function_makes_them(processor, form, kind):
    """Tiles of the form for bytes that are not negative, behind a ReLU; for VNNI, for any bytes."""
    small, x = as_bytes(kind)
    with paddle.no_grad(), target_processor(processor):
        program = program_of(small, Spec(x.numpy().shape, x.numpy().dtype))
        source = Executable(program, load=False).source.own
    assert (source.count(" requantize(") > 2) is (kind != "tanh")
    assert (f"integer_rows_{form}(" in source) is (form == "fours" or kind in ("relu", "relu6"))


def test_biases_that_no_byte_holds():
    """Not numbers, and more than a whole number holds: with bounds before they are packed."""
    small, x = as_bytes("relu6")
    with paddle.no_grad():
        biases = [value for name, value in small.state_dict().items() if name.endswith("bias")]
        for bias in biases[:-1]:
            given = bias.numpy()
            given[:4] = float("nan"), float("inf"), 1e30, -1e30
            bias.set_value(given)
        run = paddle.jit.to_static(lambda x: small(x), backend="native")
        np.testing.assert_array_equal(run(x).numpy(), small(x).numpy())
    assert " requantize(" in run.executables[0].source.own
