"""Quanters: they round in training, by scales that follow what they see.

Source: Paddle API `paddle.quantization.quanters`.
"""

from ..core.prelude import Recording, e, maximum, reduction, reshape, slot
from ..nn.initializer import Constant
from ..nn.param_attr import ParamAttr
from ..ops.quantization import fake_quantize, width
from .base import SymmetricQuanter
from .factory import FactoryOfKind, QuanterFactory

LEAST = 1e-7
"""The least scale, so that zeros can be divided by it."""


def largest(x):
    """The largest magnitude, a number."""
    return reduction.max(e.abs(x), axis=tuple(range(x.spec.ndim)), keepdim=False)


@slot("quantization.moving_average")
def moving_average(state, accum, top, rate: float):
    """(state, accum) after another magnitude. The scale is accum / state: a mean in which older
    magnitudes count less and less.
    """
    return state * rate + 1.0, accum * rate + top


@slot("quantization.channel_scales")
def channel_scales(x, axis: int):
    """The largest magnitude at each index along an axis, at least `LEAST`."""
    others = tuple(d for d in range(x.spec.ndim) if d != axis)
    return maximum(reduction.max(e.abs(x), axis=others, keepdim=False), LEAST)


def output_axis(layer) -> int:
    """The axis of a layer's weight along which its outputs are: 1 in a matrix [in, out]."""
    return 1 if layer.weight.ndim == 2 else 0


def symmetric(bits: int) -> dict:
    """The whole numbers that training rounds to: as many below 0 as above."""
    high = width(bits)["high"]
    return {"low": -high, "high": high}


def create_frozen(layer, value: float, name: str | None):
    """A number that a layer keeps and does not train, as in Paddle with one axis."""
    attr = ParamAttr(name=name, initializer=Constant(value), trainable=False)
    return layer.create_parameter([1], attr, "float32")


class FakeQuanterWithAbsMaxObserverLayer(SymmetricQuanter):
    """Rounds by the moving average of the largest magnitude: see the factory."""

    def __init__(self, layer, name=None, moving_rate=0.9, bit_length=8, dtype="float32"):
        super().__init__()
        self._moving_rate, self._bits = moving_rate, bit_length
        self._scale, self._state, self._accum = (
            create_frozen(self, value, name and f"{name}.{part}")
            for part, value in (("scale", 0.001), ("state", 1.0), ("accum", 1.0))
        )

    def forward(self, input):
        if self.training:
            with Recording(False):
                top = reshape(largest(input), shape=(1,)).astype("float32")
                now = moving_average(self._state, self._accum, top, self._moving_rate)
                self._state.become(now[0]), self._accum.become(now[1])
                self._scale.become(maximum(self._accum / self._state, LEAST))
        scale = reshape(self._scale, shape=())
        return fake_quantize(input, scale, 0.0, **symmetric(self._bits))

    def scales(self):
        return self._scale


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Rounds to `bit_length` bits; the scale is a moving average of the largest magnitude.

    state = rate · state + 1, accum = rate · accum + max|x|, scale = accum / state; state and accum
    start at 1 and move in training alone. The derivative is that of the identity, where values are
    clipped too.

    >>> from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> rounding = FakeQuanterWithAbsMaxObserver(bit_length=2)._instance(None)
    >>> for _ in range(100):
    ...     y = rounding(paddle.to_tensor([0.4, 3.0]))
    >>> rounding.scales().round(2).tolist(), y.round(2).tolist()
    ([3.0], [0.0, 3.0])
    """

    kind = FakeQuanterWithAbsMaxObserverLayer

    def __init__(self, moving_rate=0.9, bit_length=8, dtype="float32", name=None):
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)


class FakeQuanterChannelWiseAbsMaxLayer(SymmetricQuanter):
    """Rounds a weight by the largest magnitude of each of its outputs: see the factory."""

    def __init__(self, layer, bit_length=8):
        super().__init__()
        self._bits, self._axis = bit_length, output_axis(layer)
        self._weight = [layer.weight]  # in a list it is no part of this layer

    def forward(self, input):
        shape = [1] * input.ndim
        shape[self._axis] = -1
        with Recording(False):
            scale = reshape(channel_scales(input, self._axis), shape=tuple(shape))
        return fake_quantize(input, scale, 0.0, **symmetric(self._bits))

    def scales(self):
        return channel_scales(self._weight[0].detach(), self._axis)


class FakeQuanterChannelWiseAbsMax(FactoryOfKind):
    """Rounds a weight to `bit_length` bits; each output has a scale of its own, the largest
    magnitude that it holds now.

    >>> from minipaddle.quantization.quanters import FakeQuanterChannelWiseAbsMax
    >>> layer = paddle.nn.Linear(2, 2)
    >>> layer.weight.set_value([[3.0, 30.0], [1.2, -9.0]])
    >>> FakeQuanterChannelWiseAbsMax(bit_length=3)._instance(layer)(layer.weight).tolist()
    [[3.0, 30.0], [1.0, -10.0]]
    """

    kind = FakeQuanterChannelWiseAbsMaxLayer


__all__ = ["FakeQuanterWithAbsMaxObserver"]
