"""A program while it is written: promises stand for arrays, applying an operator adds a record.

A promise is a piece of memory: writing to it gives it another value from then on, for all who hold
it. So in-place operators, buffers and optimizer states need no rule of their own: what a promise
was given inside a branch or a loop becomes a result of the branch or the loop.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

from ..core import dim as dims
from ..core.dim import as_guarded, hint_of
from ..core.dispatch import note_refusal
from ..core.dtype import int64
from ..core.errors import called, teach, type_error, user_frame
from ..core.record import Record, Spec
from ..core.spec import scalar_dtype
from .program import INPUT, NUMBER, Program, State, item_of


class Writing:
    """Where records go now: the innermost builder of the thread that traces (one at a time)."""

    top: Builder | None = None


class Promise:
    """An array whose value is known when the program runs. It has a shape and a dtype."""

    __slots__ = ("__weakref__", "base", "lent", "outside", "place", "sources")

    __array_ufunc__ = None

    def __init__(self, place, base=None):
        self.place = place
        self.base = None  # the promise this one is a view of
        self.sources = ()  # the promises it may be: a condition or a loop of the program chooses
        self.lent = None  # weak references to its views, and to what may be it
        self.outside = False  # does a tensor hold it that outlives the trace?
        if base is not None:
            self.views(base)

    def views(self, base: Promise) -> None:
        """It is a view of `base`."""
        self.base = base
        base.lend(self)

    def lend(self, view) -> None:
        if self.lent is None:
            self.lent = weakref.WeakSet()
        self.lent.add(view)

    def may_be(self, *others: Promise) -> None:
        """It may be the same memory as one of `others`."""
        self.sources += others
        for other in others:
            other.lend(self)

    def origins(self) -> list[Promise]:
        """Itself, what it may be and what it views, those that these may be and view, …"""
        return reached(self, step=lambda p: p.sources if p.base is None else (*p.sources, p.base))

    def relatives(self) -> list[Promise]:
        """The others whose values change, or may change, when it is written."""
        return reached(*self.origins(), step=lambda p: p.lent or ())[1:]

    @property
    def record(self) -> Record:
        if Writing.top is None:
            raise known_later("this tensor's value")
        return Writing.top.value(self)

    @property
    def shape(self) -> tuple:
        return self.record.shape

    @property
    def dtype(self):
        return self.record.dtype

    @property
    def spec(self) -> Spec:
        return self.record.spec

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.spec.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes

    @property
    def flags(self):
        return Flags

    @property
    def strides(self) -> tuple:
        return (1,) * self.ndim

    def __getattr__(self, name: str):
        if name.startswith("__"):  # NumPy asks for its protocols; `__array__` answers
            raise AttributeError(name)
        raise known_later(name)

    def __array__(self, *args, **kwargs):
        raise known_later("numpy")

    __iter__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __array__


def reached(*promises, step) -> list[Promise]:
    """These promises, those that `step` gives for each of them, and so on."""
    found = dict.fromkeys(promises)
    waiting = [*promises]
    for promise in waiting:
        new = [p for p in dict.fromkeys(step(promise)) if p not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return waiting


class Flags:
    """A promise is memory of its own, in row-major order."""

    c_contiguous = writeable = True


class At(NamedTuple):
    """Stands as the record of an error that a line of the user's caused."""

    where: tuple | None


class AliasError(NotImplementedError):
    """Nobody knows whether memory that is used holds what it held: what changed it, `where`."""

    def __init__(self, message: str, where):
        super().__init__(message)
        self.record = At(where)


def viewed_before(where) -> AliasError:
    message = teach(
        "a view of a tensor that was changed in place since, in a program",
        hint="take the view after the change, or clone() it before",
        where=where,
    )
    return AliasError(message, where)


def view_changed(where) -> AliasError:
    message = teach(
        "a tensor of which a view was changed in place, in a program: it did not change with it",
        hint="clone() the view before the change, or assign by x[...] = value",
        where=where,
    )
    return AliasError(message, where)


def chosen(where, what: str = "another tensor, which is used afterwards") -> AliasError:
    message = teach(
        "an in-place change of a tensor that a condition or a loop on a tensor chose: it may be "
        f"{what}; only a run knows",
        hint="clone() it before the change: z = z.clone()",
        where=where,
    )
    return AliasError(message, where)


class ElsewhereError(ValueError):
    """A tensor was used outside the program, the branch or the loop that made it."""


def known_later(what: str) -> Exception:
    """The error for asking a promise for its value; `what` if no function of ours was called."""
    what = called().rpartition(".")[2] or what
    return note_refusal(
        type_error(
            f"{what}: while a program is traced a tensor has no value yet",
            expected="operators on tensors; values are there when the program runs",
            hint="write it with paddle's functions, or keep this part out of the program with "
            "@paddle.jit.not_to_static",
        )
    )


class Builder:
    """Writes one program, or one region of the program `parent` writes."""

    def __init__(self, name: str = "program", parent: Builder | None = None, place=None):
        self.program = Program(name)
        self.parent, self.place = parent, parent.place if parent else place
        self.values: dict[Promise, Record] = {}
        self.captured: dict[Promise, Record] = {}  # what a region uses of the outside
        self.begun: dict[Record, Promise] = {}  # each state's memory
        self.unknown: dict[str, str] = parent.unknown if parent else {}  # sizes nobody knows yet
        self.sizes: dict[Record, object] = {}  # what tensors that say sizes hold
        self.stale: dict[Promise, Exception] = {}  # what may have changed unseen

    # ---- values ------------------------------------------------------------------------------

    def value(self, promise: Promise) -> Record:
        """The record whose value the promise has now."""
        found = self.values.get(promise)
        if found is None:
            if self.parent is None:
                message = teach(
                    "a tensor of another program, or of a branch or a loop that has ended",
                    hint="return it from there",
                )
                raise note_refusal(ElsewhereError(message))
            found = self.capture(promise)
        return found

    def capture(self, promise: Promise) -> Record:
        """The input of this region through which an outer value comes in."""
        spec = self.parent.value(promise).spec
        record = self.captured[promise] = self.values[promise] = self.input(spec)
        return record

    def input(self, spec: Spec, name: str = "") -> Record:
        """A further input of the program."""
        record = Record(INPUT, (), {"name": name}, *spec)
        self.program.inputs.append(record)
        return record

    def promise(self, record: Record, place, base=None) -> Promise:
        """New memory that holds the value of `record`."""
        promise = Promise(place, base)
        promise.outside = record.op is INPUT and self.parent is None
        self.values[promise] = record
        return promise

    def write(self, promise: Promise, value: Promise) -> None:
        """From now on `promise` holds what `value` holds."""
        related = promise.relatives()
        if promise.base is not None:
            self.spoil_viewed(related, caller())
        elif related:
            self.spoil(related, caller(), bool(promise.sources))
        self.value(promise)  # a region has it as an input, so that its end sees the change
        self.values[promise] = self.value(value)

    def spoil_viewed(self, related, where) -> None:
        """A view was written at `where`: what shares its memory may not be used any more."""
        if any(other.outside for other in related):
            message = teach(
                "an in-place change of a view, in a program: what it views would not change",
                hint="clone() it first, or assign by x[...] = value",
            )
            raise note_refusal(NotImplementedError(message))
        self.stale |= dict.fromkeys(related, view_changed(where))

    def spoil(self, related, where, may_be: bool = True) -> None:
        """What shares its memory with something written at `where`, or may do so, is not known."""
        for other in related:
            if other.outside and may_be:
                raise note_refusal(chosen(where, "an argument, or a tensor of the outside"))
            viewed = other.base is not None and not may_be
            self.stale[other] = viewed_before(where) if viewed else chosen(where)

    def fresh(self, promise: Promise) -> Promise:
        """The promise itself; NotImplementedError if nobody knows what it holds by now."""
        builder = self
        while builder is not None:
            if promise in builder.stale:
                raise note_refusal(builder.stale[promise])
            builder = builder.parent
        return promise

    def changed(self) -> list[Promise]:
        """The outer promises that were written in this region."""
        return [p for p, record in self.captured.items() if self.values[p] is not record]

    def state(self, name: str, spec: Spec, place, cell) -> Promise:
        """Memory that outlives a run."""
        record = Record(INPUT, (), {"name": name}, *spec)
        self.program.states.append(State(name, record, None, cell))
        promise = self.begun[record] = self.promise(record, place)
        return promise

    # ---- records -----------------------------------------------------------------------------

    def emit(self, op, inputs, attrs: dict, scope=None, flow: int = 0):
        """Add `op` applied to promises and numbers; a promise, or a tuple of them.

        `flow` has a bit for each input through which a gradient may flow back.
        """
        edges = [self.edge(x) for x in inputs]
        attrs = {k: plain(v) for k, v in attrs.items()}
        specs = [e.spec if type(x) is Promise else hint_of(x) for x, e in zip(inputs, edges)]
        with dims.Matching():
            spec = self.named(op.result_spec(specs, attrs))
        place = next((x.place for x in inputs if type(x) is Promise), self.place)
        several = not isinstance(spec, Spec)
        record = Record(op, edges, attrs, *((spec, None) if several else spec), flow, scope)
        record.where = caller()
        self.program.records.append(record)
        base = viewed(op, inputs)
        if not several:
            return self.promise(record, place, base)
        return tuple(self.promise(self.item(record, k), place, base) for k in range(len(spec)))

    def edge(self, x) -> Record:
        """The record an input comes from; a number gets one of its own."""
        if type(x) is Promise:
            return self.value(self.fresh(x))
        if isinstance(x, dims.Dim):
            return Record(NUMBER, (), {"value": plain(x)}, (), int64.numpy)
        return Record(NUMBER, (), {"value": x}, (), scalar_dtype(x))

    def named(self, spec):
        """The spec of a result, its unknown sizes named `u0`, `u1`, … in the whole program."""
        if not isinstance(spec, Spec):
            return tuple(map(self.named, spec))
        for n in spec.shape:
            for name in dims.symbols(n):
                if name[0] == "?" and name not in self.unknown:
                    self.unknown[name] = f"u{len(self.unknown)}"
        return Spec(tuple(dims.renamed(n, self.unknown) for n in spec.shape), spec.dtype)

    def item(self, whole: Record, k: int) -> Record:
        self.program.records.append(item_of(whole, k))
        return self.program.records[-1]


def caller() -> tuple | None:
    frame = user_frame()
    return None if frame is None else (frame.f_code, frame.f_lasti)


def viewed(op, inputs):
    """The promise that the result, or each of several, shares its memory with."""
    return inputs[0] if op.view and type(inputs[0]) is Promise else None


def plain(value):
    """An attribute as a program keeps it: sizes that decide nothing any more."""
    if type(value) is tuple:
        return tuple(map(plain, value))
    return as_guarded(value, False)
