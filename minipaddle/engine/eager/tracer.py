"""Tracing: the eager engine runs on symbolic arrays instead of arrays, and a program is written.

Everything that eager mode does (the tape, hooks, `backward`, optimizers, in-place writes) happens
here too, but an operator applied to symbolic arrays adds a record to a program. So a program with
its backward in it needs no further rules, and does what eager mode would have done.

A tensor of the outside that is used becomes a state of the program: it holds a symbolic array
while the trace lasts. Afterwards it has its array again, and each run of the program writes it.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack, contextmanager
from functools import cached_property

from ..core import dim as dims
from ..core.dispatch import Recording, current, interpreter, note_refusal, raise_refusal, setting
from ..core.errors import not_supported
from ..core.op import NOTHING
from ..core.record import Record, Spec, mark_written
from ..ir.builder import Builder, SymbolicArray
from ..ops import creation
from .convert import as_array, can_reread
from .device import current_place, place_of
from .execution import Eager, as_operand, save
from .side_effects import LiftedTensor, Trace, WaitingGradient, close_trace
from .storage import LOCK, GradientStorage, TensorStorage
from .tape import get_leaf, leaf_write_error, take_past
from .tensor import Tensor, wrap


@contextmanager
def alone():
    """A block that traces or compiles. Garbage is collected afterwards: most of what is made stays,
    and each full collection would walk over all of it.
    """
    with LOCK, ExitStack() as stack:
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(0)
        yield


class Tracer(Eager):
    """Writes a program; see the module. `sizes`, `host`, `attach_derivative` and
    `make_parameter` come from outside."""

    tracing = lines = True
    differentiable = True  # whether a backward may walk through the program

    def __init__(self, name: str = "program", builder: Builder | None = None):
        super().__init__()
        self.builder = self.root = builder or Builder(name, place=current_place())
        self.below = current.top
        self.journals: list[dict] = []
        self.merged: dict[int, dict] = {}  # id of a container -> it and those that it may be
        self.handlers: list = []
        self.calls: list[tuple] = []  # (tensors, function: their output numbers -> side effect)
        self.changes: list = []  # of other objects: each has `undo`
        self.reads = self.below.reads
        self._scope = None
        self.memory: dict[int, tuple] = {}  # id of an outer array -> (it, its symbolic array)
        self.lifted: dict[int, LiftedTensor] = {}  # by id of the tensor
        self.storages: dict[int, TensorStorage] = {}  # likewise
        self.written: list[tuple] = []  # (tensor, record, stop_gradient) before it was written
        self.tapes: dict[SymbolicArray, Tensor] = {}  # tensors with a gradient a region uses
        self.constants: dict[int, object] = {}  # arrays of numbers made here, by their id
        self.arguments: set[SymbolicArray] = set()  # the program's inputs
        self.gradients: dict[int, Tensor] = {}  # id of a waiting gradient -> its tensor

    @cached_property
    def assumptions(self) -> dims.Assumptions:
        """The program's assumptions on sizes; created when somebody asks about an open one."""
        guards, outer = self.root.program.guards, self.below.assumptions
        return dims.Assumptions(guards, self.note_decision, outer)

    # ---- layers ------------------------------------------------------------------------------

    @property
    def scope(self):
        """The layer being called, as a chain. Setting it notes the layer."""
        return self._scope

    @scope.setter
    def scope(self, chain) -> None:
        self._scope = chain
        if chain is not None:
            self.note_layer(chain[1])

    # ---- applying an operator ----------------------------------------------------------------

    def apply(self, op, inputs, attrs):
        arrays, edges, mask = [], [], 0
        for k, x in enumerate(inputs):
            if isinstance(x, Tensor):
                arrays.append(self.lift(x))
                edge = None if x.stop_gradient else x.record or get_leaf(x)
                if edge is not None:
                    mask |= 1 << k
                    self.note_tape(x)
            else:
                arrays.append(
                    x if type(x) in NUMBERS else self.lift(wrap(as_array(as_operand(op, x))))
                )
                edge = None
            edges.append(edge)
        try:
            flow = mask if self.recording else 0
            passing = self.passing  # what a backward is of
            scope = (passing and passing.scope) or self.scope
            y = self.builder.emit(op, arrays, attrs, scope, flow)
            if passing is not None:
                self.root.program.gradient_of[self.builder.program.records[-1]] = passing.source
        except (ValueError, TypeError, IndexError) as error:
            explained = op.explain(error, inputs, attrs)
            if any(isinstance(n, dims.Dim) for x in arrays for n in getattr(x, "shape", ())):
                note_refusal(explained)  # in a run the sizes may fit
            raise explained from error
        to_save = op.saves[mask] if mask and self.recording else None
        if type(y) is tuple:
            return self.wrap_results(op, edges, arrays, attrs, to_save, y)
        out = wrap(y)
        if to_save:
            now = [*map(self.now, arrays)]
            saved = None if to_save is NOTHING else save(to_save, now, self.now(y), self.pack)
            out.record = Record(op, edges, attrs, y.shape, y.dtype, saved, self.scope)
            record = out.record.source = self.builder.value(y)
            out.record.where, out.stop_gradient = record.where, False
        return out

    def now(self, array):
        """A symbolic array with the present value of `array`, which later writes do not change."""
        if type(array) is not SymbolicArray:
            return array
        return self.builder.symbolic(self.builder.value(array), array.place)

    def wrap_results(self, op, edges, arrays, attrs, to_save, y):
        outs = super().wrap_results(op, edges, arrays, attrs, to_save, y)
        for out, array in zip(outs, y) if to_save else ():
            if out.record is not None:
                out.record.inputs[0].source = self.builder.value(array).inputs[0]
            if not op.view:  # later writes to the results do not change saved values
                out.array = self.now(out.array)
        return outs

    def note_tape(self, x: Tensor) -> None:
        """Note that the present region uses x, to which a gradient may flow back."""
        if self.recording and not x.stop_gradient:
            self.tapes.setdefault(x.array, x)

    def note_view(self, x, y):
        y.array.views(x.array)

    def full(self, spec, value, like):
        return creation.full(shape=spec.shape, value=value, dtype=spec.dtype)

    def constant(self, data, dtype=None, place=None):
        out = super().constant(data, dtype, place)
        if can_reread(data, out.array) and not is_short(data):
            with Recording(False):  # a copy of its contents when the program runs
                return creation.assign(wrap(data)).astype(out.spec.dtype)
        self.constants[id(out.array)] = out.array
        return out

    def short_constant(self, array) -> tuple | None:
        """A constant that may hold sizes, and its symbolic array; None: it is a state as others."""

    # ---- tensors of the outside --------------------------------------------------------------

    def lift(self, x: Tensor) -> SymbolicArray:
        """The symbolic array of x. A tensor of the outside becomes a state of the program."""
        array = x.array
        if type(array) is SymbolicArray:
            return array
        entry = self.memory.get(id(array))
        if entry is None and is_short(array) and id(array) in self.constants:
            entry = self.short_constant(array)
        if entry is None:
            spec, place = Spec(array.shape, array.dtype), place_of(array)
            owner = self.gradients.get(id(x))
            storage = self.storage(x) if owner is None else GradientStorage(self.storage(owner))
            name = (x._name or "") if owner is None else f"{owner.name}.grad"
            entry = array, self.root.state(name, spec, place, storage)
        self.memory[id(array)] = entry
        if id(x) not in self.lifted:
            none = x._grad is None or x._stale
            waiting = WaitingGradient(x, x._grad is not None) if none else None
            past = x.record, x.stop_gradient, x._grad, x._stale
            self.lifted[id(x)] = LiftedTensor(x, array, *past, waiting)
            if none:
                x._grad, x._stale = waiting, True
            else:
                self.gradients[id(x._grad)] = x
        x.array = entry[1]
        return x.array

    def storage(self, x: Tensor) -> TensorStorage:
        """The storage of a tensor of the outside."""
        return self.storages.setdefault(id(x), TensorStorage(x))

    def fetch_array(self, x: Tensor):
        return self.lifted[id(x)].array if id(x) in self.lifted else x.array

    def waiting(self, x: Tensor):
        """`.grad` of a cleared tensor: zeros, or None if it was None before the trace."""
        before = x._grad
        if type(before) is not WaitingGradient:
            return self.full(before.spec, 0, x)
        before.seen = True
        return self.full(before.spec, 0, x) if before.cleared else None

    def write(self, x: Tensor, value) -> None:
        """Overwrite x with `value`; its past stays."""
        if not isinstance(value, Tensor):
            value = self.constant(value, x.dtype)
        if value.spec.dtype != x.spec.dtype:
            value = value.astype(x.spec.dtype)
        if self.builder is not self.root:  # a separate record, through which no gradient flows
            value = creation.assign(value.detach())
        self.builder.write(self.lift(x), self.lift(value))
        mark_written(x.array)

    def become(self, x: Tensor, result: Tensor) -> Tensor:
        """Let x take over the value and the past of `result`."""
        own = self.lift(x)
        leaf = x.is_leaf and not x.stop_gradient and own in self.root.values
        if self.builder is self.root and x.array in self.arguments:
            leaf = False  # whether an argument was computed is asked when the program runs
        if leaf and result.record is not None:  # a region's own input is no leaf
            raise leaf_write_error(x.array in self.arguments)
        unrecorded = result.record is None and not self.recording
        if unrecorded and not (leaf or x.stop_gradient or self.builder is self.root):
            with Recording(True):  # a derivative sees the values of the region alone
                (result,) = self.attach_derivative([result], [x], lambda outs, gs: gs)
        self.written.append((x, x.record, x.stop_gradient))
        self.note_tape(x)
        self.builder.write(x.array, self.lift(result))
        mark_written(x.array)
        take_past(x, result)
        return x

    def accept_hook(self, x=None, hook=None):
        """The hook to register for x; refuse it in a region, whose tape ends with it."""
        if self.builder is not self.root:
            raise unsupported_error(
                "a hook is registered inside a branch or a loop that depends on a tensor",
                hint="register it where the tensor is made",
            )
        return hook

    # ---- regions -----------------------------------------------------------------------------

    @contextmanager
    def region(self, name: str):
        """Within the block records go into a new region."""
        builder, written, grads = Builder(name, self.builder), [], self.gradient_states()
        try:
            with setting(self, builder=builder, written=written, tapes={}), dims.assuming():
                yield builder
        finally:
            for x, record, stop_gradient in reversed(written):
                x.record, x.stop_gradient = record, stop_gradient
        now = self.gradient_states()
        if any(now[k] != grads[k] for k in grads if k in now):
            raise unsupported_error(
                "backward() or clear_grad() inside a branch or a loop that depends on a tensor",
                hint="paddle.grad(loss, parameters) gives gradients that can be returned",
            )

    def inside(self, builder: Builder):
        """Within the block records go to `builder`."""
        return setting(self, builder=builder)

    def gradient_states(self) -> dict:
        return {k: (id(b.tensor._grad), b.tensor._stale) for k, b in self.lifted.items()}

    def note_decision(self, left, sign: str, right, answer: bool) -> None:
        """Let the program rely on a decision about sizes; a region on one about its values."""
        guard = (dims.as_guarded(left, False), sign, dims.as_guarded(right, False), answer)
        unseen = any(map(dims.UNSEEN.match, dims.symbols(left) | dims.symbols(right)))
        guards = (self.builder if unseen else self.root).program.guards
        if [*map(str, guard)] not in [[*map(str, g)] for g in guards]:
            guards.append(guard)

    def open_sizes(self) -> bool:
        """Whether only a run knows some of the sizes of inputs and states."""
        program = self.root.program
        records = [*program.inputs, *(state.record for state in program.states)]
        return any(isinstance(n, dims.Dim) for record in records for n in record.shape)

    # ---- the end -----------------------------------------------------------------------------

    def restore_outside(self) -> None:
        """Give every tensor of the outside its array and its past again."""
        for b in self.lifted.values():
            x = b.tensor
            x.array, x.record, x.stop_gradient = b.array, b.record, b.stop_gradient
            x._grad, x._stale = b.grad, b.stale
        for each in self.changes:
            each.undo()


NUMBERS = {bool, int, float, dims.Dim}
FEW = 8


def is_short(array) -> bool:
    """Whether an array may hold sizes: a few whole numbers."""
    return array.dtype.kind == "i" and array.size <= FEW


def trace(function, specs, *, name: str = "program", names=(), stop_gradient=True) -> Trace:
    """The program of `function`, which takes one tensor for each spec and returns a list."""
    outer = current.top
    with tracing(Tracer(name)) as tracer, raise_refusal(tracer):
        tracer.scope = outer.scope
        tracer.recording = tracer.differentiable = outer.recording
        if outer.policy is not None:
            outer.policy.govern(tracer)
        inputs = [create_input(tracer, s, n) for s, n in zip(specs, [*names, *[""] * len(specs)])]
        tracer.arguments = {x.array for x in inputs}
        return close_trace(tracer, function(*inputs), inputs)


@contextmanager
def tracing(tracer: Tracer):
    """Put `tracer` in charge within the block; afterwards restore the outside."""
    with alone(), interpreter(tracer):
        try:
            yield tracer
        finally:
            tracer.restore_outside()


def unsupported_error(what: str, hint: str) -> Exception:
    """The error for a call that a program cannot make."""
    return note_refusal(not_supported(what, hint=hint))


def create_input(tracer: Tracer, spec: Spec, name: str) -> Tensor:
    """An input of the program as a tensor."""
    return wrap(tracer.root.symbolic(tracer.root.input(spec, name), current_place()))
