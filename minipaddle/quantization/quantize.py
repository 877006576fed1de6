"""`PTQ` and `QAT`: a network with observers or quanters in it, and what becomes of it."""

import warnings
from copy import deepcopy

from ..engine.core.errors import value_error
from ..jit.loading import TranslatedLayer
from ..nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter
from .base import BaseQuanter
from .config import QuantConfig
from .programs import QuantedProgram


class Quantization:
    """The base of `PTQ` and `QAT`."""

    def __init__(self, config: QuantConfig):
        self._config = deepcopy(config)

    def prepare(self, model):
        """The model, with other layers in the place of those that are quantized; a loaded program
        in a layer that quantizes its products.
        """
        if isinstance(model, TranslatedLayer):
            return QuantedProgram(model, self._config.global_config)
        self._config._specify(model)
        self._put_quanted_layers(model)
        self._put_observers(model)
        return model

    def _put_quanted_layers(self, model) -> None:
        config, kinds = self._config, self._config.qat_layer_mappings
        for name, child in [*model.named_children()]:
            if config._is_quantifiable(child) and type(child) in kinds:
                setattr(model, name, config._get_qat_layer(child))
            else:
                self._put_quanted_layers(child)

    def _put_observers(self, model) -> None:
        replacements = tuple(self._config.qat_layer_mappings.values())
        for name, child in [*model.named_children()]:
            if self._config._need_observe(child):
                setattr(model, name, self._config._get_observe_wrapper(child))
            elif not isinstance(child, replacements):
                self._put_observers(child)

    def convert(self, model, inplace=False, remain_weight=False):
        """The model on whole numbers, ready for inference: weights are int8 (or int16 for more than
        8 bits), inputs are rounded in `forward`. A copy, unless `inplace`.

        `remain_weight` leaves weights as floats, which are rounded at every run. A layer that saw
        no data stays as it is, with a warning.
        """
        model = model if inplace else deepcopy(model)
        for name, child in [*model.named_children()]:
            if isinstance(child, ConvertibleQuantedLayer):
                if not child.converted and has_seen(child, name):
                    child._convert(remain_weight=remain_weight)
            elif isinstance(child, BaseQuanter):
                if child.scales() is not None:
                    setattr(model, name, LinearQuanterDequanter.from_quanter(child))
            else:
                self.convert(child, inplace=True, remain_weight=remain_weight)
        return model

    def __repr__(self) -> str:
        return self._config.details()


def has_seen(layer: ConvertibleQuantedLayer, name: str) -> bool:
    """Whether all quanters of a layer have scales; where not, a warning names the layer."""
    names = [*(quanter for _, quanter in layer.weights_to_quanters()), *layer.activation_quanters()]
    quanters = [q for q in (getattr(layer, each, None) for each in names) if q is not None]
    if any(q.scales() is None for q in quanters):
        warnings.warn(
            f"{name} (a {type(layer).__name__}) saw no data and stays as it is: run the model on "
            "some before convert",
            stacklevel=3,
        )
        return False
    return any(q is not None for q in quanters)


class PTQ(Quantization):
    """Quantization after training: observers look at what a network computes on some data.

    >>> from minipaddle.quantization import PTQ, QuantConfig
    >>> from minipaddle.quantization.observers import AbsmaxObserver
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(2, 3)).eval()
    >>> ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    >>> observed = ptq.quantize(net)
    >>> y = observed(paddle.ones([1, 2]))
    >>> bool((ptq.convert(observed)(paddle.ones([1, 2])) - y).abs().max() < 0.02)
    True
    """

    def quantize(self, model, inplace=False):
        """The model with observers, to be run on data that is like what it will meet.

        A copy in evaluation mode, unless `inplace`; then the model must be in it. Raises ValueError
        if it is not.
        """
        model = model if inplace else deepcopy(model).eval()
        if model.training:
            raise value_error(
                "PTQ.quantize was given a model in training mode", hint="call model.eval() first"
            )
        return self.prepare(model)


class QAT(Quantization):
    """Training with rounded weights and inputs, to which the network adapts.

    >>> from minipaddle.quantization import QAT, QuantConfig
    >>> from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> q = FakeQuanterWithAbsMaxObserver(bit_length=4)
    >>> qat = QAT(QuantConfig(activation=None, weight=q))
    >>> net = qat.quantize(paddle.nn.Sequential(paddle.nn.Linear(2, 3)))
    >>> net(paddle.ones([1, 2])).sum().backward()
    >>> net[0].weight.grad.tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    def quantize(self, model, inplace=False):
        """The model with quanters, to be trained on. A copy, unless `inplace`.

        Raises ValueError if it is not in training mode.
        """
        if not model.training:
            raise value_error(
                "QAT.quantize was given a model in evaluation mode", hint="call model.train() first"
            )
        return self.prepare(model if inplace else deepcopy(model))
