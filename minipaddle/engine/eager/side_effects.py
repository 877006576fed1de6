"""The side effects of a traced program: it changes values and gradients of tensors outside, and
calls Python functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

from ..core.record import Record, Spec
from ..core.slots import slot
from ..ir.builder import Builder, SymbolicArray
from ..ir.program import Program
from .storage import Gradient, Received, TensorStorage, Written
from .tensor import Tensor, wrap


class WaitingGradient:
    """Placeholder for `.grad` of an outer tensor that was None or zeros before the trace."""

    def __init__(self, tensor: Tensor, cleared: bool):
        self.spec, self.cleared = Spec(tensor.array.shape, tensor.array.dtype), cleared
        self.seen = False  # whether the trace asked if it was None or zeros


class LiftedTensor(NamedTuple):
    """A tensor of the outside and its fields from before the trace."""

    tensor: Tensor
    array: object
    record: object
    stop_gradient: bool
    grad: object
    stale: bool
    waiting: WaitingGradient | None  # the placeholder for `.grad` if that was None or zeros

    def condition(self) -> str:
        """The program's assumption on `.grad`: "zeros", "none", "waiting" (either), ""."""
        if self.waiting is None:
            return ""
        if self.waiting.seen:
            return "zeros" if self.waiting.cleared else "none"
        return "" if self.tensor._grad is self.waiting else "waiting"

    def flow(self) -> str:
        """The program's assumption on `stop_gradient`."""
        return "stops" if self.stop_gradient else "flows"


class Trace(NamedTuple):
    """A traced program: first the function's outputs, then the outputs of side effects."""

    program: Program
    places: list  # for each result of the function its output number; None if it is no tensor
    after: list  # the side effects of a run, see storage.py
    conditions: list[tuple]  # (storage, what the program assumes of its tensor's gradient)
    outer: dict[int, TensorStorage]  # of the outer tensors it uses, by their id
    constants: list[Record]  # states that have the same value at the start of every run


def close_trace(tracer, results: list, inputs: list) -> Trace:
    """Close the program: its outputs, and the updates of its states."""
    root, outputs, places = tracer.root, [], []
    for x in results:
        places.append(len(outputs) if isinstance(x, Tensor) else None)
        if isinstance(x, Tensor):
            outputs.append(final_record(tracer, x))
    after = collect_side_effects(tracer, inputs, outputs)
    conditions = [(b.tensor, b.condition()) for b in tracer.lifted.values()]
    conditions += [(x, "some") for g, x in tracer.gradients.items() if g in tracer.lifted]
    if tracer.differentiable:
        own = [b for k, b in tracer.lifted.items() if k not in tracer.gradients]
        conditions += [(b.tensor, b.flow()) for b in own]
    root.program.outputs = outputs
    constants = [r for r, p in root.state_arrays.items() if p in constant_arrays(tracer)]
    for state, now in zip(root.program.states, updates(root), strict=True):
        state.update = None if state.record in constants else now
    conditions = [(tracer.storage(x), c) for x, c in conditions if c]
    outer = {k: tracer.storage(b.tensor) for k, b in tracer.lifted.items()}
    return Trace(root.program, places, after, conditions, outer, constants)


@slot("tracer.updates")
def updates(builder: Builder) -> list[Record | None]:
    """For each state the value of its memory at the end of the trace; None if unchanged."""
    state_arrays = [state.record for state in builder.program.states]
    now = [builder.values[builder.state_arrays[record]] for record in state_arrays]
    return [None if new is old else new for new, old in zip(now, state_arrays, strict=True)]


def final_record(tracer, x: Tensor) -> Record:
    """The record that computes the value of x at the end of the trace."""
    return tracer.root.value(tracer.root.check_valid(tracer.lift(x)))


def constant_arrays(tracer) -> set[SymbolicArray]:
    """The symbolic arrays of constants made in the trace."""
    return {tracer.memory[k][1] for k in tracer.constants if k in tracer.memory}


def collect_side_effects(tracer, inputs: list, outputs: list) -> list:
    """The side effects of a run (see storage.py); their values become further outputs.

    Each is (tensors, function: their output numbers -> side effect).
    """

    effects = []
    for tensors, create in chain(
        gradients_to_leave(tracer), effects_on_inputs(tracer, inputs), tracer.calls
    ):
        begin = len(outputs)
        outputs += [final_record(tracer, x) for x in tensors]
        effects.append(create(tuple(range(begin, len(outputs)))))
    return effects


def effects_on_inputs(tracer, inputs: list) -> Iterator[tuple]:
    """The writes of a run to its inputs, and the gradients that it gives them."""
    for k, (x, record) in enumerate(zip(inputs, tracer.root.program.inputs, strict=False)):
        if final_record(tracer, x) is not record:
            yield [x], partial(Written, k)
        if x._grad is not None and not x._stale:
            yield [x._grad], partial(Received, k)


def gradients_to_leave(tracer) -> Iterator[tuple]:
    """The changes of a run to `.grad` of outer tensors."""
    for b in list(tracer.lifted.values()):
        x, now = b.tensor, b.tensor._grad
        if type(now) is WaitingGradient or (now is b.grad and x._stale == b.stale):
            continue
        if now is None or x._stale:
            yield [], partial(Gradient, tracer.storage(x), x._stale, wrap)
        else:
            yield [now], partial(Gradient, tracer.storage(x), False, getattr(now, "outside", wrap))
