"""A layer as a tree of named parts: walks over its sublayers, parameters and buffers."""

from collections.abc import Iterator


class LayerWalks:
    """The walks of `Layer`. Every part is visited once, however often it is shared."""

    def children(self) -> Iterator:
        """The direct sublayers, each once."""
        for _, layer in self.named_children():
            yield layer

    def named_children(self) -> Iterator[tuple]:
        """The direct sublayers as (name, layer)."""
        seen = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and layer not in seen:
                seen.add(layer)
                yield name, layer

    def sublayers(self, include_self: bool = False) -> list:
        """All layers below this one, parents first."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def modules(self) -> Iterator:
        """This layer and all below it."""
        yield from self.sublayers(include_self=True)

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False, layers_set=None, remove_duplicate=True
    ) -> Iterator[tuple]:
        """All layers below as (path, layer), parents first; `layers_set` holds those to leave out.

        >>> net = paddle.nn.Sequential(paddle.nn.Linear(1, 1), paddle.nn.Sequential())
        >>> [name for name, _ in net.named_sublayers(prefix="net", include_self=True)]
        ['net', 'net.0', 'net.1']
        """
        seen = set() if layers_set is None else layers_set
        if include_self and not (remove_duplicate and self in seen):
            seen.add(self)
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer is not None:
                yield from layer.named_sublayers(
                    f"{prefix}.{name}" if prefix else name, True, seen, remove_duplicate
                )

    def parameters(self, include_sublayers: bool = True) -> list:
        """All parameters, each once."""
        return [p for _, p in self.named_parameters(include_sublayers=include_sublayers)]

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple]:
        """All parameters as (path, parameter).

        >>> [name for name, _ in paddle.nn.Linear(2, 3).named_parameters()]
        ['weight', 'bias']
        """
        return self._walk_named("_parameters", prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers: bool = True) -> list:
        """All buffers, each once."""
        return [b for _, b in self.named_buffers(include_sublayers=include_sublayers)]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple]:
        """All buffers as (path, buffer)."""
        return self._walk_named("_buffers", prefix, include_sublayers, remove_duplicate)

    def _walk_named(self, kind: str, prefix: str, include_sublayers: bool, remove_duplicate: bool):
        layers = (
            self.named_sublayers(prefix, True, None, remove_duplicate)
            if include_sublayers
            else [(prefix, self)]
        )
        seen = set()
        for path, layer in layers:
            for name, part in getattr(layer, kind).items():
                if part is None or (remove_duplicate and id(part) in seen):
                    continue
                seen.add(id(part))
                yield f"{path}.{name}" if path else name, part


def child_name(parent: LayerWalks, layer: LayerWalks) -> str:
    """The path of `layer` below `parent`, or its class name when it is not registered there."""
    for name, child in parent._sub_layers.items():
        if child is layer:
            return name
    names = (name for name, child in parent.named_sublayers() if child is layer)
    return next(names, type(layer).__name__)


def layers_of(scope) -> tuple:
    """The calls of layers that a record or an interpreter is in, outermost first: each as (the call
    around it, the layer, the user's line)."""
    calls = []
    while scope is not None:
        calls.append(scope)
        scope = scope[0]
    return tuple(reversed(calls))


def layer_name(scope) -> str:
    """The name a layer has in its parent; the outermost is called by its class."""
    outer, layer, _ = scope
    return type(layer).__name__ if outer is None else child_name(outer[1], layer)


def path_of(scope) -> str:
    """`LeNet.features.0` for the scope that a record or an interpreter holds."""
    return ".".join(map(layer_name, layers_of(scope)))
