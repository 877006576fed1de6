"""A program on a GPU whose calls get the addresses of this run: no graph, no memory of its own.

So eager mode runs what it compiles: its arrays are new ones in each call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...codegen.cuda.calls import Clear, Gemm, Launch, Operand
from ...engine.core.record import Record
from ...engine.eager.device import NUMPY
from ...engine.executors.native import CannotCompile
from ...engine.ir.program import NUMBER, Program
from .device import Gpu
from .gpu_program import GpuProgram, IndexCheck, list_addresses, uses_tf32


class DirectExecutable(GpuProgram):
    """A program that needs nothing of the host. A call gets the arrays of inputs and states, and
    updates states in place.
    """

    def __init__(self, program: Program, device: Gpu):
        super().__init__(program, device=device)
        copies = [*self.plan.before, *self.plan.copies]
        if self.hosted or any(copy.value.op is NUMBER for copy in copies):
            names = sorted({record.op.name for record in self.hosted}) or ["a number"]
            raise CannotCompile(f"the host computes {', '.join(names)}")
        self.given = [record.spec for record in self.program.given]
        self.outputs = [record.spec for record in self.program.outputs]
        self.first = {"arena": 0, "wrong": 1, "input": 2, "state": 2 + len(self.program.inputs)}
        self.first["output"] = 2 + len(self.given)
        with device.working():
            self.wrong = device.empty(2 * len(self.kernels.places), "int64")
            self.wrong.fill(0)
        self.steps = [self.copy(copy) for copy in self.plan.before]
        for record, call in self.kernels.calls():
            self.steps.append(self.step(record, call))
            if isinstance(call, Launch) and any(o.kind == "wrong" for o in call.given):
                self.steps.append((self.check, []))
        self.steps += [self.copy(copy) for copy in self.plan.copies]
        self.compile()

    def step(self, record: Record, call) -> tuple[Callable, list]:
        """A function of addresses, and which these are."""
        device, at = self.device, partial(self.find_base, record)
        if isinstance(call, Launch):
            return partial(self.launch, call), [at(o) for o in call.given]
        if isinstance(call, Gemm):
            return partial(self.multiply, call), [at(m.at) for m in (call.x, call.y, call.c)]
        assert isinstance(call, Clear)
        return lambda addresses: device.clear(*addresses, call.nbytes), [at(call.at)]

    def find_base(self, record: Record, operand: Operand) -> tuple[int, int]:
        """The number of a base address, and an offset."""
        kind, k, offset = self.locate(record, operand)
        return self.first[kind] + k, offset

    def copy(self, copy) -> tuple[Callable, list]:
        places = [(self.first[p.kind] + p.k, p.offset) for p in (copy.target, copy.source)]
        return lambda addresses: self.device.copy(*addresses, copy.value.spec.nbytes), places

    def launch(self, call: Launch, addresses: list[int]) -> None:
        if call.parts:
            table = self.device.to_device(NUMPY.array(addresses))
            addresses = [self.device.address(table)]
        self.device.launch(self.compile()[call.name], call.blocks, call.threads, addresses)

    def multiply(self, call: Gemm, addresses: list[int]) -> None:
        if call.starts:
            table = self.device.to_device(list_addresses(call, addresses))
            addresses = [self.device.address(row) for row in table]
        self.device.gemm(call._replace(tf32=uses_tf32()), *addresses)

    def check(self, addresses) -> None:
        IndexCheck(self, self.wrong)()

    def __call__(self, arrays) -> list:
        """The outputs, then the updated states."""
        device = self.device
        with device.working():
            arrays = [*arrays, *self.constants]
            arrays = [device.as_input(a, spec) for a, spec in zip(arrays, self.given, strict=True)]
            outputs = [device.empty(spec.size, spec.dtype) for spec in self.outputs]
            memory = [device.empty(self.plan.size, "uint8"), self.wrong, *arrays, *outputs]
            bases = [*map(device.address, memory)]
            for function, places in self.steps:
                function([bases[k] + offset for k, offset in places])
        outputs = [y.reshape(spec.shape) for y, spec in zip(outputs, self.outputs, strict=True)]
        first = len(self.program.inputs)
        return outputs + [arrays[first + k] for k in self.updated]
