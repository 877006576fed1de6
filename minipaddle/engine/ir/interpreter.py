"""The meaning of a program: its records are computed one by one, by any array module.

A program is read once into steps; a value is let go after its last use.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn
from weakref import WeakKeyDictionary

from ..core import dim as dims
from ..core import slots
from ..core.dtype import FLOATS
from ..core.errors import line_of, value_error
from ..core.record import Record
from ..core.slots import slot
from .program import ITEM, NUMBER, Program, new_sizes


class RecordStep(NamedTuple):
    """One record: `values[out] = call(m, values[places]…, attrs)`, then let go of `free`."""

    call: object  # the operator's body, if it can be called directly; else None: use `Run.apply`
    places: tuple
    attrs: dict
    out: int
    free: tuple
    binds: tuple  # (axis, symbol): sizes that are known from this step on
    guards: tuple  # guards that can be checked from this step on
    sized: bool  # whether the attributes or the inputs hold unknown sizes
    record: Record


class ProgramSteps(NamedTuple):
    """A program as the interpreter runs it."""

    constants: list  # numbers; their places follow those of inputs and states
    steps: list[RecordStep]
    results: list[int]
    binds: list  # for each given value its (axis, symbol) pairs
    guards: tuple  # guards on the sizes of inputs and states
    of: dict[Record, RecordStep]


def read(program: Program) -> ProgramSteps:
    """The steps of a program."""
    arguments = program.given
    places = {record: k for k, record in enumerate(arguments)}
    known: set[str] = set()
    binds = [new_sizes(record.spec, known) for record in arguments]
    constants = numbers(program)
    for record in [*constants, *program.records]:
        places[record] = len(places)
    last = last_uses(program)
    later = {name for r in program.records for name in result_sizes(r)} - known
    waiting = [g for g in program.guards if not later.isdisjoint(guard_sizes(g))]
    guards = tuple(g for g in program.guards if g not in waiting)
    steps = []
    for k, record in enumerate(program.records):
        free = tuple(places[r] for r in last.get(k, ()) if r.op is not NUMBER)
        inputs = tuple(places[r] for r in record.inputs)
        sized = any(map(holds_size, record.attrs.values())) or any(
            holds_size(r.attrs["value"]) for r in record.inputs if r.op is NUMBER
        )
        here = new_sizes(record.spec, known) if record.dtype is not None else ()
        later -= {name for _, name in here}
        ready = tuple(g for g in waiting if later.isdisjoint(guard_sizes(g))) if here else ()
        waiting = [g for g in waiting if g not in ready]
        call, out = None if sized else direct_body(record), places[record]
        steps.append(RecordStep(call, inputs, record.attrs, out, free, here, ready, sized, record))
    values, results = [r.attrs["value"] for r in constants], [places[r] for r in program.results]
    return ProgramSteps(
        values, steps, results, binds, guards, {step.record: step for step in steps}
    )


def result_sizes(record: Record) -> set[str]:
    """The sizes that a record's result shows."""
    return {n.text for n in record.shape if isinstance(n, dims.Dim)} if record.dtype else set()


def guard_sizes(guard: tuple) -> set[str]:
    """The sizes that a guard is about."""
    left, _, right, _ = guard
    return dims.symbols(left) | dims.symbols(right)


def numbers(program: Program) -> list[Record]:
    """The Python numbers a program uses, each once."""
    used = [r for record in program.records for r in record.inputs if r.op is NUMBER]
    return list(dict.fromkeys([*used, *(r for r in program.results if r.op is NUMBER)]))


@slot("ir.last_uses")
def last_uses(program: Program) -> dict[int, list[Record]]:
    """The values that are not needed after a record, by the number of the record."""
    last: dict[Record, int] = {}
    for k, record in enumerate(program.records):
        last[record] = k  # unused values go at once
        for r in record.inputs:
            last[r] = k
    for r in program.results:
        last.pop(r, None)
    ends: dict[int, list[Record]] = {}
    for r, k in last.items():
        ends.setdefault(k, []).append(r)
    return ends


def direct_body(record: Record):
    """The body where eager mode would call it directly; None where `evaluate` must cast."""
    op = record.op
    if op is ITEM:
        return op.body
    floats = {r.dtype for r in record.inputs}
    wide = {d for d in floats if d in FLOATS and d.itemsize > 2}
    if op.direct and len(floats) == 1 and wide and all(r.op is not NUMBER for r in record.inputs):
        return op.body
    return None


def holds_size(value) -> bool:
    if type(value) is tuple:
        return any(map(holds_size, value))
    return isinstance(value, dims.Dim)


def resolve_sizes(value, sizes: dict):
    """An attribute with its sizes as numbers."""
    if type(value) is tuple:
        return tuple(resolve_sizes(v, sizes) for v in value)
    return dims.at(value, sizes)


_read: WeakKeyDictionary = WeakKeyDictionary()


def get_steps(program: Program) -> ProgramSteps:
    """The steps of a program, cached. (Nothing changes a program that has run.)"""
    epoch, steps = _read.get(program, (None, None))
    if epoch != slots.epoch:
        steps = read(program)
        _read[program] = slots.epoch, steps
    return steps


class Run:
    """Runs programs with the arrays of one module; `sizes` are the unknown sizes by name."""

    def __init__(self, m, sizes: dict | None = None):
        self.m = m
        self.sizes = {} if sizes is None else sizes

    @slot("ir.run")
    def __call__(self, program: Program, arrays) -> list:
        """The results of a program (outputs, then updates) for its inputs and states."""
        todo, m = get_steps(program), self.m
        self.begin(program, arrays)
        values = [*arrays, *todo.constants, *[None] * len(todo.steps)]
        for step in todo.steps:
            call, places, attrs, out, free, binds = step[:6]
            inputs = [values[k] for k in places]
            try:
                y = call(m, *inputs, **attrs) if call is not None else self.apply(step, inputs)
            except Exception as error:
                fail(step.record, error)
            if isinstance(y, m.generic):  # of no axes; bodies are written for arrays
                y = m.asarray(y)
            values[out] = y
            if binds:
                self.bind(step, y, program)
            for k in free:
                values[k] = None
        return [self.number(values[k]) for k in todo.results]

    # ---- one at a time -----------------------------------------------------------------------

    def begin(self, program: Program, arrays) -> None:
        """Take the open sizes from what is given; ValueError if they do not fit."""
        todo = get_steps(program)
        for array, binds in zip(arrays, todo.binds, strict=True):
            for axis, name in binds:
                self.sizes[name] = array.shape[axis]
        if todo.guards:
            check_guards(todo.guards, self.sizes, program)

    def compute(self, program: Program, record: Record, inputs) -> object:
        """The value of one record of a program, for the values of its inputs."""
        step = get_steps(program).of[record]
        try:
            y = self.apply(step, inputs)
        except Exception as error:
            fail(record, error)
        y = self.m.asarray(y) if isinstance(y, self.m.generic) else y
        self.bind(step, y, program)
        return y

    def number(self, x):
        """A size that was open, as a number; anything else is itself."""
        return resolve_sizes(x, self.sizes)

    def apply(self, step: RecordStep, inputs) -> object:
        """The operator of a step, whatever its kind, for the values of its inputs."""
        record, attrs = step.record, step.attrs
        if step.sized:
            attrs = {k: self.number(v) for k, v in attrs.items()}
            inputs = [self.number(x) for x in inputs]
        if record.op.kind == "control":
            return record.op.body(self, *inputs, **attrs)
        return record.op.evaluate(self.m, inputs, attrs)

    def bind(self, step: RecordStep, y, program: Program) -> None:
        """Note the sizes that a value is the first to have, and check the guards on them."""
        for axis, name in step.binds:
            self.sizes[name] = y.shape[axis]
        if step.guards:
            check_guards(step.guards, self.sizes, program, step.record)


def axes_of(guard: tuple, program: Program) -> str:
    """Text that says which axes of the inputs have the sizes of a guard."""
    axes = {
        n.text: f"; {n} is the size of axis {axis} of {record.attrs['name']}"
        for record in reversed(program.inputs)
        for axis, n in enumerate(record.shape)
        if record.attrs["name"] and isinstance(n, dims.Dim) and n.text in guard_sizes(guard)
    }
    return "".join(axes.values())


def check_guards(guards, sizes: dict, program: Program, record: Record | None = None) -> None:
    """Raise ValueError unless the sizes satisfy the guards of a program."""
    for guard in guards:
        left, sign, right, answer = guard
        if not guard_sizes(guard) <= sizes.keys():
            continue  # its sizes belong to a branch that was not taken
        try:
            a, b = (dims.as_guarded(dims.at(side, sizes), True) for side in (left, right))
            held, here = dims.COMPARE[sign](a, b) is answer, f"they are {a} and {b}"
        except ZeroDivisionError:
            held, here = False, "a size by which they divide is 0"
        if not held:
            wrong = value_error(
                f"the program assumes that {left} {sign} {right} is {answer}; here "
                f"{here}{axes_of(guard, program)}",
                hint="trace the function with these sizes too; it compares them, or an "
                "operator needs them to be equal",
                where=record and record.where,
            )
            wrong.record = record
            raise wrong


def fail(record: Record, error: Exception) -> NoReturn:
    """Raise an error of the kind that eager mode raises, with the line of the record.

    The error has the `record`. An error from a region has one already and is raised unchanged.
    """
    if hasattr(error, "record"):
        raise error
    specs = ", ".join(str(r.spec) for r in record.inputs if r.dtype is not None)
    where = f"\n  at: {line_of(record.where)}" if record.where else ""
    if record.op.effect:  # what a check raises is the user's own
        error.record = record
        error.add_note(where[1:])
        raise error
    kind = next((k for k in KINDS if isinstance(error, k)), ValueError)
    explained = kind(f"{record.op.name}({specs}): {error}{where}")
    explained.record = record
    raise explained from error


KINDS = (TypeError, IndexError, MemoryError)
