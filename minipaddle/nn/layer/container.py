"""Layers that hold layers or parameters: in a row, in a list, in a dict."""

from collections.abc import Iterable, Iterator, Mapping

from ...core.prelude import Parameter, type_error
from .layers import Layer

__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]


def position(index: int, length: int, kind: str) -> int:
    """A non-negative position; raises IndexError outside [-length, length)."""
    if not isinstance(index, int):
        raise TypeError(f"{kind} takes an int, a slice or a name as index, not {index!r}")
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for a {kind} of {length}")
    return index % length if length else 0


class Holder(Layer):
    """The base of lists and dicts; the parts are layers, unless a subclass changes `_kind`."""

    _kind, _add = "_sub_layers", Layer.add_sublayer

    _parts = property(lambda self: getattr(self, self._kind))

    def __len__(self) -> int:
        return len(self._parts)


class Numbered(Holder):
    """The base of lists of layers and of parameters: parts named 0, 1, … in `self._parts`."""

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._parts.values())[index])
        return self._parts[str(position(index, len(self), type(self).__name__))]

    def __setitem__(self, index: int, part) -> None:
        self._add(str(position(index, len(self), type(self).__name__)), part)

    def __delitem__(self, index) -> None:
        parts = list(self._parts.values())
        del parts[index]
        self._renumber(parts)

    def __iter__(self) -> Iterator:
        return iter(list(self._parts.values()))

    def _renumber(self, parts: Iterable) -> None:
        self._parts.clear()
        for part in parts:
            self._add(str(len(self)), part)

    def append(self, part):
        """Add one at the end."""
        self._add(str(len(self)), part)
        return self

    def extend(self, parts: Iterable):
        """Add several at the end."""
        for part in parts:
            self.append(part)
        return self

    def insert(self, index: int, part):
        """Put one before position `index`."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"index {index} is out of range for a list of {len(self)}")
        parts = list(self._parts.values())
        parts.insert(index, part)
        self._renumber(parts)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(Numbered):
    """Layers applied in order, given as layers or as (name, layer) pairs.

    >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
    >>> net(paddle.ones([3, 4])).shape
    [3, 2]
    """

    def __init__(self, *layers):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            layers = list(layers[0].items())
        elif len(layers) == 1 and isinstance(layers[0], list) and layers[0]:
            layers = layers[0]
        for k, layer in enumerate(layers):
            named = isinstance(layer, list | tuple)
            self.add_sublayer(*(layer if named else (str(k), layer)))

    def forward(self, input):
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(*list(self._sub_layers.items())[index])
        return self._sub_layers[self._name_of(index)]

    def __setitem__(self, index, layer: Layer) -> None:
        self.add_sublayer(index if isinstance(index, str) else self._name_of(index), layer)

    def __delitem__(self, index) -> None:
        del self._sub_layers[self._name_of(index)]

    def _name_of(self, index) -> str:
        if isinstance(index, str):
            return index
        return list(self._sub_layers)[position(index, len(self), "Sequential")]

    def append(self, module: Layer) -> "Sequential":
        """Add a layer at the end."""
        self.add_sublayer(self._free_name(), module)
        return self

    def insert(self, index: int, module: Layer) -> "Sequential":
        """Put a layer before position `index`; the layers are renumbered."""
        super().insert(index, module)
        return self

    def _free_name(self) -> str:
        """The number after the last; after a deletion it can be higher than the length."""
        numbers = [int(name) + 1 for name in self._sub_layers if name.isdigit()]
        return str(max([len(self), *numbers]))


class LayerList(Numbered):
    """A list of layers, whose parameters belong to the model; it has no `forward`.

    >>> blocks = paddle.nn.LayerList([paddle.nn.Linear(2, 2) for _ in range(3)])
    >>> len(blocks), len(blocks.parameters())
    (3, 6)
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None):
        super().__init__()
        self.extend(sublayers or ())

    def pop(self, key: int = -1) -> Layer:
        """Take one out and return it."""
        layer = self[key]
        del self[key]
        return layer


class ParameterList(Numbered):
    """A list of parameters.

    >>> weights = [paddle.create_parameter([2], "float32") for _ in range(3)]
    >>> len(paddle.nn.ParameterList(weights).state_dict())
    3
    """

    _kind, _add = "_parameters", Layer.add_parameter

    def __init__(self, parameters: Iterable[Parameter] | None = None):
        super().__init__()
        self.extend(parameters or ())


class Named(Holder):
    """The base of dicts of layers and of parameters: parts by name in `self._parts`."""

    def __getitem__(self, key: str):
        return self._parts[key]

    def __setitem__(self, key: str, part) -> None:
        self._add(key, part)

    def __delitem__(self, key: str) -> None:
        del self._parts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._parts))

    def __contains__(self, key: str) -> bool:
        return key in self._parts

    def keys(self):
        """The names."""
        return self._parts.keys()

    def values(self):
        """The parts."""
        return self._parts.values()

    def items(self):
        """The (name, part) pairs."""
        return self._parts.items()

    def clear(self) -> None:
        """Take all parts out."""
        self._parts.clear()

    def pop(self, key: str):
        """Take one part out and return it."""
        return self._parts.pop(key)

    def update(self, parts) -> None:
        """Add or replace parts: from a dict, or from (name, part) pairs."""
        pairs = parts.items() if hasattr(parts, "items") else parts
        for pair in pairs:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                kind, part = type(self).__name__, type(self).__name__.removesuffix("Dict").lower()
                raise type_error(f"{kind} was given {pair!r}", f"a dict or (name, {part}) pairs")
            self._add(*pair)


class LayerDict(Named):
    """A dict of layers, whose parameters belong to the model.

    >>> heads = paddle.nn.LayerDict({"mean": paddle.nn.Linear(2, 1)})
    >>> "mean" in heads, list(heads.state_dict())
    (True, ['mean.weight', 'mean.bias'])
    """

    def __init__(self, sublayers=None):
        super().__init__()
        self.update(sublayers or ())


class ParameterDict(Named):
    """A dict of parameters.

    >>> scales = paddle.nn.ParameterDict({"x": paddle.create_parameter([2], "float32")})
    >>> list(scales.state_dict())
    ['x']
    """

    _kind, _add = "_parameters", Layer.add_parameter

    def __init__(self, parameters=None):
        super().__init__()
        self.update(parameters or ())
