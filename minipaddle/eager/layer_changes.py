"""Changes in layers, between two calls of a program and while it is traced.

A program relies on hundreds of facts about layers: sublayers, parameters, hooks, numbers. It checks
them only after something has changed in some layer, which one comparison tells.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count

from ..engine.eager.tensor import Tensor
from ..engine.eager.tracer import Tracer
from ..engine.ir.builder import SymbolicArray
from ..engine.jit.journal import MISSING, Attribute, same_parts


class Changes:
    """`now` is another number after each change of a layer, but for tensors of buffers."""

    numbers = count(1)
    now = next(numbers)

    def note(self) -> None:
        """Something has changed in a layer."""
        self.now = next(self.numbers)


changes = Changes()
changes.note()


class Parts(OrderedDict):
    """The parts or the hooks of a layer by name. Each change is noted, unless a tensor that is no
    parameter takes the place of another one: programs look at each of those.
    """

    def __setitem__(self, name, part) -> None:
        before = self.get(name, self)
        if part is not before and not (type(before) is Tensor and type(part) is Tensor):
            changes.note()
        super().__setitem__(name, part)


def noting(name: str):
    """The method of OrderedDict that changes it, which notes that."""
    inherited = getattr(OrderedDict, name)

    def change(self, *args, **kwargs):
        changes.note()
        return inherited(self, *args, **kwargs)

    return change


for _name in ("__delitem__", "clear", "move_to_end", "pop", "popitem", "setdefault"):
    setattr(Parts, _name, noting(_name))


# ---- while a program is traced -------------------------------------------------------------------


class Stores:
    """The attributes and buffers of layers, from before the trace did anything to them."""

    def __init__(self):
        self.of: dict[int, tuple] = {}  # id of a layer -> it and pairs (a dict of it, a copy)

    def note(self, layer) -> None:
        """Copy a layer's contents."""
        stores = (vars(layer), getattr(layer, "_buffers", {}))
        self.of[id(layer)] = layer, [(store, dict(store)) for store in stores]

    def list_assigned(self, known) -> list[tuple]:
        """(place, value before) for each attribute that was assigned a tensor of the trace; the
        tensors of the outside have the ids `known`.
        """
        return [
            (Attribute(layer, name), before.get(name, MISSING))
            for layer, stores in self.of.values()
            for store, before in stores
            for name, now in store.items()
            if now is not before.get(name)
            and isinstance(now, Tensor)
            and is_symbolic(now)
            and id(now) not in known
        ]

    def undo(self) -> None:
        """Give layers their attributes again, in the dicts where they were."""
        for _, stores in self.of.values():
            for store, before in stores:
                if not same_parts(store, before):
                    store.clear()
                    store.update(before)


def stores_of(tracer) -> Stores:
    """The stores of the layers that a trace has noted."""
    if not tracer.changes:
        tracer.changes.append(Stores())
    return tracer.changes[0]


def note_layer(tracer, layer) -> None:
    """Note a layer that is called, or to which something is assigned."""
    if id(layer) not in stores_of(tracer).of:
        stores_of(tracer).note(layer)
    if tracer.reads is not None:
        tracer.reads.layer(layer)


Tracer.note_layer = note_layer


def is_symbolic(x: Tensor) -> bool:
    """Whether only a run knows the value of a tensor."""
    return type(x.array) is SymbolicArray
