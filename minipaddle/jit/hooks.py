"""Hooks of tensors in a program: the derivatives of programs, branches and loops call them.

A derivative computes a region again, and a program where it will be differentiated once more. So
the program's record of a tensor knows the tensor's hooks, as the record of the tape does.
"""

from typing import NamedTuple

from ..eager.layer_changes import stores_of
from ..engine.core.dispatch import current
from ..engine.core.record import Record
from ..engine.eager.storage import TensorStorage
from ..engine.eager.tape import get_leaf
from ..engine.eager.tracer import Tracer
from ..engine.ir.program import INPUT
from ..engine.jit.calling import call
from ..engine.jit.journal import journal, outliving_places
from ..engine.jit.refusal import refusal


class Hook:
    """A hook that a program calls while its derivative is traced."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, g):
        top = current.top
        if not top.tracing:
            return self.hook(g)
        if top.journals and top.builder is top.root:  # in a function that does its own backward
            return call(self.hook)(g)
        with alone([], [self.hook]) as noted:
            gradient = call(self.hook)(g)
            outliving_places(noted, noted.values(), gradient, known=[])
        if noted.noted:
            (place, _), *_ = noted.noted.values()
            raise refusal(
                f"a hook that changes {place.name}: the derivative of a program calls it once, "
                "while it is written",
                hint="register it on an argument or on a parameter, outside of the program",
            )
        return gradient


class alone(journal):
    """The journal of a hook."""

    block = "by a hook whose tensor a program computes"


class Registered(NamedTuple):
    """A run registers a hook on a tensor of the outside."""

    storage: TensorStorage
    hook: object
    outputs: tuple

    def leave(self, inputs) -> None:
        if self.hook is not None:
            self.storage.tensor.register_hook(self.hook)


class Before(NamedTuple):
    """The hooks that a record had before the trace."""

    record: Record
    hooks: list | None

    def undo(self) -> None:
        self.record.hooks = self.hooks


def wrap_hook(tracer, x=None, hook=None):
    """The hook to register for x. The program's record of x knows it too, if the region
    that is traced computes x; each run registers it on a tensor of the outside. In a region it is
    refused for another tensor than the region's.
    """
    record = None if x is None else tracer.builder.value(tracer.lift(x))
    if record is None or record.op is INPUT:
        refuse(tracer)
        if id(x) not in tracer.lifted:
            return hook
        own, storage, inside = x.record or get_leaf(x), tracer.storage(x), Hook(hook)
        stores_of(tracer)  # the first of the changes
        if all(type(c) is not Before or c.record is not own for c in tracer.changes):
            tracer.changes.append(Before(own, own.hooks and [*own.hooks]))
        tracer.calls.append(((), lambda outputs: Registered(
            storage, hook if inside in own.hooks else None, outputs)))  # fmt: skip
        return inside
    hook = hook if isinstance(hook, Hook) else Hook(hook)
    own = x.record or get_leaf(x)
    if own.hooks is None:
        own.hooks = []
    record.hooks = own.hooks  # one list: a hook that is removed leaves both
    return hook


refuse, Tracer.accept_hook = Tracer.accept_hook, wrap_hook
