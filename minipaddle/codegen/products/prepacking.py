"""Weights in the form that kernels want, which C computes before the first run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

from ...engine.codegen.kernel import C_TYPES, Kernel, read_template
from ...engine.codegen.kernel_schedule import within
from ...engine.codegen.step import KernelTable
from ...engine.core.record import Record
from ...engine.ir.control import fused
from ...engine.ir.program import Program
from ..open_sizes import as_literals, wants_literals, with_sizes
from .known_inputs import declare_unsigned, is_unsigned


class Prepack(NamedTuple):
    """The form in which a kernel wants a constant input: a number of elements of its dtype, which
    the C statement `call` computes in advance, from `given` into `made`.
    """

    edge: Record
    elements: int
    call: str


_constant_inputs: ContextVar[frozenset[Record]] = ContextVar("constant", default=frozenset())


def constant_inputs(edges: Iterable[Record]):
    """Within the block, these inputs of kernels are constant: the same in every run."""
    return within(_constant_inputs, frozenset(edges))


def is_constant_input(edge: Record) -> bool:
    """Whether an input of the kernel that is being written is constant, and may be prepacked."""
    return edge in _constant_inputs.get()


def inner_inputs(record: Record):
    """Pairs of (an input inside of a group, the input of the group); a record's are its own."""
    inner = record.attrs["region"].inputs if record.op is fused else record.inputs
    return zip(inner, record.inputs, strict=True)


class PackingKernels(KernelTable):
    """The kernels of a program, which may want `constants`, some of its states, in another form.
    `made` says how states were computed.
    """

    def __init__(self, program: Program, tuned=None, constants=(), made=MappingProxyType({})):
        self.made = made
        self.prepacked: dict[Record, Prepack] = {}
        uses = Counter(x for r in program.records for x in r.inputs) if constants else {}
        self.constants = {x for x in constants if uses[x] == 1 and x not in program.results}
        super().__init__(program, tuned)

    def kernel(self, record: Record, name: str) -> Kernel | None:
        constants, unsigned = self.constant_inputs_of(record), self.find_unsigned_inputs(record)
        with constant_inputs(constants), declare_unsigned(unsigned):
            kernel = super().kernel(record, name)
            if kernel is not None and wants_literals(kernel):
                with as_literals():
                    kernel = super().kernel(record, name)
        kernel = kernel and with_sizes(kernel)
        if kernel is not None and kernel.prepack is not None:
            self.prepacked[constants[kernel.prepack.edge]] = kernel.prepack
        return kernel

    def constant_inputs_of(self, record: Record) -> dict[Record, Record]:
        """The constant inputs of a record, by the inputs of its region if it is a group."""
        return {x: y for x, y in inner_inputs(record) if self.constants and y in self.constants}

    def find_unsigned_inputs(self, record: Record) -> list[Record]:
        """The inputs of a record whose bytes are not negative."""
        return [x for x, y in inner_inputs(record) if is_unsigned(self.made.get(y, y))]

    @property
    def functions(self) -> list[str]:
        """The function that brings constant states into the form that kernels want."""
        lines = []
        for k, (state, form) in enumerate(self.prepacked.items()):
            T = C_TYPES[state.dtype]
            names = f"const {T} *given = all_given[{k}]; {T} *made = all_made[{k}];"
            lines.append(f"    {{ {names} {form.call} }}")
        return [PREPACK.replace("LINES", "\n".join(lines))] if lines else []


PREPACK = read_template("prepack.c", __file__)
