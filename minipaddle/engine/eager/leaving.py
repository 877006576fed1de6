"""What a run of a traced program leaves behind besides its results: values and gradients of tensors
outside, attributes of layers, calls in Python.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.record import Record, Spec
from ..core.slots import slot
from ..ir.builder import Builder, Promise
from ..ir.program import Program
from .cells import Attribute, Call, Gradient, Received, Written
from .tensor import Tensor, wrap


class Waiting:
    """Stands as `.grad` of a tensor of the outside that had none, or zeros, before the trace."""

    def __init__(self, tensor: Tensor, cleared: bool):
        self.spec, self.cleared = Spec(tensor.array.shape, tensor.array.dtype), cleared
        self.seen = False  # did anything ask whether it was None or zeros?


class Borrowed(NamedTuple):
    """What a tensor of the outside was before the trace."""

    tensor: Tensor
    array: object
    record: object
    stop_gradient: bool
    grad: object
    stale: bool
    waiting: Waiting | None  # what stood for `.grad` in the trace if there was none

    def condition(self) -> str:
        """What `.grad` must be for the program to be right: "zeros", "none", "waiting" (either),
        or "" if that does not matter.
        """
        if self.waiting is None:
            return ""
        if self.waiting.seen:
            return "zeros" if self.waiting.cleared else "none"
        return "" if self.tensor._grad is self.waiting else "waiting"

    def flow(self) -> str:
        """Whether it must want a gradient for the program to be right."""
        return "stops" if self.stop_gradient else "flows"


class Trace(NamedTuple):
    """A traced program: its outputs are those of the function, then the gradients left behind."""

    program: Program
    places: list  # for each result of the function its output; None if it is no tensor
    after: list  # what a run does besides: see cells.py
    conditions: list[tuple]  # (tensor, what its `.grad` must be when the program is used)
    layers: list  # those that were called
    outer: dict[int, Tensor]  # the tensors of the outside it uses, by id
    constants: list[Record]  # states that begin as they are in every run


def finished(tracer, results: list, inputs: list) -> Trace:
    """Close the program: its outputs, and the updates of its states."""
    root, outputs, places = tracer.root, [], []
    for x in results:
        places.append(len(outputs) if isinstance(x, Tensor) else None)
        if isinstance(x, Tensor):
            outputs.append(final(tracer, x))
    after = left_by(tracer, inputs, outputs)
    conditions = [(b.tensor, b.condition()) for b in tracer.borrowed.values()]
    conditions += [(x, "some") for x in tracer.gradients.values() if id(x._grad) in tracer.borrowed]
    if tracer.differentiable:
        own = [b for k, b in tracer.borrowed.items() if k not in tracer.gradients]
        conditions += [(b.tensor, b.flow()) for b in own]
    root.program.outputs = outputs
    constants = [r for r, p in root.begun.items() if p in constant_promises(tracer)]
    for state, now in zip(root.program.states, updates(root), strict=True):
        state.update = None if state.record in constants else now
    conditions = [(x, c) for x, c in conditions if c]
    outer = {id(b.tensor): b.tensor for b in tracer.borrowed.values()}
    layers = [*tracer.layers.values()]
    return Trace(root.program, places, after, conditions, layers, outer, constants)


@slot("tracer.updates")
def updates(builder: Builder) -> list[Record | None]:
    """For each state what its memory holds at the end of the trace; None if that is unchanged."""
    begun = [state.record for state in builder.program.states]
    now = [builder.values[builder.begun[record]] for record in begun]
    return [None if new is old else new for new, old in zip(now, begun, strict=True)]


def final(tracer, x: Tensor) -> Record:
    """The record whose value x has at the end."""
    return tracer.root.value(tracer.root.fresh(tracer.borrow(x)))


def constant_promises(tracer) -> set[Promise]:
    """The promises that stand for constants made in the trace."""
    return {tracer.memory[k][1] for k in tracer.constants if k in tracer.memory}


def left_by(tracer, inputs: list, outputs: list) -> list:
    """All that a run leaves behind (see cells.py); the values for it become further outputs."""
    return [
        *(made(placed(tracer, outputs, tensors)) for tensors, made in tracer.leaving),
        *kept_in_layers(tracer, outputs),
        *left_behind(tracer, outputs),
        *left_at(inputs, tracer, outputs),
        *(called_later(tracer, outputs, *call) for call in tracer.calls),
    ]


def promised(x: Tensor) -> bool:
    return type(x.array) is Promise


def kept_in_layers(tracer, outputs: list) -> list[Attribute]:
    """What the run will assign to attributes of layers. Over a tensor alike it writes instead."""
    root, found, over = tracer.root, [], list(tracer.rebound)
    for layer, _, name, before, now in tracer.assigned():
        if isinstance(before, Tensor) and before.spec == now.spec:
            over.append((before, now))
        else:
            found.append(Attribute(layer, name, (len(outputs),)))
            outputs.append(final(tracer, now))
    values = [root.promise(final(tracer, now), root.place) for _, now in over]
    for (before, _), value in zip(over, values, strict=True):
        tracer.write(before, wrap(value))
    return found


def called_later(tracer, outputs: list, function, args, kwargs, kept) -> Call:
    """A call in Python after the run; tensors among its arguments become further outputs."""
    places = [k for k, _ in kept]
    begin = len(outputs)
    outputs += [final(tracer, x) for _, x in kept]
    return Call(function, args, kwargs, places, tuple(range(begin, len(outputs))))


def placed(tracer, outputs: list, tensors: list) -> tuple[int, ...]:
    """Further outputs: their numbers."""
    begin = len(outputs)
    outputs += [final(tracer, x) for x in tensors]
    return tuple(range(begin, len(outputs)))


def left_at(inputs: list, tracer, outputs: list) -> list:
    """What the run writes to its inputs, and the gradients it leaves there."""
    found = []
    for k, (x, begun) in enumerate(zip(inputs, tracer.root.program.inputs, strict=False)):
        now = final(tracer, x)
        if now is not begun:
            found.append(Written(k, (len(outputs),)))
            outputs.append(now)
        if x._grad is not None and not x._stale:
            found.append(Received(k, (len(outputs),)))
            outputs.append(final(tracer, x._grad))
    return found


def left_behind(tracer, outputs: list) -> list[Gradient]:
    """What the run will leave in `.grad`; gradients become further outputs."""
    found = []
    for b in list(tracer.borrowed.values()):
        x, now = b.tensor, b.tensor._grad
        if type(now) is Waiting or (now is b.grad and x._stale == b.stale):
            continue
        if now is None or x._stale:
            found.append(Gradient(x, x._stale))
        else:
            found.append(Gradient(x, False, (len(outputs),)))
            outputs.append(final(tracer, now))
    return found
