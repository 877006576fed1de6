"""A program on a GPU: passes, groups, a memory plan, CUDA kernels; all of it one CUDA graph.

What is done is bound to memory once: the arena, inputs and outputs of a `Context` stay where they
are, and states where they are given. If nothing in the program waits for a value, the second run
is captured as a graph, and from the third on a run is one launch. `cond`, `while_loop` and records
without a kernel are decided and computed by the host between kernels.

Places in the data (tokens, labels, indices) are looked at, and one out of range is an IndexError,
as everywhere else. The host waits for that once in a run, before what comes after the last of them:
the graph is in two parts then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple, NoReturn

from ..codegen.cuda.calls import Clear, Gemm, Launch, Operand
from ..codegen.cuda.program import Kernels
from ..codegen.places import Places
from ..engine.core.record import Record
from ..engine.eager.device import NUMPY, current_place
from ..engine.executors.native import CannotCompile, closed, in_place, updated_before
from ..engine.ir.control import cond, while_loop
from ..engine.ir.interpreter import fail
from ..engine.ir.program import NUMBER, Program
from ..engine.passes.lifetimes import specs_of
from ..engine.passes.manager import optimized
from ..engine.passes.places import Copy, Place, Plan
from .gpu import Gpu, gpu_of

SMALL = 4096
"""Bytes up to which a state that is somewhere else than before gets a place of its own, where it is
copied to; for a larger one a new graph is captured."""


class Executable:
    """A program of numbers for sizes, compiled for `device`. Calling it is like running it: see
    `Run`. What the program updates is changed in place, where it was given.
    """

    def __init__(self, program: Program, strategy=None, sizes=None, *, device=None):
        program = closed(program, sizes)
        done = optimized(program, strategy, epilogue=False)  # cuBLAS has none of ours
        self.sizes, self.device = sizes or {}, device or usable()
        self.snapshots, self.program = done.snapshots, done.program
        added = done.program.states[len(program.states) :]
        self.kernels = Kernels(self.program)
        self.plan = done.planned(self.kernels.workspace, in_place)
        names = list(self.kernels.written.values())
        with self.device.working():
            self.constants = [self.device.moved(s.cell.read()) for s in added]
            self.functions = self.device.compiled(self.kernels.text, names)
        hosted = [*self.kernels.hosted, *decisions(self.program)]
        self.hosted = bool(hosted)
        self.captures = not self.hosted and done.chosen.get("allow_cuda_graph_capture") is not False
        self.updated = [k for k, s in enumerate(self.program.states) if s.update is not None]
        looks = self.kernels.looks
        self.risked = updated_before(self.program, [*looks, *hosted])
        self.last_look = None if self.hosted else next(reversed(looks), None)
        self.contexts: list[Context] = []

    def __call__(self, program: Program, arrays) -> list:
        """The outputs, then the updated states, for inputs and states."""
        with self.device.working():
            context = self.contexts.pop() if self.contexts else Context(self)
            try:
                return context.run([*arrays, *self.constants])
            finally:
                self.contexts.append(context)


def usable() -> Gpu:
    """The GPU; raises CannotCompile with the reason if none can be used."""
    found = gpu_of(current_place().index)
    if isinstance(found, str):
        raise CannotCompile(found)
    return found


def decisions(program: Program) -> list[Record]:
    """For what the host has to look at a value."""
    return [r for r in program.records if r.op in (cond, while_loop)]


class Room(NamedTuple):
    """The memory that a plan counts in: the arena's bytes, and flat arrays."""

    arena: object
    input: list
    state: list
    output: list
    wrong: object  # (is one out of range? which one?) for all places that are looked at


class Look(NamedTuple):
    """The step that waits for what was found out of range, and raises IndexError."""

    made: Executable
    wrong: object

    def __call__(self) -> None:
        found = self.made.device.fetched(self.wrong).reshape(-1, 2).tolist()
        for place, (is_wrong, value) in zip(self.made.kernels.places, found, strict=True):
            if is_wrong:
                self.wrong.fill(0)
                refuse(*place, value)


def refuse(record: Record, places: Places, value: int) -> NoReturn:
    """Raise what NumPy says where all places are this one."""
    given = [x.attrs["value"] if x.op is NUMBER else zeros(x.spec) for x in record.inputs]
    given[places.k] = NUMPY.full_like(given[places.k], value)
    try:
        record.op.evaluate(NUMPY, given, record.attrs)
    except Exception as error:
        fail(record, error)
    raise AssertionError(f"{record.op.name}: {value} is in range")


def zeros(spec):
    """Zeros that take no memory."""
    return NUMPY.broadcast_to(NUMPY.zeros((), spec.dtype), spec.shape)


class Context:
    """The memory of one call at a time, and what is done in it."""

    def __init__(self, made: Executable):
        self.made, self.device = made, made.device
        empty = made.device.empty
        self.arena = empty(made.plan.size, "uint8")
        self.inputs = [empty(r.spec.size, r.dtype) for r in made.program.inputs]
        self.outputs = [empty(r.spec.size, r.dtype) for r in made.program.outputs]
        self.wrong = empty(2 * len(made.kernels.places), "int64")
        self.wrong.fill(0)
        self.states: list | None = None  # what the steps are bound to
        self.own: dict[int, object] = {}  # states that move about, in a place of ours
        self.steps: list[Callable] = []
        self.captured = False
        self.runs = 0  # to the end, since the steps were bound

    def run(self, arrays) -> list:
        made, count = self.made, len(self.inputs)
        for array, own in zip(arrays[:count], self.inputs, strict=True):
            own[...] = self.device.moved(array).reshape(-1)
        states = zip(arrays[count:], made.program.states, strict=True)
        given = [self.device.whole(a, s.record.spec) for a, s in states]
        self.meet(given)
        self.compute()
        for k in self.own.keys() & set(made.updated):
            given[k][...] = self.own[k]
        outputs = zip(self.outputs, made.program.outputs, strict=True)
        found = [own.reshape(r.shape).copy() for own, r in outputs]
        return found + [given[k] for k in made.updated]

    def meet(self, given) -> None:
        """Be bound to the states, wherever they are now."""
        if self.states is None:
            self.bind(given)
            return
        address, empty = self.device.address, self.device.empty
        gone = [
            k
            for k, (a, b) in enumerate(zip(given, self.states, strict=True))
            if k not in self.own and a is not b and address(a) != address(b)
        ]
        small = {k: given[k] for k in gone if given[k].nbytes <= SMALL}
        self.own |= {k: empty(a.size, a.dtype).reshape(a.shape) for k, a in small.items()}
        if gone:
            self.bind([self.own.get(k, a) for k, a in enumerate(given)])
        for k, array in self.own.items():
            array[...] = given[k]

    def bind(self, states) -> None:
        """Find every address, for states where they are now."""
        self.states, self.captured, self.runs = states, False, 0
        flat = [a.reshape(-1) for a in states]
        room = Room(self.arena, self.inputs, flat, self.outputs, self.wrong)
        self.steps = Binding(self.made, self.made.plan, room).steps()

    def compute(self) -> None:
        """Do all steps; a run that fails on the way leaves the states as they were."""
        if self.runs and self.made.captures and not self.captured:
            self.capture()
        before = {k: self.states[k].copy() for k in self.made.risked}
        try:
            do(self.steps)
        except BaseException:
            for k, array in before.items():
                self.states[k][...] = array
            raise
        self.runs += 1

    def capture(self) -> None:
        """Let the steps between those that wait be launches of graphs."""
        found = []
        try:
            for waits, group in groupby(self.steps, lambda step: isinstance(step, Look)):
                steps = [*group]
                found += steps if waits else [self.device.captured(steps)]
        except RuntimeError as why:  # nothing was done
            self.made.captures = False
            warnings.warn(f"no graph, kernels are launched one by one: {why}", stacklevel=2)
            return
        self.steps, self.captured = found, True


def do(steps) -> None:
    for step in steps:
        step()


class Binding:
    """The steps of one plan in its room: functions without arguments."""

    def __init__(self, made: Executable, planned: Plan, room: Room):
        self.made, self.device, self.plan, self.room = made, made.device, planned, room

    def steps(self) -> list[Callable]:
        found = [self.copy(c) for c in self.plan.before]
        for record in self.plan.program.records:
            found += self.record(record)
        return found + [self.copy(c) for c in self.plan.copies]

    def at(self, place: Place, spec):
        """The memory of a place, as an array."""
        if place.kind == "arena":
            piece = self.room.arena[place.offset : place.offset + spec.nbytes]
            return piece.view(spec.dtype).reshape(spec.shape)
        return getattr(self.room, place.kind)[place.k].reshape(spec.shape)

    def value(self, record: Record):
        """Where a record's value lies; a number is itself."""
        if record.op is NUMBER:
            return record.attrs["value"]
        return self.at(self.plan.place(record), record.spec)

    def made_by(self, record: Record) -> list:
        specs = enumerate(specs_of(record))
        return [self.at(self.plan.place(record, k), spec) for k, spec in specs]

    def copy(self, copy: Copy) -> Callable:
        target = self.at(copy.target, copy.value.spec)
        if copy.value.op is NUMBER:
            number = copy.value.attrs["value"]
            return lambda: target.fill(number)
        source = self.at(copy.source, copy.value.spec)
        return lambda: self.device.copy(target, source)

    def record(self, record: Record) -> list[Callable]:
        if record.op is cond:
            return [self.branch(record)]
        if record.op is while_loop:
            return [self.rounds(record)]
        kernels = self.made.kernels
        if record not in kernels.of:
            return []  # a look at another value
        found = [self.call(record, c) for c in kernels.looks.get(record, ())]
        if record is self.made.last_look or (found and self.made.hosted):
            found.append(Look(self.made, self.room.wrong))
        work = kernels.of[record]
        if work is None:
            return [*found, self.by_host(record)]
        return found + [self.call(record, c) for c in work.calls]

    # ---- calls -------------------------------------------------------------------------------

    def address(self, record: Record, operand: Operand) -> int:
        if operand.kind == "work":
            start, base = self.device.address(self.room.arena), self.plan.work[record].offset
            return start + base + operand.offset
        if operand.kind == "wrong":
            return self.device.address(self.room.wrong) + operand.offset
        given = [x for x in record.inputs if x.op is not NUMBER]
        array = (
            self.value(given[operand.k])
            if operand.kind == "in"
            else self.at(self.plan.place(record, operand.k), specs_of(record)[operand.k])
        )
        return self.device.address(array) + operand.offset

    def call(self, record: Record, call) -> Callable:
        device = self.device
        if isinstance(call, Launch):
            addresses = [self.address(record, o) for o in call.given]
            function = self.made.functions[call.name]
            return lambda: device.launch(function, call.blocks, call.threads, addresses)
        if isinstance(call, Gemm):
            x, y, c = (self.address(record, matrix.at) for matrix in (call.x, call.y, call.c))
            return lambda: device.gemm(call, x, y, c)
        assert isinstance(call, Clear)
        address = self.address(record, call.at)
        return lambda: device.clear(address, call.nbytes)

    def by_host(self, record: Record) -> Callable:
        """Compute a record by array operations."""
        given = [self.value(x) for x in record.inputs]
        made, several = self.made_by(record), record.dtype is None

        def step():
            try:
                found = record.op.evaluate(self.device.module, given, record.attrs)
            except Exception as error:
                fail(record, error)
            for target, value in zip(made, found if several else [found], strict=True):
                target[...] = value

        return step

    # ---- regions -----------------------------------------------------------------------------

    def inner(self, record: Record, name: str, inputs, states, outputs) -> list[Callable]:
        """The steps of a region: its arena is the record's work memory."""
        work = self.plan.work.get(record, Place("arena"))
        arena = self.room.arena[work.offset : work.offset + work.nbytes]
        inputs, states, outputs = (
            [a.reshape(-1) for a in arrays] for arrays in (inputs, states, outputs)
        )
        room = Room(arena, inputs, states, outputs, self.room.wrong)
        return Binding(self.made, self.plan.regions[record][name], room).steps()

    def arrays(self, records) -> list:
        return [self.value(x) for x in records if x.op is not NUMBER]

    def branch(self, record: Record) -> Callable:
        test, made = self.value(record.inputs[0]), self.made_by(record)
        given = self.arrays(record.inputs[1:])
        yes, no = (self.inner(record, name, given, [], made) for name in ("true", "false"))
        return lambda: do(yes if bool(test) else no)

    def rounds(self, record: Record) -> Callable:
        """The carried values lie in the results' memory from the first round on."""
        count = record.attrs["carried"]
        carried, rest = self.made_by(record), self.arrays(record.inputs[count:])
        first = [self.value(x) for x in record.inputs[:count]]
        go = self.device.empty(1, record.attrs["test"].outputs[0].dtype)
        test = self.inner(record, "test", [*carried, *rest], [], [go])
        body = self.inner(record, "body", rest, carried, [])

        def step():
            for target, value in zip(carried, first, strict=True):
                target[...] = value
            do(test)
            while bool(go[0]):
                do(body)
                do(test)

        return step
