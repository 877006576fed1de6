"""What a trace assigns to attributes of layers, and to names outside: each run does it again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ..engine.eager.side_effects import final_record, is_symbolic
from ..engine.eager.tensor import Tensor, wrap
from ..engine.eager.tracer import Tracer


class Attribute(NamedTuple):
    """A run assigns a new tensor to an attribute of a layer."""

    layer: object
    name: str
    outputs: tuple

    def leave(self, inputs, array) -> None:
        setattr(self.layer, self.name, wrap(array))


class Changes:
    """The assignments of a trace."""

    def __init__(self):
        self.stores: list[tuple] = []  # (a layer, its attributes or buffers, a copy from before)
        self.rebound: list[tuple] = []  # (an outer tensor, the tensor it equals after a run)

    def assigned(self) -> list[tuple]:
        """(layer, store, name, value before, new tensor) for each attribute assigned a tensor."""
        return [
            (layer, store, name, before.get(name, MISSING), now)
            for layer, store, before in self.stores
            for name, now in store.items()
            if now is not before.get(name) and isinstance(now, Tensor) and is_symbolic(now)
        ]

    def replaced(self) -> list:
        """What is bound anew, as it was before."""
        return [before for before, _ in self.rebound] + [each[3] for each in self.assigned()]

    def effects(self, tracer) -> Iterator[tuple]:
        """The assignments of a run.

        Where the tensor before had the same shape and dtype, the run overwrites it instead.
        """
        root, over = tracer.root, list(self.rebound)
        for layer, _, name, before, now in self.assigned():
            if isinstance(before, Tensor) and before.spec == now.spec:
                over.append((before, now))
            else:
                yield [now], partial(Attribute, layer, name)
        values = [root.symbolic(final_record(tracer, now), root.place) for _, now in over]
        for (before, _), value in zip(over, values, strict=True):
            tracer.write(before, wrap(value))

    def undo(self) -> None:
        """Give layers their attributes again."""
        for _, store, name, before, _ in self.assigned():
            if before is MISSING:
                del store[name]
            else:
                store[name] = before
        for layer, store, before in self.stores:  # undo what became a buffer
            for name in getattr(layer, "_buffers", {}).keys() & (before.keys() - store.keys()):
                del layer._buffers[name]
                store[name] = before[name]


MISSING = object()


def changes_of(tracer) -> Changes:
    """The assignments of a trace so far."""
    if not tracer.changes:
        tracer.changes.append(Changes())
    return tracer.changes[0]


def note_layer(tracer, layer) -> None:
    """Remember a layer, and what its attributes are before anything is assigned to them."""
    if id(layer) not in tracer.layers:
        tracer.layers[id(layer)] = layer
        for store in (vars(layer), getattr(layer, "_buffers", {})):
            changes_of(tracer).stores.append((layer, store, dict(store)))


Tracer.note_layer = note_layer
