"""The steps of a memory plan: functions without arguments, which compute in the plan's memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...engine.core.record import Record
from ...engine.ir.control import cond, while_loop
from ...engine.ir.interpreter import Run, fail
from ...engine.ir.program import NUMBER
from ...engine.passes.buffer_assignment import Copy, Location, MemoryPlan
from ...engine.passes.lifetimes import specs_of


class PlanMemory(NamedTuple):
    """The memory of a plan: the bytes of the arena, and flat arrays."""

    arena: object
    input: list
    state: list
    output: list


def do(steps) -> None:
    for step in steps:
        step()


class PlanSteps:
    """The steps of one plan. Array operations compute the records: `owner.module` is the array
    module, `owner.empty(size, dtype)` allocates memory.
    """

    def __init__(self, owner, plan: MemoryPlan, memory: PlanMemory):
        self.owner, self.plan, self.memory = owner, plan, memory

    def steps(self) -> list[Callable]:
        steps = [self.copy(c) for c in self.plan.before]
        for record in self.plan.program.records:
            steps += self.record(record)
        return steps + [self.copy(c) for c in self.plan.copies]

    def record(self, record: Record) -> list[Callable]:
        """The steps that compute one record."""
        if record.op is cond:
            return [self.branch(record)]
        if record.op is while_loop:
            return [self.loop(record)]
        return [self.call_on_arrays(record)]

    # ---- memory ------------------------------------------------------------------------------

    def at(self, location: Location, spec):
        """The memory at a location, as an array."""
        if location.kind == "arena":
            memory = self.memory.arena[location.offset :]
        else:  # an earlier value there may have another dtype
            memory = getattr(self.memory, location.kind)[location.k].view("uint8")
        return memory[: spec.nbytes].view(spec.dtype).reshape(spec.shape)

    def value(self, record: Record):
        """The memory of a record's value; for a number, the number."""
        if record.op is NUMBER:
            return record.attrs["value"]
        return self.at(self.plan.location(record), record.spec)

    def arrays(self, records) -> list:
        return [self.value(x) for x in records if x.op is not NUMBER]

    def results(self, record: Record) -> list:
        """The memory of all results of a record."""
        specs = enumerate(specs_of(record))
        return [self.at(self.plan.location(record, k), spec) for k, spec in specs]

    def copy(self, copy: Copy) -> Callable:
        target = self.at(copy.target, copy.value.spec)
        if copy.value.op is NUMBER:
            return partial(target.fill, copy.value.attrs["value"])
        return partial(self.move, target, self.at(copy.source, copy.value.spec))

    def move(self, target, source) -> None:
        target[...] = source

    def empty_like(self, x):
        """Memory of its own for an array of this spec."""
        return self.owner.empty(x.size, x.dtype).reshape(x.shape)

    # ---- records -----------------------------------------------------------------------------

    def call_on_arrays(self, record: Record) -> Callable:
        inputs, targets = [self.value(x) for x in record.inputs], self.results(record)

        def step():
            try:
                y = self.apply(record, inputs)
            except Exception as error:
                fail(record, error)
            if record.dtype is not None:
                y = [y]
            elif len(y) > 1:  # one may be a view of memory that another overwrites
                y = [part.copy() for part in y]
            for target, value in zip(targets, y, strict=True):
                target[...] = value

        return step

    def apply(self, record: Record, inputs):
        """The results of a record's operator."""
        if record.op.kind == "control":
            return record.op.body(Run(self.owner.module), *inputs, **record.attrs)
        return record.op.evaluate(self.owner.module, inputs, record.attrs)

    def region(self, record: Record, name: str, inputs, states, outputs) -> list[Callable]:
        """The steps of a region: its arena is the record's work memory."""
        work = self.plan.work.get(record, Location("arena"))
        arena = self.memory.arena[work.offset : work.offset + work.nbytes]
        flat = [[a.reshape(-1) for a in arrays] for arrays in (inputs, states, outputs)]
        plan = self.plan.regions[record][name]
        return type(self)(self.owner, plan, PlanMemory(arena, *flat)).steps()

    def branch(self, record: Record) -> Callable:
        test, targets = self.value(record.inputs[0]), self.results(record)
        inputs = self.arrays(record.inputs[1:])
        yes, no = (self.region(record, name, inputs, [], targets) for name in ("true", "false"))
        return lambda: do(yes if bool(test) else no)

    def loop(self, record: Record) -> Callable:
        """The carried values share the memory of the results. If the loop stacks them, an iteration
        gives the next ones in other memory.
        """
        n, results = record.attrs["carried"], self.results(record)
        reads, writes = (record.attrs.get(key, ()) for key in ("reads", "writes"))
        w, m = len(results) - len(writes), len(record.inputs) - len(reads)
        carried, rest = results[:n], self.arrays(record.inputs[n:])
        count, stacks = results[n : min(n + 1, w)], results[n + 1 : w]
        arrays = [x[::-1] if back else x for x, back in zip(rest[m - n :], reads)]
        slices = [self.empty_like(x[0]) for x in arrays]
        first = [self.value(x) for x in record.inputs[:n]]
        go = self.owner.empty(1, record.attrs["test"].outputs[0].dtype)
        test = self.region(record, "test", [*carried, *rest], [], [go])
        after = [self.empty_like(x) for x in carried[: len(stacks)]]
        outputs = [y[::-1] if back else y for y, back in zip(results[w:], writes)]
        written = [self.empty_like(y[0]) for y in outputs]
        shared = [*rest[: m - n], *slices]
        places = [shared, carried, written]
        if stacks:
            places = [[*carried, *shared], [], [*after, *written]]
        body = self.region(record, "body", *places)

        def step():
            for target, value in zip(carried, first, strict=True):
                target[...] = value
            do(test)
            trips = 0
            while bool(go[0]):
                for stack, value in zip(stacks, carried):
                    stack[trips] = value
                for part, x in zip(slices, arrays):
                    part[...] = x[trips]
                do(body)
                for y, part in zip(outputs, written):
                    y[trips] = part
                trips += 1
                for target, value in zip(carried, after):
                    target[...] = value
                do(test)
            for target in count:
                target[...] = trips

        return step
