"""A place in a model where values are rounded, though there is no layer."""

from ..layer.layers import Layer


class Stub(Layer):
    """Marks a value that is to be observed and rounded, such as the input of a function.

    It passes its input on, until `PTQ.quantize` or `QAT.quantize` put a `QuanterStub` in its place.
    `observer` is the factory of what observes here; None takes that of the `QuantConfig`.

    >>> paddle.nn.quant.Stub()(paddle.ones([2])).tolist()
    [1.0, 1.0]
    """

    def __init__(self, observer=None):
        super().__init__()
        self._observer = observer

    def forward(self, input):
        return input


class QuanterStub(Layer):
    """The replacement of a `Stub`: its input goes through an observer or a quanter."""

    def __init__(self, layer: Stub, q_config):
        super().__init__()
        factory = layer._observer or q_config.activation
        self._observer = None if factory is None else factory._instance(layer)

    def forward(self, input):
        return input if self._observer is None else self._observer(input)
