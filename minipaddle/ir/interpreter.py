"""What a program means: its records computed one by one, by any array module.

A program is read once into steps; a value is let go after its last use.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..core import dim as dims
from ..core.dtype import FLOATS
from ..core.errors import line_of, teach
from ..core.record import Record, Spec
from .program import ITEM, NUMBER, Program


class Step(NamedTuple):
    """One record: `values[out] = call(m, values[places]…, attrs)`, then let go of `free`."""

    call: object
    places: tuple
    attrs: dict
    sized: bool  # do the attributes or the inputs hold unknown sizes?
    out: int
    free: tuple
    binds: tuple  # (axis, symbol): sizes that are known from here on
    guards: tuple  # what is taken for granted of them
    record: Record


class Steps(NamedTuple):
    """A program, read."""

    given: int  # how many values there are before the first step
    constants: list  # what the first values are: None for what is given, then numbers
    steps: list[Step]
    results: list[int]
    binds: list  # for each given value its (axis, symbol) pairs
    guards: tuple  # what is taken for granted of sizes that are known then
    count: int


def read(program: Program) -> Steps:
    """The steps of a program."""
    given = program.given
    places = {record: k for k, record in enumerate(given)}
    constants: list = [None] * len(given)
    known: set[str] = set()
    binds = [bound(record.spec, known) for record in given]
    for record in numbers(program):
        places[record] = len(constants)
        constants.append(record.attrs["value"])
    for record in program.records:
        places[record] = len(places)
    last = last_uses(program)
    later = {name for r in program.records for name in names_of(r)} - known
    waiting = [g for g in program.guards if not later.isdisjoint(needed(g))]
    guards = tuple(g for g in program.guards if g not in waiting)
    steps = []
    for k, record in enumerate(program.records):
        free = tuple(places[r] for r in last.get(k, ()) if r.op is not NUMBER)
        inputs = tuple(places[r] for r in record.inputs)
        call = calling(record)
        sized = any(map(holds_size, record.attrs.values())) or any(
            holds_size(r.attrs["value"]) for r in record.inputs if r.op is NUMBER
        )
        here = bound(record.spec, known) if record.dtype is not None else ()
        later -= {name for _, name in here}
        ready = tuple(g for g in waiting if later.isdisjoint(needed(g))) if here else ()
        waiting = [g for g in waiting if g not in ready]
        steps.append(
            Step(call, inputs, record.attrs, sized, places[record], free, here, ready, record)
        )
    results = [places[r] for r in program.results]
    return Steps(len(given), constants, steps, results, binds, guards, len(places))


def names_of(record: Record) -> set[str]:
    """The sizes that a record's result shows."""
    return {n.text for n in record.shape if isinstance(n, dims.Dim)} if record.dtype else set()


def needed(guard: tuple) -> set[str]:
    """The sizes that a guard is about."""
    left, _, right, _ = guard
    return dims.symbols(left) | dims.symbols(right)


def numbers(program: Program) -> list[Record]:
    """The Python numbers a program uses, each once."""
    used = [r for record in program.records for r in record.inputs if r.op is NUMBER]
    return list(dict.fromkeys([*used, *(r for r in program.results if r.op is NUMBER)]))


def last_uses(program: Program) -> dict[int, list[Record]]:
    """For each record's number the values nobody needs after it."""
    last: dict[Record, int] = {}
    for k, record in enumerate(program.records):
        last[record] = k  # unused values go at once
        for r in record.inputs:
            last[r] = k
    for r in program.results:
        last.pop(r, None)
    found: dict[int, list[Record]] = {}
    for r, k in last.items():
        found.setdefault(k, []).append(r)
    return found


def calling(record: Record):
    """The body itself where eager mode would call it; otherwise `evaluate`, which casts."""
    op = record.op
    floats = {r.dtype for r in record.inputs}
    wide = {d for d in floats if d in FLOATS and d.itemsize > 2}
    if op.direct and len(floats) == 1 and wide and all(r.op is not NUMBER for r in record.inputs):
        return op.body
    return None


def bound(spec: Spec, known: set[str]) -> tuple:
    """The axes whose size is a symbol met for the first time."""
    found = []
    for axis, n in enumerate(spec.shape):
        if isinstance(n, dims.Dim) and n.text not in known and n.text in n.atoms:
            known.add(n.text)
            found.append((axis, n.text))
    return tuple(found)


def holds_size(value) -> bool:
    if type(value) is tuple:
        return any(map(holds_size, value))
    return isinstance(value, dims.Dim)


def resolved(value, sizes: dict):
    """An attribute with its sizes as numbers."""
    if type(value) is tuple:
        return tuple(resolved(v, sizes) for v in value)
    return dims.at(value, sizes)


_read: WeakKeyDictionary = WeakKeyDictionary()


def steps_of(program: Program) -> Steps:
    """The steps of a program, read once. (A program is not changed any more when it runs.)"""
    found = _read.get(program)
    if found is None:
        found = _read[program] = read(program)
    return found


class Run:
    """Runs programs with the arrays of one module; `sizes` are the unknown sizes by name."""

    def __init__(self, m, sizes: dict | None = None):
        self.m = m
        self.sizes = {} if sizes is None else sizes

    def __call__(self, program: Program, arrays) -> list:
        """The results of a program (outputs, then updates) for its inputs and states."""
        todo, m, sizes = steps_of(program), self.m, self.sizes
        values = [*todo.constants, *[None] * (todo.count - len(todo.constants))]
        values[: todo.given] = arrays
        for array, pairs in zip(arrays, todo.binds, strict=True):
            for axis, name in pairs:
                sizes[name] = array.shape[axis]
        if todo.guards:
            check(todo.guards, sizes)
        for call, places, attrs, sized, out, free, binds, guards, record in todo.steps:
            if sized:
                attrs = {k: resolved(v, sizes) for k, v in attrs.items()}
            try:
                given = [values[k] for k in places]
                if sized:
                    given = [resolved(x, sizes) for x in given]
                if call is not None:
                    y = call(m, *given, **attrs)
                elif record.op.kind == "control":
                    y = record.op.body(self, *given, **attrs)
                elif record.op is ITEM:
                    y = given[0][attrs["k"]]
                else:
                    y = record.op.evaluate(m, given, attrs)
            except Exception as error:
                if hasattr(error, "record"):  # a record of a region has told already
                    raise
                raise run_error(record, error) from error
            values[out] = y
            for axis, name in binds:
                sizes[name] = y.shape[axis]
            if guards:
                check(guards, sizes, record)
            for k in free:
                values[k] = None
        return [resolved(values[k], sizes) for k in todo.results]


def check(guards, sizes: dict, record: Record | None = None) -> None:
    """Raise ValueError unless what a program takes for granted of its sizes is so."""
    for left, sign, right, answer in guards:
        a, b = dims.at(left, sizes), dims.at(right, sizes)
        if dims.COMPARE[sign](a, b) is not answer:
            wrong = ValueError(
                teach(
                    f"the program takes for granted that {left} {sign} {right} is {answer}; here "
                    f"they are {a} and {b}",
                    hint="trace the function with these sizes too; what compared the sizes, or "
                    "needed them to be equal, decided it",
                    where=record and record.where,
                )
            )
            wrong.record = record
            raise wrong


def run_error(record: Record, error: Exception) -> Exception:
    """What went wrong, where the user asked for it: of the kind that eager mode raises.

    It knows its `record`.
    """
    specs = ", ".join(str(r.spec) for r in record.inputs if r.dtype is not None)
    where = f"\n  at: {line_of(record.where)}" if record.where else ""
    kind = next((k for k in KINDS if isinstance(error, k)), ValueError)
    said = f"{record.op.name}({specs}): {error}" if kind is not AssertionError else str(error)
    told = kind(said + where)
    told.record = record
    return told


KINDS = (AssertionError, TypeError, IndexError, MemoryError)
