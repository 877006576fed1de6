"""`QuantConfig`: which layers are quantized, and by what."""

from typing import NamedTuple

from .. import nn
from ..core.missing import refuse_invented
from ..engine.core.errors import type_error
from ..nn.quant.qat import QuantedConv2D, QuantedLinear
from ..nn.quant.stub import QuanterStub, Stub
from .factory import QuanterFactory
from .wrapper import ObserveWrapper

DEFAULT_QAT_LAYER_MAPPINGS = {
    Stub: QuanterStub,
    nn.Linear: QuantedLinear,
    nn.Conv2D: QuantedConv2D,
}
"""For a kind of layer the one that takes its place."""

DEFAULT_LEAVES = [nn.ReLU, nn.AvgPool2D]


class SingleLayerConfig(NamedTuple):
    """The factories for one layer: of what is done to its input and to its weight."""

    activation: QuanterFactory | None
    weight: QuanterFactory | None

    def __str__(self) -> str:
        return f"activation: {self.activation}\nweight: {self.weight}"


class QuantConfig:
    """The factories that observe or round inputs (`activation`) and weights, or None.

    The two given here are for all layers. A layer's type, its full name, and the layer itself come
    before, in this order: see `add_type_config`, `add_name_config`, `add_layer_config`; what holds
    for a layer holds for those in it.

    >>> from minipaddle.quantization import QuantConfig
    >>> from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> print(QuantConfig(activation=None, weight=FakeQuanterWithAbsMaxObserver(bit_length=4)))
    Global config:
    activation: None
    weight: FakeQuanterWithAbsMaxObserver(name=None,moving_rate=0.9,bit_length=4,dtype=float32)
    <BLANKLINE>
    """

    @refuse_invented("paddle.quantization.QuantConfig")
    def __init__(self, activation, weight):
        for name, factory in (("activation", activation), ("weight", weight)):
            check_factory(name, factory)
        nothing = activation is None and weight is None
        self._global_config = None if nothing else SingleLayerConfig(activation, weight)
        self._layer2config: dict = {}
        self._prefix2config: dict[str, SingleLayerConfig] = {}
        self._type2config: dict[type, SingleLayerConfig] = {}
        self._model = None
        self._qat_layer_mapping = dict(DEFAULT_QAT_LAYER_MAPPINGS)
        self._customized_leaves: list[type] = []

    # ---- saying it ---------------------------------------------------------------------------

    def add_layer_config(self, layer, activation=None, weight=None):
        """The factories for a layer, or for a list of layers."""
        for each in as_list(layer):
            self.add_name_config(each.full_name(), activation, weight)

    def add_name_config(self, layer_name, activation=None, weight=None):
        """The factories for the layer with a `full_name()`, or for a list of names."""
        check_factory("activation", activation), check_factory("weight", weight)
        config = SingleLayerConfig(activation, weight)
        self._prefix2config.update(dict.fromkeys(as_list(layer_name), config))

    def add_type_config(self, layer_type, activation=None, weight=None):
        """The factories for all layers of a type, or of a list of types."""
        check_factory("activation", activation), check_factory("weight", weight)
        for each in as_list(layer_type):
            require_kind("add_type_config", each)
            self._type2config[each] = SingleLayerConfig(activation, weight)

    def add_qat_layer_mapping(self, source, target):
        """Let `target(layer, config)` take the place of layers of the type `source`."""
        require_kind("add_qat_layer_mapping", source)
        require_kind("add_qat_layer_mapping", target)
        self._qat_layer_mapping[source] = target

    def add_customized_leaf(self, layer_type):
        """Take layers of a type as one, whatever is in them."""
        self._customized_leaves.append(layer_type)

    customized_leaves = property(lambda self: self._customized_leaves)
    qat_layer_mappings = property(lambda self: self._qat_layer_mapping)
    default_qat_layer_mapping = property(lambda self: DEFAULT_QAT_LAYER_MAPPINGS)
    global_config = property(lambda self: self._global_config)

    # ---- asking ------------------------------------------------------------------------------

    def _specify(self, model, outer: SingleLayerConfig | None = None):
        """Note for each layer below a model what was said for it, or for what it is in."""
        self._model = model if self._model is None else self._model
        for child in model.children():
            config = self._type2config.get(type(child), outer or self._global_config)
            config = self._prefix2config.get(child.full_name(), config)
            if config is not None:
                self._layer2config[child] = config
            self._specify(child, config)

    def _get_config_by_layer(self, layer) -> SingleLayerConfig | None:
        return self._layer2config.get(layer)

    def _is_quantifiable(self, layer) -> bool:
        return layer in self._layer2config

    def _get_qat_layer(self, layer):
        """The replacement of a layer."""
        return self._qat_layer_mapping[type(layer)](layer, self._get_config_by_layer(layer))

    def _need_observe(self, layer) -> bool:
        """Whether the input of a layer without weights is observed, as in Paddle."""
        config = self._get_config_by_layer(layer)
        leaf = not layer._sub_layers or type(layer) in [*DEFAULT_LEAVES, *self._customized_leaves]
        return leaf and config is not None and config.activation is not None

    def _get_observe_wrapper(self, layer) -> ObserveWrapper:
        activation = self._get_config_by_layer(layer).activation
        return ObserveWrapper(activation._instance(layer), layer)

    def __deepcopy__(self, memo):
        """A copy with tables of its own; factories and types are shared."""
        copy = object.__new__(type(self))
        tables = {k: v.copy() for k, v in vars(self).items() if isinstance(v, dict | list)}
        copy.__dict__.update({**vars(self), **tables, "_layer2config": {}, "_model": None})
        return copy

    # ---- showing -----------------------------------------------------------------------------

    def details(self) -> str:
        """The layers of the model that is quantized, each with what was said for it."""
        return str(self) if self._model is None else self._details_of(self._model)

    def _details_of(self, layer) -> str:
        lines = []
        for name, child in layer.named_children():
            if child in self._layer2config:
                inner = self._details_of(child).replace("\n", "\n    ")
                lines.append(f"\n  ({name}): {inner}, {self._layer2config[child]}")
        return f"{type(layer).__name__}({''.join(lines)}{chr(10) * bool(lines)})"

    def __str__(self) -> str:
        text = f"Global config:\n{self._global_config}\n"
        if self._type2config:
            text += f"Layer type config:\n{self._type2config}\n"
        if self._prefix2config:
            text += f"Layer prefix config: \n{self._prefix2config}\n"
        return text


def as_list(x) -> list:
    return x if isinstance(x, list) else [x]


def check_factory(name: str, factory) -> None:
    """Raise TypeError for what makes no quanters, such as a class that was not called."""
    if (factory is not None and not hasattr(factory, "_instance")) or isinstance(factory, type):
        raise type_error(
            f"{name}={factory!r}", "a factory such as AbsmaxObserver(quant_bits=8), or None"
        )


def require_kind(name: str, kind) -> None:
    if not (isinstance(kind, type) and issubclass(kind, nn.Layer)):
        raise type_error(f"{name} was given {kind!r}", "a class of layers")
