"""An interpreter that computes in the memory of a plan: one arena, all values at their offsets.

The results are those of the interpreter. With `check` each value that is read is compared with the
value that was written, and memory is overwritten after its last use. So a plan that reuses memory
too early fails at the record that reads the wrong value.
"""

from __future__ import annotations

from typing import NamedTuple

from ..engine.core.errors import teach
from ..engine.core.record import Record, Spec
from ..engine.ir.control import cond, while_loop
from ..engine.ir.interpreter import Run, fail
from ..engine.ir.program import NUMBER, Program
from ..engine.passes.buffer_assignment import Copy, Location, MemoryPlan
from ..engine.passes.lifetimes import is_view, roots, specs_of
from ..engine.passes.memory import plan

POISON = 0xCB
"""The byte that fills memory without a value; four of them are about -2.7e7 as float32."""


class OverwrittenError(AssertionError):
    """A value was overwritten before it was read for the last time: the plan is wrong."""


class Memory(NamedTuple):
    """The memory of one run of a plan, as flat arrays."""

    arena: object
    input: list
    state: list
    output: list


class ArenaRun:
    """Runs programs like `ir.interpreter.Run`, in the memory of their plans.

    >>> import numpy, minipaddle as paddle
    >>> from minipaddle.executors.arena_interpreter import ArenaRun
    >>> from minipaddle.ir.parser import parse
    >>> double = parse("program p(x: float32[2]) { v1 = add(x, x) : float32[2] return v1 }")
    >>> ArenaRun(numpy)(double, [numpy.ones(2, "float32")])[0].tolist()
    [2.0, 2.0]
    """

    def __init__(self, m, *, check: bool = False, planner=plan):
        self.m, self.check, self.planner = m, check, planner
        self.run = Run(m)
        self.plans: dict[Program, MemoryPlan] = {}
        self.arena = m.zeros(0, dtype="uint8")

    def __call__(self, program: Program, arrays) -> list:
        """The results (outputs, then updates) for inputs and states, which are not changed."""
        if program not in self.plans:
            self.plans[program] = self.planner(program)
        planned, count = self.plans[program], len(program.inputs)
        if self.arena.size < planned.size:
            self.arena = self.m.zeros(planned.size, dtype="uint8")
        room = Memory(
            self.arena,
            [self.flat(x) for x in arrays[:count]],
            [self.flat(x).copy() for x in arrays[count:]],
            [self.empty(r.spec) for r in program.outputs],
        )
        if self.check:
            self.arena[...] = POISON
        PlanRun(self, planned, room).compute()
        outputs = [a.reshape(r.shape) for a, r in zip(room.output, program.outputs, strict=True)]
        updated = [
            a.reshape(s.record.shape)
            for a, s in zip(room.state, program.states, strict=True)
            if s.update is not None
        ]
        return [*outputs, *updated]

    def flat(self, x):
        return self.m.ascontiguousarray(x).reshape(-1)

    def empty(self, spec: Spec):
        y = self.m.empty(spec.size, dtype=spec.dtype)
        if self.check:
            y.view("uint8")[...] = POISON
        return y


class PlanRun:
    """One run of a plan in its memory."""

    def __init__(self, owner: ArenaRun, planned: MemoryPlan, room: Memory):
        self.owner, self.plan, self.room, self.m = owner, planned, room, owner.m
        self.root = roots(planned.program)
        self.written: dict = {}  # with `check`: a copy of each value

    def compute(self) -> None:
        program = self.plan.program
        for record in program.given if self.owner.check else ():
            self.written[record, 0] = self.at(self.plan.location(record), record.spec).copy()
        for copy in self.plan.before:
            self.copy(copy)
        for t, record in enumerate(program.records):
            if not is_view(record, self.root):
                self.step(record)
                self.poison_freed(t + 1)
        for copy in self.plan.copies:
            self.copy(copy)

    def at(self, place: Location, spec: Spec):
        """The memory of a place, as an array."""
        if place.kind == "arena":
            memory = self.room.arena[place.offset :]
        else:  # an earlier value there may have another dtype
            memory = getattr(self.room, place.kind)[place.k].view("uint8")
        return memory[: spec.nbytes].view(spec.dtype).reshape(spec.shape)

    def read(self, record: Record):
        """The value of a record, as it lies there now."""
        if record.op is NUMBER:
            return record.attrs["value"]
        found = self.at(self.plan.location(record), record.spec)
        if self.owner.check:
            self.compare(record, found)
        return found

    def compare(self, record: Record, found) -> None:
        wanted = self.written[self.root[record]].reshape(record.shape)
        if found.tobytes() != wanted.tobytes():
            raise OverwrittenError(
                teach(
                    f"{record!r} was overwritten before it was read: it lies at "
                    f"{self.plan.location(record)}",
                    where=record.where,
                )
            )

    def step(self, record: Record) -> None:
        """Compute one record into its places."""
        given = [self.read(r) for r in record.inputs]
        specs = specs_of(record)
        places = [self.at(self.plan.location(record, k), s) for k, s in enumerate(specs)]
        self.poison_work(record)
        if record.op is cond:
            self.branch(record, given, places)
        elif record.op is while_loop:
            self.loop(record, given, places)
        else:
            try:
                y = self.apply(record, given)
            except Exception as error:
                fail(record, error)
            if type(y) is tuple:  # one may be a view of memory that another overwrites
                y = [part.copy() for part in y]
            for place, part in zip(places, y if type(y) is list else [y], strict=True):
                place[...] = part
        if self.owner.check:
            self.written |= {(record, k): place.copy() for k, place in enumerate(places)}

    def apply(self, record: Record, given):
        if record.op.kind == "control":
            return record.op.body(self.owner.run, *given, **record.attrs)
        return record.op.evaluate(self.m, given, record.attrs)

    def copy(self, copy: Copy) -> None:
        target = self.at(copy.target, copy.value.spec)
        if copy.value.op is NUMBER:
            target[...] = copy.value.attrs["value"]
            return
        target[...] = source = self.at(copy.source, copy.value.spec)
        if self.owner.check and copy.source == self.plan.location(copy.value):
            self.compare(copy.value, source)

    # ---- regions -----------------------------------------------------------------------------

    def inner(self, record: Record, name: str, inputs, states, outputs) -> None:
        """Run a region: its arena is the record's work memory."""
        work = self.plan.work.get(record, NOTHING)
        arena = self.room.arena[work.offset : work.offset + work.nbytes]
        flat = [x.reshape(-1) for x in outputs]
        room = Memory(arena, [*map(self.owner.flat, inputs)], states, flat)
        PlanRun(self.owner, self.plan.regions[record][name], room).compute()

    def branch(self, record: Record, given, places) -> None:
        pred, *inputs = given
        self.inner(record, "true" if pred.item() else "false", inputs, [], places)

    def loop(self, record: Record, given, places) -> None:
        """The carried values lie in the memory of the results."""
        count = record.attrs["carried"]
        for place, first in zip(places, given[:count], strict=True):
            place[...] = first
        carried, rest = [x.reshape(-1) for x in places], given[count:]
        goes_on = self.owner.empty(record.attrs["test"].outputs[0].spec)
        while True:
            self.inner(record, "test", [*places, *rest], [], [goes_on])
            if not goes_on.item():
                return
            self.inner(record, "body", rest, carried, [])

    # ---- checks ------------------------------------------------------------------------------

    def poison_work(self, record: Record) -> None:
        """Overwrite the workspace: a kernel may leave anything in it."""
        work = self.plan.work.get(record)
        if self.owner.check and work is not None:
            self.room.arena[work.offset : work.offset + work.nbytes] = POISON

    def poison_freed(self, time: int) -> None:
        """Overwrite values after their last use."""
        for allocation in self.plan.allocations if self.owner.check else ():
            if allocation.buffer.end == time:
                start = allocation.location.offset
                self.room.arena[start : start + allocation.buffer.nbytes] = POISON


NOTHING = Location("arena")
