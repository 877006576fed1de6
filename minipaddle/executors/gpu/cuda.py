"""A program on a GPU: passes, groups, a memory plan, CUDA kernels; all of it one CUDA graph.

All steps are bound to memory once: to the arena of a `CudaContext`, and to states where the caller
has them. Kernels find inputs where the caller has them, and outputs in new arrays: their addresses
are in slots of the context. Those that a call of cuBLAS, a copy or the host reads or writes lie in
the context instead, and are copied.

If no step needs a value on the host, the second run is captured as a graph, and each later run is
one launch. The host decides `cond` and `while_loop`, and computes records without a kernel, between
the kernels.

Indices in the data (tokens, labels) are checked: one that is out of range raises IndexError, as in
the other executors. Those that the program is given are checked before its first update, so that no
state must be kept. For indices that are computed the host waits once more, after the last check.
The graph is in parts then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import groupby

from ...codegen.cuda.calls import Clear, Gemm, KernelCalls, Launch, Operand
from ...engine.codegen.kernel import buffers, results
from ...engine.core.record import Record
from ...engine.eager.device import NUMPY
from ...engine.executors.native import find_early_writes
from ...engine.ir.control import cond, while_loop
from ...engine.ir.program import Program
from ..interpreted.plan_steps import PlanMemory, PlanSteps, do
from .gpu_program import GpuProgram, IndexCheck, list_addresses, uses_tf32

SMALL = 4096
"""Most bytes of a moved state that is copied to memory of the context. For a larger one a
new graph is captured."""

STILL = 16
"""The calls after which a copied state that has not moved again is used where it is: then, too, a
new graph is captured. A state that moves after that has to lie still twice as long."""


class CudaExecutable(GpuProgram):
    """A program with fixed sizes, compiled for `device`. A call runs it like the interpreter's
    `Run`, and updates states in place, in the arrays of the call.
    """

    def __init__(self, program: Program, strategy=None, sizes=None, *, device=None):
        super().__init__(program, strategy, sizes, device=device)
        program, hosted, looks = self.program, self.hosted, self.kernels.looks
        self.ends = {"input": [*enumerate(program.inputs)], "output": [*enumerate(program.outputs)]}
        self.slots = self.find_slots()
        self.kernels.read_slots(lambda r, o: self.slots.get(self.locate(r, o)[:2]))
        self.compile()
        self.captures = not hosted and self.chosen.get("allow_cuda_graph_capture") is not False
        self.states_at_risk = find_early_writes(self.plan, [*looks, *hosted])
        self.last_look = None if hosted else next(reversed(looks), None)
        self.contexts: list[CudaContext] = []
        self.tf32 = False

    def find_slots(self) -> dict[tuple[str, int], Operand]:
        """The slot of each input and output that only kernels read and write, by its place."""
        places = [(kind, k) for kind, ends in self.ends.items() for k, _ in ends]
        copies = [*self.plan.before, *self.plan.copies]
        others = [location[:2] for copy in copies for location in (copy.source, copy.target)]
        for record in self.program.records:
            work = self.kernels.of.get(record, KernelCalls(()))  # a view needs no call
            for call in work.calls if work else ():
                if isinstance(call, Launch):  # a slot has the address of a whole array
                    others += [self.locate(record, o)[:2] for o in call.given if o.offset]
                else:
                    product = isinstance(call, Gemm)
                    memory = (call.x.at, call.y.at, call.c.at) if product else (call.at,)
                    others += [self.locate(record, operand)[:2] for operand in memory]
            if work is None or record.op in (cond, while_loop):
                others += [self.plan.location(x)[:2] for x in buffers(record)]
                others += [self.plan.location(record, k)[:2] for k in range(len(results(record)))]
        slots = [place for place in places if place not in {*others}]
        return {place: Operand("slot", k) for k, place in enumerate(slots)}

    def __call__(self, program: Program, arrays) -> list:
        """The outputs, then the updated states, for inputs and states."""
        if self.tf32 != (now := uses_tf32()):
            self.tf32, self.contexts = now, []  # graphs keep how a product is computed
        with self.device.working():
            context = self.contexts.pop() if self.contexts else CudaContext(self)
            try:
                return context.run([*arrays, *self.constants])
            finally:
                if context.tf32 == self.tf32:
                    self.contexts.append(context)


class CudaContext:
    """The memory of one call at a time, and the steps that are bound to it."""

    def __init__(self, executable: CudaExecutable):
        self.executable, self.device = executable, executable.device
        self.tf32 = executable.tf32
        self.module, self.empty = self.device.module, (empty := self.device.empty)
        self.arena = empty(executable.plan.size, "uint8")
        self.inputs, self.outputs = (
            [
                None if (kind, k) in executable.slots else empty(r.spec.size, r.dtype)
                for k, r in ends
            ]
            for kind, ends in executable.ends.items()
        )
        self.slots, self.addresses = empty(len(executable.slots), "int64"), []
        self.held: list = []  # what the slots lead to, during a call
        self.wrong = empty(2 * len(executable.kernels.places), "int64")
        self.wrong.fill(0)
        self.states: list | None = None  # the states to which the steps are bound
        self.own: dict[int, object] = {}  # copies of states that move between calls
        self.seen: dict[int, tuple[int, int]] = {}  # of these: address, calls at this address
        self.patience: dict[int, int] = {}  # the calls that they must lie still
        self.steps: list[Callable] = []
        self.tables: list = []  # of addresses, which the steps read
        self.captured = False
        self.runs = 0  # complete runs since the steps were bound

    def run(self, arrays) -> list:
        executable, count = self.executable, len(self.inputs)
        states = zip(arrays[count:], executable.program.states, strict=True)
        states = [self.device.as_input(a, s.record.spec) for a, s in states]
        self.rebind(states)
        results = self.place_arrays(arrays[:count])
        self.compute()
        self.held = []
        for k in self.own.keys() & set(executable.updated):
            states[k][...] = self.own[k]
        outputs = zip(results, self.outputs, executable.program.outputs, strict=True)
        results = [(own.copy() if y is None else y).reshape(r.shape) for y, own, r in outputs]
        return results + [states[k] for k in executable.updated]

    def place_arrays(self, arrays) -> list:
        """Copy inputs to the context, or note where they lie; new arrays for outputs, in slots."""
        device, ends, there = self.device, self.executable.ends, []
        for array, own, (_, record) in zip(arrays, self.inputs, ends["input"], strict=True):
            array = device.to_device(array).reshape(record.shape)
            if own is None:
                there.append(self.apart(device.as_input(array, record.spec)))
            else:
                own[...] = array.reshape(-1)
        outputs = [
            device.empty(record.spec.size, record.dtype) if own is None else None
            for own, (_, record) in zip(self.outputs, ends["output"], strict=True)
        ]
        self.held = [*there, *(array for array in outputs if array is not None)]
        if (addresses := [*map(device.address, self.held)]) != self.addresses:
            device.write(self.slots, NUMPY.array(addresses, "int64"))
            self.addresses = addresses
        return outputs

    def apart(self, array):
        """An input, or its copy if this call updates a state in the same memory."""
        first = self.device.address(array)
        starts, ends = self.written
        shared = (starts < first + array.nbytes) & (first < ends)
        return array.copy() if shared.any() else array

    def rebind(self, states) -> None:
        """Bind the steps again if states have moved, or copy small states."""
        if self.states is None:
            self.bind(states)
            return
        address, empty = self.device.address, self.device.empty
        gone = [
            k
            for k, (a, b) in enumerate(zip(states, self.states, strict=True))
            if k not in self.own and a is not b and address(a) != address(b)
        ]
        small = {k: states[k] for k in gone if states[k].nbytes <= SMALL}
        self.own |= {k: empty(a.size, a.dtype).reshape(a.shape) for k, a in small.items()}
        self.patience |= {k: 2 * self.patience.get(k, STILL // 2) for k in small}
        settled = self.find_settled(states)
        for k in settled:
            del self.own[k], self.seen[k]
        if gone or settled:
            self.bind([self.own.get(k, a) for k, a in enumerate(states)])
        for k, array in self.own.items():
            array[...] = states[k]

    def find_settled(self, states) -> list[int]:
        """The copied states that have lain still for so long that they need no copy."""
        for k in self.own:
            place = self.device.address(states[k])
            before, calls = self.seen.get(k, (None, 0))
            self.seen[k] = place, calls + 1 if place == before else 0
        return [k for k in self.own if self.seen[k][1] >= self.patience[k]]

    def bind(self, states) -> None:
        """Bind the steps to the current addresses of states."""
        self.states, self.captured, self.runs, self.tables = states, False, 0, []
        flat = [a.reshape(-1) for a in states]
        updated = [states[k] for k in self.executable.updated]
        starts = NUMPY.array([*map(self.device.address, updated)], "int64")
        self.written = starts, starts + NUMPY.array([a.nbytes for a in updated], "int64")
        memory = PlanMemory(self.arena, self.inputs, flat, self.outputs)
        self.steps = GpuSteps(self, self.executable.plan, memory).steps()

    def put_on_device(self, addresses) -> int:
        """Where a table of addresses lies on the device, as long as the steps are bound to them."""
        self.tables.append(self.device.to_device(NUMPY.asarray(addresses)))
        return self.device.address(self.tables[-1])

    def compute(self) -> None:
        """Do all steps; a run that fails restores the states."""
        if self.runs and self.executable.captures and not self.captured:
            self.capture()
        before = {k: self.states[k].copy() for k in self.executable.states_at_risk}
        try:
            do(self.steps)
        except BaseException:
            for k, array in before.items():
                self.states[k][...] = array
            raise
        self.runs += 1

    def capture(self) -> None:
        """Capture the steps between index checks as graphs."""
        parts = []
        try:
            for waits, group in groupby(self.steps, lambda step: isinstance(step, IndexCheck)):
                steps = [*group]
                parts += steps if waits else [self.device.record_graph(steps)]
        except RuntimeError as why:  # nothing was done
            self.executable.captures = False
            warnings.warn(f"no graph, kernels are launched one by one: {why}", stacklevel=2)
            return
        self.steps, self.captured = parts, True


class GpuSteps(PlanSteps):
    """The steps of one plan in the memory of a `CudaContext`: calls of kernels and of cuBLAS."""

    def steps(self) -> list[Callable]:
        executable, first = self.owner.executable, []
        if self.plan is executable.plan and executable.kernels.first_looks:
            first = [self.call(*look) for look in executable.kernels.first_looks]
            first.append(IndexCheck(executable, self.owner.wrong))
        return first + super().steps()

    def record(self, record: Record) -> list[Callable]:
        executable, kernels = self.owner.executable, self.owner.executable.kernels
        if record.op in (cond, while_loop):
            return super().record(record)
        if record not in kernels.of:
            return []  # a view of another value
        steps = [self.call(record, c) for c in kernels.looks.get(record, ())]
        if record is executable.last_look or (steps and executable.hosted):
            steps.append(IndexCheck(executable, self.owner.wrong))
        work = kernels.of[record]
        if work is None:
            return steps + super().record(record)
        return steps + [self.call(record, c) for c in work.calls]

    def move(self, target, source) -> None:
        device = self.owner.device
        device.copy(device.address(target), device.address(source), target.nbytes)

    def address(self, record: Record, operand: Operand) -> int:
        """The address of an operand of a call."""
        address, kind, k = self.owner.device.address, operand.kind, operand.k
        if kind == "slot":
            start = address(self.owner.slots) + 8 * k
        elif kind == "value":
            start = address(self.value(record))
        elif kind == "work":
            start = address(self.memory.arena) + self.plan.work[record].offset
        elif kind == "wrong":
            start = address(self.owner.wrong)
        else:
            record, k = (buffers(record)[k], 0) if kind == "in" else (record, k)
            start = address(self.at(self.plan.location(record, k), results(record)[k]))
        return start + operand.offset

    def call(self, record: Record, call) -> Callable:
        device = self.owner.device
        if isinstance(call, Launch):
            addresses = [self.address(record, o) for o in call.given]
            addresses = [self.owner.put_on_device(addresses)] if call.parts else addresses
            function = self.owner.executable.compile()[call.name]
            return partial(device.launch, function, call.blocks, call.threads, addresses)
        if isinstance(call, Gemm):
            addresses = [self.address(record, matrix.at) for matrix in (call.x, call.y, call.c)]
            if call.starts:
                first = self.owner.put_on_device(list_addresses(call, addresses))
                addresses = [first + 8 * call.count * k for k in range(len(addresses))]
            return partial(device.gemm, call._replace(tf32=self.owner.tf32), *addresses)
        assert isinstance(call, Clear)
        return partial(device.clear, self.address(record, call.at), call.nbytes)
