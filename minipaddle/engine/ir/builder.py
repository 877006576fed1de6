"""A program while it is written: applying an operator to symbolic arrays adds a record.

A symbolic array is a piece of memory: writing to it gives it another value from then on, for all
who hold it. So in-place operators, buffers and optimizer states need no rule of their own: the
value a symbolic array was given inside a branch or a loop becomes a result of the branch or loop.
"""

from __future__ import annotations

import weakref
from operator import attrgetter
from typing import NamedTuple

from ..core import dim as dims
from ..core.dim import Dim, as_guarded, hint_of
from ..core.dispatch import current, note_refusal
from ..core.dtype import int64
from ..core.errors import caller, find_caller, not_supported, teach, type_error
from ..core.record import Record, Spec
from ..core.spec import scalar_dtype
from .program import INPUT, NUMBER, SPEC, Program, State, item_of


class Flags:
    """The flags of an array that owns its memory, in row-major order."""

    c_contiguous = writeable = True


class SymbolicArray:
    """An array whose value is known when the program runs. It has a shape and a dtype."""

    __slots__ = ("__weakref__", "base", "candidates", "dependents", "outside", "place")

    __array_ufunc__ = None

    def __init__(self, place, base=None):
        self.place = place
        self.base = None  # the symbolic array this one is a view of
        self.candidates = ()  # arrays among which a condition or a loop chooses
        self.dependents = None  # weak references to its views and to arrays that may be it
        self.outside = False  # whether a tensor that outlives the trace holds it
        if base is not None:
            self.views(base)

    def views(self, base: SymbolicArray) -> None:
        """Make it a view of `base`."""
        self.base = base
        base.add_dependent(self)

    def add_dependent(self, view) -> None:
        if self.dependents is None:
            self.dependents = weakref.WeakSet()
        self.dependents.add(view)

    def may_alias(self, *others: SymbolicArray) -> None:
        """Note that it may be the same memory as one of `others`."""
        self.candidates += others
        for other in others:
            other.add_dependent(self)

    def possible_memory(self) -> list[SymbolicArray]:
        """All arrays whose memory it may share as a view or a choice, itself first."""
        return reachable(
            self, step=lambda p: p.candidates if p.base is None else (*p.candidates, p.base)
        )

    def aliases(self) -> list[SymbolicArray]:
        """The other arrays whose values may change when it is written."""
        return reachable(*self.possible_memory(), step=lambda p: p.dependents or ())[1:]

    @property
    def record(self) -> Record:
        builder = current.top.builder
        if builder is None:
            raise no_value_error("this tensor's value")
        return builder.values.get(self) or builder.value(self)

    shape, dtype, spec = (property(attrgetter(f"record.{x}")) for x in ("shape", "dtype", "spec"))
    ndim, size, nbytes = (property(attrgetter(f"spec.{x}")) for x in ("ndim", "size", "nbytes"))
    itemsize = property(attrgetter("dtype.itemsize"))
    strides = property(lambda self: (1,) * self.ndim)
    flags = Flags

    def __getattr__(self, name: str):
        if name.startswith("__"):  # NumPy asks for its protocols; `__array__` answers
            raise AttributeError(name)
        raise no_value_error(name)

    def __array__(self, *args, **kwargs):
        raise no_value_error("numpy")

    __iter__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __array__


def reachable(*arrays, step) -> list[SymbolicArray]:
    """These arrays and all that `step` leads to from them, each once."""
    seen = dict.fromkeys(arrays)
    waiting = [*arrays]
    for array in waiting:
        new = [p for p in dict.fromkeys(step(array)) if p not in seen]
        seen.update(dict.fromkeys(new))
        waiting += new
    return waiting


class At(NamedTuple):
    """Takes the place of a record in an error: the user's line."""

    where: tuple | None


class AliasError(NotImplementedError):
    """Memory is used that a write at the line `where` may have changed."""

    def __init__(self, what: str, hint: str, where):
        super().__init__(teach(what, hint=hint, where=where))
        self.record = At(where)


def stale_view_error(where) -> AliasError:
    what = "a view of a tensor that was changed in place since, in a program"
    return AliasError(what, "take the view after the change, or clone() it before", where)


def stale_base_error(where) -> AliasError:
    what = "a tensor of which a view was changed in place, in a program: it did not change with it"
    return AliasError(
        what, "clone() the view before the change, or assign by x[...] = value", where
    )


def alias_error(where, what: str = "another tensor, which is used afterwards") -> AliasError:
    what = (
        "an in-place change of a tensor that a condition or a loop on a tensor chose: it may be "
        f"{what}, which is known only when the program runs"
    )
    return AliasError(what, "clone() it before the change: z = z.clone()", where)


class ElsewhereError(ValueError):
    """A tensor was used outside of the program, branch or loop that computed it."""


def no_value_error(what: str) -> Exception:
    """The error for asking for the value of a symbolic array.

    It names the function of ours that was called, or else `what`.
    """
    what = find_caller(2).rpartition(".")[2] or what
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
        self.values: dict[SymbolicArray, Record] = {}
        self.captured: dict[SymbolicArray, Record] = {}  # outer arrays that a region uses
        self.state_arrays: dict[Record, SymbolicArray] = {}  # each state's memory
        self.unknown: dict[str, str] = parent.unknown if parent else {}  # names of unknown sizes
        self.sizes: dict[Record, object] = {}  # the values of tensors that hold sizes
        self.invalid: dict[SymbolicArray, Exception] = {}  # arrays that may have changed

    # ---- values ------------------------------------------------------------------------------

    def value(self, array: SymbolicArray) -> Record:
        """The record that computes the present value of an array."""
        record = self.values.get(array)
        if record is None:
            if self.parent is None:
                message = teach(
                    "a tensor of another program, or of a branch or a loop that has ended",
                    hint="return it from there",
                )
                raise note_refusal(ElsewhereError(message))
            record = self.capture(array)
        return record

    def capture(self, array: SymbolicArray) -> Record:
        """Make an outer array an input of this region."""
        spec = self.parent.value(array).spec
        record = self.captured[array] = self.values[array] = self.input(spec)
        return record

    def input(self, spec: Spec, name: str = "") -> Record:
        """A further input of the program."""
        record = Record(INPUT, (), {"name": name}, *spec)
        self.program.inputs.append(record)
        return record

    def symbolic(self, record: Record, place, base=None) -> SymbolicArray:
        """New memory that holds the value of `record`."""
        array = SymbolicArray(place, base)
        array.outside = record.op is INPUT and self.parent is None
        self.values[array] = record
        return array

    def write(self, array: SymbolicArray, value: SymbolicArray) -> None:
        """From now on `array` holds what `value` holds."""
        related = array.aliases()
        if array.base is not None:
            self.invalidate_viewed(related, caller())
        elif related:
            self.invalidate(related, caller(), bool(array.candidates))
        self.value(array)  # a region has it as an input, so that its end sees the change
        self.values[array] = self.value(value)

    def invalidate_viewed(self, related, where) -> None:
        """Forbid further use of the arrays that share memory with a view written at `where`."""
        if any(other.outside for other in related):
            what = "an in-place change of a view, in a program: what it views would not change"
            hint = "clone() it first, or assign by x[...] = value"
            raise note_refusal(not_supported(what, hint=hint))
        self.invalid |= dict.fromkeys(related, stale_base_error(where))

    def invalidate(self, related, where, may_alias: bool = True) -> None:
        """Forbid further use of arrays that share memory with one written at `where`, or may."""
        for other in related:
            if other.outside and may_alias:
                raise note_refusal(alias_error(where, "an argument, or a tensor of the outside"))
            base_of = other.base is not None and not may_alias
            self.invalid[other] = stale_view_error(where) if base_of else alias_error(where)

    def check_valid(self, array: SymbolicArray) -> SymbolicArray:
        """The array itself; raises NotImplementedError if an unseen write may have changed it."""
        for builder in (self,) if self.parent is None else self.enclosing():
            if array in builder.invalid:
                raise note_refusal(builder.invalid[array])
        return array

    def enclosing(self) -> list[Builder]:
        """This builder, and those of the regions around it."""
        return [self, *(self.parent.enclosing() if self.parent is not None else ())]

    def find_written(self) -> list[SymbolicArray]:
        """The outer arrays that this region wrote."""
        return [p for p, record in self.captured.items() if self.values[p] is not record]

    def state(self, name: str, spec: Spec, place, storage) -> SymbolicArray:
        """Memory that outlives a run."""
        record = Record(INPUT, (), {"name": name}, *spec)
        self.program.states.append(State(name, record, None, storage))
        array = self.state_arrays[record] = self.symbolic(record, place)
        return array

    # ---- records -----------------------------------------------------------------------------

    def emit(self, op, inputs, attrs: dict, scope=None, flow: int = 0):
        """Add a record of `op` on symbolic arrays and numbers; returns one array or a tuple.

        `flow` has a bit for each input through which a gradient may flow back.
        """
        edges = [*map(self.edge, inputs)]
        attrs = {k: plain(v) if type(v) in SIZED else v for k, v in attrs.items()}
        both = zip(inputs, edges)
        specs = [Spec(*SPEC(e)) if type(x) is SymbolicArray else hint_of(x) for x, e in both]
        spec = self.named(dims.match_sizes(op.result_spec, specs, attrs))
        places = [x.place for x in inputs if type(x) is SymbolicArray]
        several = not isinstance(spec, Spec)
        record = Record(op, edges, attrs, *((spec, None) if several else spec), flow, scope)
        record.where = caller()
        self.program.records.append(record)
        base, place = base_of(op, inputs), places[0] if places else self.place
        if not several:
            return self.symbolic(record, place, base)
        return tuple(self.symbolic(self.item(record, k), place, base) for k in range(len(spec)))

    def edge(self, x) -> Record:
        """The record of an input; a number gets a new one."""
        if type(x) is SymbolicArray:
            if self.invalid or self.parent is not None:
                self.check_valid(x)
            return self.values.get(x) or self.value(x)
        if isinstance(x, dims.Dim):
            return Record(NUMBER, (), {"value": plain(x)}, (), int64.numpy)
        return Record(NUMBER, (), {"value": x}, (), scalar_dtype(x))

    def named(self, spec):
        """The spec of a result; unknown sizes get the names `u0`, `u1`, … in the whole program."""
        if not isinstance(spec, Spec):
            return tuple(map(self.named, spec))
        if Dim not in map(type, spec.shape):
            return spec
        for n in spec.shape:
            for name in dims.symbols(n):
                if name[0] == "?" and name not in self.unknown:
                    self.unknown[name] = f"u{len(self.unknown)}"
        return Spec(tuple(dims.rename(n, self.unknown) for n in spec.shape), spec.dtype)

    def item(self, whole: Record, k: int) -> Record:
        self.program.records.append(item_of(whole, k))
        return self.program.records[-1]


def base_of(op, inputs):
    """The array with which the results of an operator share their memory, None if there is none."""
    return inputs[0] if op.view and type(inputs[0]) is SymbolicArray else None


SIZED = {Dim, tuple}


def plain(value):
    """An attribute as a program holds it: its sizes note no decisions."""
    if type(value) is tuple:
        return tuple([plain(v) if type(v) in SIZED else v for v in value])
    return as_guarded(value, False) if type(value) is Dim else value
