"""All kernels of a program as one CUDA file, and the calls that compute each record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ...engine.codegen.kernel import (
    buffers,
    has_mixed_dtypes,
    is_number,
    results,
)
from ...engine.codegen.scalar import CannotWrite
from ...engine.codegen.step import KernelTexts, kernel_name, records_with_kernels
from ...engine.core.record import Record
from ...engine.ir.program import Program
from ...engine.passes.nest import NotOneNest
from ...passes.epilogue import begins_with_product
from ..convolutions import pooling  # noqa: F401  (each fills KERNELS)
from ..indices import concat_split, indexing  # noqa: F401  (each fills KERNELS)
from ..indices.index_checks import CheckedIndices, IndexInput, find_source, fits, index_inputs
from ..indices.value_ranges import ValueRanges
from ..random import generator  # noqa: F401  (each fills KERNELS)
from ..target import KERNELS
from . import convolution, product  # noqa: F401  (each fills CUDA_EMITTERS)
from .attention import emit_attention
from .calls import CUDA_EMITTERS, Gemm, KernelCalls, Launch, Operand
from .horizontal import LOWERED, NAME, HorizontalFusion
from .indexing import look
from .nest import emit_nest
from .prologue import prologue
from .tables import read_slots
from .target import emit

CUDA_EMITTERS.update((name, partial(emit, define)) for name, define in KERNELS.items())


class CudaKernels(KernelTexts):
    """The kernels of a program's records. A kernel with indices in the data runs after `looks`,
    which check them; slot k of the checks belongs to `places[k]`. Indices that the program is given
    are checked before everything else, by `first_looks`: nothing is updated then. Of `program`
    small kernels are joined.
    """

    def __init__(self, program: Program):
        super().__init__()
        self.of: dict[Record, KernelCalls | None] = {}
        self.looks: dict[Record, list[Launch]] = {}
        self.first_looks: list[tuple[Record, Launch]] = []
        self.given = {*program.given}
        self.places: list[tuple[Record, IndexInput]] = []
        fusion = HorizontalFusion(program, work_of)
        self.program = fusion.program
        self.checked, self.ranges = CheckedIndices(), ValueRanges(self.program)
        for record in records_with_kernels(self.program):
            self.add(record, fusion.works[record])

    def add(self, record: Record, work: KernelCalls | None) -> None:
        name = record.attrs["name"] if record.op is LOWERED else kernel_name(record)
        base = f"k{len(self.texts)}_{name}"
        for index in index_inputs(record):
            self.look(record, base, index)
        if work is not None:
            calls = [
                self.once(record, rename(c, base)) if isinstance(c, Launch) else c
                for c in work.calls
            ]
            work = work._replace(calls=tuple(calls))
        self.of[record] = work

    def look(self, record: Record, base: str, index: IndexInput) -> None:
        """Check the indices of a record, unless an earlier record has checked them, or the program
        counts them.
        """
        x = record.inputs[index.k]
        if is_number(x) or fits(self.ranges.of(x), index):
            return
        source = find_source(x)
        first = source in self.given
        at = Operand("value") if first else Operand("in", buffers(record).index(x))
        call = look(source if first else x, base, index, len(self.places), at)
        if call is not None and self.checked.add(x, index):
            call = self.once(record, call)
            if first:
                self.first_looks.append((source, call))
            else:
                self.looks.setdefault(record, []).append(call)
            self.places.append((record, index))

    def read_slots(self, slot_of: Callable[[Record, Operand], Operand | None]) -> None:
        """Let kernels read the addresses of the operands that have a slot from there."""

        def change(record: Record, call):
            slots = [slot_of(record, o) for o in call.given] if isinstance(call, Launch) else []
            if not any(slots):
                return call
            name = f"k{len(self.texts)}_{call.name.partition('_')[2]}"
            return self.once(record, read_slots(name, call, slots))

        for record in self.program.records:
            if work := self.of.get(record):
                calls = tuple([change(record, call) for call in work.calls])
                self.of[record] = work._replace(calls=calls)
            if looks := self.looks.get(record):
                self.looks[record] = [change(record, call) for call in looks]
        self.first_looks = [(record, change(record, call)) for record, call in self.first_looks]
        used = {call.name for _, call in self.calls() if isinstance(call, Launch)}
        self.texts = {name: text for name, text in self.texts.items() if name in used}

    def calls(self) -> Iterator[tuple[Record, object]]:
        """All calls in their order, each with its record."""
        yield from self.first_looks
        for record, work in self.of.items():
            for call in (*self.looks.get(record, ()), *(work.calls if work else ())):
                yield record, call

    def workspace(self, record: Record) -> int:
        """The bytes of workspace that a record needs."""
        work = self.of.get(record)
        return work.workspace if work is not None else 0

    @property
    def hosted(self) -> list[Record]:
        """The records without a kernel: array operations compute them."""
        return [record for record, work in self.of.items() if work is None]

    @property
    def body(self) -> str:
        """The file without its prologue."""
        return "\n".join([*self.helpers, *self.texts.values()])

    @property
    def text(self) -> str:
        """The CUDA file."""
        return self.file()

    def file(self, tf32: bool = False) -> str:
        """The CUDA file; with `tf32` its products may round factors of float32 to 10 bits."""
        return "\n".join([prologue(), *["#define TF32"] * tf32, self.body])


def work_of(record: Record, name: str) -> KernelCalls | None:
    """The calls for a record; None if array operations must compute it."""
    if record.op.effect:
        return None
    if not any(spec.size for spec in results(record)):
        return KernelCalls(())
    emit = CUDA_EMITTERS.get(record.op.name, emit_nest)
    if begins_with_product(record):
        emit = emit_attention
    elif emit is not emit_nest and has_mixed_dtypes(record):
        return None
    try:
        work = emit(record, name)
    except (NotOneNest, CannotWrite):
        return None
    return work if all(countable(c) for c in work.calls if isinstance(c, Gemm)) else None


def rename(call: Launch, name: str) -> Launch:
    """The call of a kernel that was written before its record had a number."""
    source = call.source.replace(NAME, name)
    return call._replace(name=call.name.replace(NAME, name), source=source)


def countable(call: Gemm) -> bool:
    """Whether all sizes fit 32 bits, with which cuBLAS counts."""
    pitches = (matrix.pitch for matrix in (call.x, call.y, call.c))
    return max(call.m, call.n, call.k, call.count, *pitches) < 2**31
