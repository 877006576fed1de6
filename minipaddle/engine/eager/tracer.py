"""Tracing: the eager engine runs on promises instead of arrays, and a program is written.

Everything eager mode does (the tape, hooks, `backward`, optimizers, in-place writes) it does here
too, only that an operator applied to promises adds a record to a program. So a program with its
backward in it needs no rules of its own, and says what eager mode would have done.

A tensor of the outside that is used becomes a state of the program: while the trace lasts it holds
a promise; afterwards it has its array again, and the program writes it back whenever it runs.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

from ..core import dim as dims
from ..core.dispatch import Recording, current, interpreter, note_refusal, raise_refusal
from ..core.errors import not_supported
from ..core.op import NOTHING
from ..core.record import Record, Spec, mark_written
from ..ir.builder import Builder, Promise, Writing
from ..ops import creation
from .cells import GradientCell, TensorCell
from .convert import as_array, lasts
from .custom import on_the_past_of
from .device import current_place, place_of
from .eager import Eager, keep, operand
from .leaving import Borrowed, Trace, Waiting, finished, promised
from .sizes import gathered, later, noting, sizes_in
from .tape import leaf_of, leaf_written, overwritten
from .tensor import Tensor, wrap

LOCK = threading.RLock()
"""One trace at a time: while it lasts, tensors of the outside hold promises."""


class Tracer(Eager):
    """Writes a program; see the module."""

    tracing = True
    differentiable = True  # will anyone walk back through the program?

    def __init__(self, name: str = "program"):
        super().__init__()
        self.builder = self.root = Builder(name, place=current_place())
        self.layers: dict[int, object] = {}  # the layers that were called, by id
        self.stores: list[tuple] = []  # (a layer, its attributes or buffers, what they were)
        self.calls: list[tuple] = []  # what Python does after each run
        self.rebound: list[tuple] = []  # (a tensor outside, one whose value it has after a run)
        self.leaving: list[tuple] = []  # (tensors, what makes of their outputs something to leave)
        self._scope = None
        self.memory: dict[int, tuple] = {}  # id of an outer array -> (the array, its promise)
        self.borrowed: dict[int, Borrowed] = {}  # by id of the tensor
        self.written: list[tuple] = []  # (tensor, record, stop_gradient) before it was written
        self.tapes: dict[Promise, Tensor] = {}  # what a region used that wants a gradient
        self.others: dict[object, Promise] = {}  # states that are no tensors, by what holds them
        self.constants: dict[int, object] = {}  # arrays of numbers made here, by their id
        self.arguments: set[Promise] = set()  # what the program is given
        self.gradients: dict[int, Tensor] = {}  # id of a waiting gradient -> its tensor

    # ---- layers ------------------------------------------------------------------------------

    @property
    def scope(self):
        """The layer being called, as a chain; who is called is noted."""
        return self._scope

    @scope.setter
    def scope(self, chain) -> None:
        self._scope = chain
        if chain is not None:
            self.note(chain[1])

    def place_in_layers(self):
        """The scope of a new record; in a backward that of the record being passed."""
        return (self.passing and self.passing.scope) or self.scope

    def note(self, layer) -> None:
        """Remember a layer, and what its attributes are before anything is assigned to them."""
        if id(layer) not in self.layers:
            self.layers[id(layer)] = layer
            for store in (vars(layer), getattr(layer, "_buffers", {})):
                self.stores.append((layer, store, dict(store)))

    def assigned(self) -> list[tuple]:
        """(layer, where it stands, name, before, tensor) for each attribute that was assigned a new
        tensor.
        """
        return [
            (layer, store, name, before.get(name, MISSING), now)
            for layer, store, before in self.stores
            for name, now in store.items()
            if now is not before.get(name) and isinstance(now, Tensor) and promised(now)
        ]

    # ---- applying an operator ----------------------------------------------------------------

    def apply(self, op, inputs, attrs):
        arrays, edges, mask = [], [], 0
        for k, x in enumerate(inputs):
            if isinstance(x, Tensor):
                arrays.append(self.borrow(x))
                edge = None if x.stop_gradient else x.record or leaf_of(x)
                if edge is not None:
                    mask |= 1 << k
                    self.note_tape(x)
            else:
                arrays.append(
                    x if type(x) in NUMBERS else self.borrow(wrap(as_array(operand(op, x))))
                )
                edge = None
            edges.append(edge)
        try:
            flow = mask if self.recording else 0
            y = self.builder.emit(op, arrays, attrs, self.place_in_layers(), flow)
        except (ValueError, TypeError, IndexError) as error:
            told = op.explain(error, inputs, attrs)
            if any(isinstance(n, dims.Dim) for x in arrays for n in getattr(x, "shape", ())):
                note_refusal(told)  # of sizes that a run may know to fit
            raise told from error
        kept = op.kept[mask] if mask and self.recording else None
        if type(y) is tuple:
            return self.several(op, edges, arrays, attrs, kept, y)
        out = wrap(y)
        if kept:
            saved = None if kept is NOTHING else keep(kept, [*map(self.now, arrays)], self.now(y))
            out.record = Record(op, edges, attrs, y.shape, y.dtype, saved, self.scope)
            out.record.where, out.stop_gradient = self.builder.value(y).where, False
        return out

    def now(self, array):
        """What an array of the program holds now, whatever is written to it later."""
        if type(array) is not Promise:
            return array
        return self.builder.promise(self.builder.value(array), array.place)

    def several(self, op, edges, arrays, attrs, kept, y):
        outs = super().several(op, edges, arrays, attrs, kept, y)
        if kept and not op.view:  # what is kept stays as it is, whatever is written to the results
            for out in outs:
                out.array = self.now(out.array)
        return outs

    def note_tape(self, x: Tensor) -> None:
        """The region being written uses x, to which a gradient may flow back."""
        if self.recording and not x.stop_gradient:
            self.tapes.setdefault(x.array, x)

    def viewed(self, x, y):
        y.array.views(x.array)

    def full(self, spec, value, like):
        return creation.full(shape=spec.shape, value=value, dtype=spec.dtype)

    def constant(self, data, dtype=None, place=None):
        if not later(data):
            out = super().constant(data, dtype, place)
            if lasts(data, out.array) and not few(data):
                with Recording(False):  # a copy of what it holds when the program runs
                    return creation.assign(wrap(data)).astype(out.spec.dtype)
            self.constants[id(out.array)] = out.array
            return out
        with Recording(False):
            out = gathered(data)
            return out.astype(dtype) if dtype is not None else out

    def sizes(self, x):
        """A size where the program will know it, a number where it is known now."""
        if type(x.array) is not Promise:
            return x.tolist()
        return sizes_in(self.builder, self.builder.value(x.array)).tolist()

    # ---- tensors of the outside --------------------------------------------------------------

    def borrow(self, x: Tensor) -> Promise:
        """The promise that stands for x; a tensor of the outside becomes a state."""
        array = x.array
        if type(array) is Promise:
            return array
        found = self.memory.get(id(array))
        if found is None and few(array) and id(array) in self.constants:
            with self.inside(self.root), Recording(False):  # sizes may be computed with them
                found = array, gathered(array.tolist()).astype(array.dtype).array
            self.memory[id(array)] = found
        if found is None:
            spec, place = Spec(array.shape, array.dtype), place_of(array)
            owner = self.gradients.get(id(x))
            cell = TensorCell(x) if owner is None else GradientCell(owner)
            name = (x._name or "") if owner is None else f"{owner.name}.grad"
            found = array, self.root.state(name, spec, place, cell)
            self.memory[id(array)] = found
        if id(x) not in self.borrowed:
            none = x._grad is None or x._stale
            waiting = Waiting(x, x._grad is not None) if none else None
            past = x.record, x.stop_gradient, x._grad, x._stale
            self.borrowed[id(x)] = Borrowed(x, array, *past, waiting)
            if none:
                x._grad, x._stale = waiting, True
            else:
                self.gradients[id(x._grad)] = x
        x.array = found[1]
        return x.array

    def waiting(self, x: Tensor):
        """What `.grad` of a cleared tensor is: zeros; None if there was none before the trace."""
        before = x._grad
        if type(before) is not Waiting:
            return self.full(before.spec, 0, x)
        before.seen = True
        return self.full(before.spec, 0, x) if before.cleared else None

    def write(self, x: Tensor, value) -> None:
        """Let x hold `value` from now on; its past stays."""
        if not isinstance(value, Tensor):
            value = self.constant(value, x.dtype)
        if value.spec.dtype != x.spec.dtype:
            value = value.astype(x.spec.dtype)
        if self.builder is not self.root:  # a record of its own: no gradient flows through it
            value = creation.assign(value.detach())
        self.builder.write(self.borrow(x), self.borrow(value))
        mark_written(x.array)

    def become(self, x: Tensor, result: Tensor) -> Tensor:
        """Let x take over the value and the past of `result`."""
        leaf = x.is_leaf and not x.stop_gradient and self.borrow(x) in self.root.values
        if self.builder is self.root and x.array in self.arguments:
            leaf = False  # whether an argument was computed is asked when the program runs
        if leaf and result.record is not None:  # a region's own input is no leaf
            raise leaf_written(x.array in self.arguments)
        unrecorded = result.record is None and not self.recording
        if unrecorded and not (leaf or x.stop_gradient or self.builder is self.root):
            result = on_the_past_of(x, result)  # who walks back finds the region's values alone
        self.borrow(x)
        self.written.append((x, x.record, x.stop_gradient))
        self.note_tape(x)
        self.builder.write(x.array, self.borrow(result))
        mark_written(x.array)
        if result.record is not None:
            x.record, x.stop_gradient = result.record, False
        elif self.recording and not x.is_leaf:
            x.record = overwritten(x)
        return x

    def host(self, function, args, kwargs) -> None:
        """Call `function` in Python after each run, with the values its arguments have here."""
        if self.builder is not self.root:
            raise unsupported(
                f"{function.__qualname__} inside a branch or a loop that depends on a tensor: "
                "it runs in Python, after the program",
                hint="call it outside",
            )
        kept = [(k, creation.assign(x)) for k, x in enumerate(args) if isinstance(x, Tensor)]
        self.calls.append((function, args, kwargs, kept))

    def hooked(self) -> None:
        """A hook was registered: on the tape of a region it would be forgotten."""
        if self.builder is not self.root:
            raise unsupported(
                "a hook is registered inside a branch or a loop that depends on a tensor",
                hint="register it outside; what a hook does to a gradient, the backward of a "
                "PyLayer does too",
            )

    def state(self, name: str, holder, spec: Spec, cell) -> Promise:
        """What stands for an outer state that is no tensor, such as a random generator's counter.

        `cell` reads it from its `holder` before a run, and writes it back afterwards.
        """
        if holder not in self.others:
            self.others[holder] = self.root.state(name, spec, self.root.place, cell)
        return self.others[holder]

    # ---- regions -----------------------------------------------------------------------------

    @contextmanager
    def region(self, name: str):
        """Records go into a region of their own while the block runs."""
        written, tapes, grads = self.written, self.tapes, self.gradient_states()
        self.written, self.tapes = [], {}
        try:
            with self.inside(Builder(name, self.builder)) as builder, dims.assuming():
                yield builder
        finally:
            inner, self.written, self.tapes = self.written, written, tapes
            for x, record, stop_gradient in reversed(inner):
                x.record, x.stop_gradient = record, stop_gradient
        now = self.gradient_states()
        if any(now[k] != grads[k] for k in grads if k in now):
            raise unsupported(
                "backward() or clear_grad() inside a branch or a loop that depends on a tensor",
                hint="paddle.grad(loss, parameters) gives gradients that can be returned",
            )

    @contextmanager
    def inside(self, builder: Builder):
        """Records go to `builder` while the block runs."""
        outer, self.builder, Writing.top = self.builder, builder, builder
        try:
            yield builder
        finally:
            self.builder = Writing.top = outer

    def gradient_states(self) -> dict:
        return {k: (id(b.tensor._grad), b.tensor._stale) for k, b in self.borrowed.items()}

    def open_sizes(self) -> bool:
        """Are there sizes that only a run will know?"""
        program = self.root.program
        given = [*program.inputs, *(state.record for state in program.states)]
        return any(isinstance(n, dims.Dim) for record in given for n in record.shape)

    # ---- the end -----------------------------------------------------------------------------

    def give_back(self) -> None:
        """Every tensor of the outside has its array and its past again."""
        for b in self.borrowed.values():
            x = b.tensor
            x.array, x.record, x.stop_gradient = b.array, b.record, b.stop_gradient
            x._grad, x._stale = b.grad, b.stale
        for _, store, name, before, _ in self.assigned():
            if before is MISSING:
                del store[name]
            else:
                store[name] = before
        for layer, store, before in self.stores:  # what became a buffer is what it was
            for name in getattr(layer, "_buffers", {}).keys() & (before.keys() - store.keys()):
                del layer._buffers[name]
                store[name] = before[name]


NUMBERS = (bool, int, float, dims.Dim)
MISSING = object()
FEW = 8


def few(array) -> bool:
    """Are these numbers that may be sizes?"""
    return array.dtype.kind == "i" and array.size <= FEW


def trace(function, specs, *, name: str = "program", names=(), stop_gradient=True) -> Trace:
    """The program of `function`, which takes a tensor for each spec and returns a list."""
    outer = current.top
    with LOCK, interpreter(Tracer(name)) as tracer:
        tracer.scope = outer.scope
        tracer.recording = tracer.differentiable = outer.recording
        before, Writing.top = Writing.top, tracer.builder
        note = noting(tracer.root.program)
        dims.notes.append(note)
        try:
            with dims.assuming(), raise_refusal(tracer):
                inputs = [given(tracer, s, n) for s, n in zip(specs, [*names, *[""] * len(specs)])]
                tracer.arguments = {x.array for x in inputs}
                return finished(tracer, function(*inputs), inputs)
        finally:
            dims.notes.remove(note)
            tracer.give_back()
            Writing.top = before


def unsupported(what: str, hint: str) -> Exception:
    """The error for a call that a program cannot make."""
    return note_refusal(not_supported(what, hint=hint))


def given(tracer: Tracer, spec: Spec, name: str) -> Tensor:
    """An input of the program as a tensor."""
    return wrap(tracer.root.promise(tracer.root.input(spec, name), current_place()))
