"""All kernels of a program as one CUDA file, and the calls that compute each record."""

from __future__ import annotations

from functools import partial

from ...engine.codegen.kernel import has_mixed_dtypes, results, without_names
from ...engine.codegen.scalar import CannotWrite
from ...engine.codegen.step import comment, computed_records, kernel_name
from ...engine.core.record import Record
from ...engine.ir.program import Program
from ...engine.passes.nest import NotOneNest
from .. import concat_split, generator, indexing, pooling  # noqa: F401  (each fills KERNELS)
from ..index_checks import CheckedIndices, IndexInput, index_inputs
from ..target import KERNELS
from . import convolution, product  # noqa: F401  (each fills CUDA_EMITTERS)
from .calls import CUDA_EMITTERS, Calls, Gemm, Launch
from .indexing import look
from .nest import emit_nest
from .prologue import prologue
from .target import emit

CUDA_EMITTERS.update((name, partial(emit, define)) for name, define in KERNELS.items())


class Kernels:
    """The kernels of a program's records; equal ones are written once. Before those that go by
    places in the data come `looks` at these; slot number k is about `places[k]`.
    """

    def __init__(self, program: Program):
        self.of: dict[Record, Calls | None] = {}
        self.looks: dict[Record, list[Launch]] = {}
        self.places: list[tuple[Record, IndexInput]] = []
        self.looked = CheckedIndices()
        self.written: dict[str, str] = {}  # the text without its name -> the name
        self.texts: dict[str, str] = {}  # by name
        self.helpers: dict[str, None] = {}
        for record in computed_records(program):
            self.add(record)

    def add(self, record: Record) -> None:
        base = f"k{len(self.texts)}_{kernel_name(record)}"
        for given in index_inputs(record):
            self.look(record, base, given)
        work = work_of(record, base)
        if work is not None:
            calls = [self.once(record, c) if isinstance(c, Launch) else c for c in work.calls]
            work = work._replace(calls=tuple(calls))
        self.of[record] = work

    def look(self, record: Record, base: str, given: IndexInput) -> None:
        """Look at the places that a record goes by, unless that was done before."""
        call = look(record, base, given, len(self.places))
        if call is not None and self.looked.add(record.inputs[given.k], given):
            self.looks.setdefault(record, []).append(self.once(record, call))
            self.places.append((record, given))

    def once(self, record: Record, call: Launch) -> Launch:
        """The call, of an equal kernel if there is one."""
        self.helpers.update(dict.fromkeys(call.helpers))
        name = self.written.setdefault(without_names(call.source, call.name), call.name)
        if name == call.name:
            self.texts[name] = comment(record) + call.source
        return call._replace(name=name)

    def workspace(self, record: Record) -> int:
        """The bytes of memory of its own that a record needs."""
        work = self.of.get(record)
        return work.workspace if work is not None else 0

    @property
    def hosted(self) -> list[Record]:
        """What has no kernel: array operations compute it."""
        return [record for record, work in self.of.items() if work is None]

    @property
    def body(self) -> str:
        """The file without its prologue."""
        return "\n".join([*self.helpers, *self.texts.values()])

    @property
    def text(self) -> str:
        """The CUDA file."""
        return f"{prologue()}\n{self.body}"


def work_of(record: Record, name: str) -> Calls | None:
    """The calls for a record; None if array operations must compute it."""
    if record.op.effect:
        return None
    if not any(spec.size for spec in results(record)):
        return Calls(())
    emit = CUDA_EMITTERS.get(record.op.name, emit_nest)
    if emit is not emit_nest and has_mixed_dtypes(record):
        return None
    try:
        work = emit(record, name)
    except (NotOneNest, CannotWrite):
        return None
    return work if all(countable(c) for c in work.calls if isinstance(c, Gemm)) else None


def countable(call: Gemm) -> bool:
    """Can cuBLAS, which counts by 32 bits, do it?"""
    pitches = (matrix.pitch for matrix in (call.x, call.y, call.c))
    return max(call.m, call.n, call.k, call.count, *pitches) < 2**31
