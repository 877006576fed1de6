"""An interpreter that computes in the memory of a plan: one arena, all values at their offsets.

The results are those of the interpreter. With `check` each value that is read is compared with the
value that was written, and memory is overwritten after its last use. So a plan that reuses memory
too early fails at the record that reads the wrong value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...engine.core.errors import teach
from ...engine.core.record import Record
from ...engine.ir.program import NUMBER, Program
from ...engine.passes.buffer_assignment import Copy, MemoryPlan
from ...engine.passes.lifetimes import is_view, roots
from ...engine.passes.memory import plan
from .plan_steps import PlanMemory, PlanSteps, do

POISON = 0xCB
"""The byte that fills memory without a value; four of them are about -2.7e7 as float32."""


class OverwrittenError(AssertionError):
    """A value was overwritten before it was read for the last time: the plan is wrong."""


class ArenaRun:
    """Runs programs like `ir.interpreter.Run`, in the memory of their plans.

    >>> import numpy
    >>> from minipaddle.executors.interpreted.arena_interpreter import ArenaRun
    >>> from minipaddle.ir.parser import parse
    >>> double = parse("program p(x: float32[2]) { v1 = add(x, x) : float32[2] return v1 }")
    >>> ArenaRun(numpy)(double, [numpy.ones(2, "float32")])[0].tolist()
    [2.0, 2.0]
    """

    def __init__(self, m, *, check: bool = False, planner=plan):
        self.module, self.check, self.planner = m, check, planner
        self.plans: dict[Program, MemoryPlan] = {}
        self.arena = m.zeros(0, dtype="uint8")

    def __call__(self, program: Program, arrays) -> list:
        """The results (outputs, then updates) for inputs and states, which are not changed."""
        if program not in self.plans:
            self.plans[program] = self.planner(program)
        planned, count = self.plans[program], len(program.inputs)
        if self.arena.size < planned.size:
            self.arena = self.module.zeros(planned.size, dtype="uint8")
        flat = [self.module.ascontiguousarray(x).reshape(-1) for x in arrays]
        states = [x.copy() for x in flat[count:]]
        outputs = [self.empty(r.spec.size, r.dtype) for r in program.outputs]
        if self.check:
            self.arena[...] = POISON
        memory = PlanMemory(self.arena, flat[:count], states, outputs)
        do(ArenaSteps(self, planned, memory).steps())
        specs = [r.shape for r in program.outputs]
        updated = [(a, s.record.shape) for a, s in zip(states, program.states) if s.update]
        return [a.reshape(shape) for a, shape in [*zip(outputs, specs, strict=True), *updated]]

    def empty(self, size: int, dtype):
        y = self.module.empty(size, dtype=dtype)
        if self.check:
            y.view("uint8")[...] = POISON
        return y


class ArenaSteps(PlanSteps):
    """The steps of a plan, with `check` between steps that compare and overwrite."""

    def __init__(self, owner: ArenaRun, plan: MemoryPlan, memory: PlanMemory):
        super().__init__(owner, plan, memory)
        self.root = roots(plan.program)
        self.number = {record: t for t, record in enumerate(plan.program.records)}
        self.written: dict = {}  # a copy of each value

    def steps(self) -> list[Callable]:
        return [self.begin] * self.owner.check + super().steps()

    def record(self, record: Record) -> list[Callable]:
        if is_view(record, self.root):
            return []
        steps = super().record(record)
        if self.owner.check:
            return [partial(self.before, record), *steps, partial(self.after, record)]
        return steps

    def copy(self, copy: Copy) -> Callable:
        step, value = super().copy(copy), copy.value
        if not self.owner.check or value.op is NUMBER or copy.source != self.plan.location(value):
            return step
        return partial(do, [partial(self.compare, value), step])

    # ---- checks ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Remember the inputs and states."""
        for record in self.plan.program.given:
            self.written[record, 0] = self.value(record).copy()

    def before(self, record: Record) -> None:
        """Compare the inputs. Overwrite the workspace: a kernel may leave anything in it."""
        for x in record.inputs:
            if x.op is not NUMBER:
                self.compare(x)
        if work := self.plan.work.get(record):
            self.memory.arena[work.offset : work.offset + work.nbytes] = POISON

    def after(self, record: Record) -> None:
        """Remember the results. Overwrite the values that are not used any more."""
        self.written |= {(record, k): y.copy() for k, y in enumerate(self.results(record))}
        for allocation in self.plan.allocations:
            if allocation.buffer.end == self.number[record] + 1:
                start = allocation.location.offset
                self.memory.arena[start : start + allocation.buffer.nbytes] = POISON

    def compare(self, record: Record) -> None:
        """Compare the value of a record with the value that was written."""
        wanted = self.written[self.root[record]].reshape(-1)[: record.spec.size]
        if self.value(record).tobytes() != wanted.tobytes():
            raise OverwrittenError(
                teach(
                    f"{record!r} was overwritten before it was read: it lies at "
                    f"{self.plan.location(record)}",
                    where=record.where,
                )
            )
