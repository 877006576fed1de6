"""A program prepared for a GPU, however it is called: passes, kernels, a memory plan."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from ...codegen.cuda.attention_parts import fits_tiles
from ...codegen.cuda.calls import Gemm, Operand
from ...codegen.cuda.horizontal import in_place
from ...codegen.cuda.program import CudaKernels
from ...codegen.indices.index_checks import IndexInput
from ...core.flags import FLAGS
from ...engine.codegen.kernel import buffers
from ...engine.core.record import Record
from ...engine.eager.device import NUMPY, current_place
from ...engine.executors.native import CannotCompile, fix_sizes
from ...engine.ir.control import cond, while_loop
from ...engine.ir.interpreter import fail
from ...engine.ir.program import NUMBER, Program
from ...engine.passes.manager import optimized
from .device import Gpu, gpu_of

GPU_PASSES = {
    "epilogue": False,  # cuBLAS runs nothing of ours inside
    "strip_kernel": fits_tiles,
    "keep_halves": True,  # its tensor cores multiply them
    "widen_products": False,
}
"""The passes that a GPU needs otherwise."""


class GpuProgram:
    """A program with fixed sizes and the calls that compute it on `device`. `constants` are the
    states that passes added.
    """

    def __init__(self, program: Program, strategy=None, sizes=None, *, device=None):
        program = fix_sizes(program, sizes)
        done = optimized(program, strategy, **GPU_PASSES)
        self.sizes, self.device, self.chosen = sizes or {}, device or usable(), done.chosen
        self.kernels = CudaKernels(done.program)
        self.compiled: dict[bool, dict] = {}
        self.snapshots, self.program = done.snapshots, self.kernels.program
        self.plan = done._replace(program=self.program).planned(self.kernels.workspace, in_place)
        added = self.program.states[len(program.states) :]
        self.updated = [k for k, s in enumerate(self.program.states) if s.update is not None]
        with self.device.working():
            self.constants = [self.device.to_device(s.storage.read()) for s in added]

    def compile(self) -> dict:
        """The compiled kernels by name: others as long as a flag asks for TF32."""
        tf32 = uses_tf32()
        if tf32 not in self.compiled:
            with self.device.working():
                text, names = self.kernels.file(tf32), [*self.kernels.texts]
                self.compiled[tf32] = self.device.compile(text, names)
        return self.compiled[tf32]

    def locate(self, record: Record, operand: Operand) -> tuple[str, int, int]:
        """The kind, the number and the offset of the place of an operand."""
        kind, k, offset = operand
        if kind == "work":
            return "arena", 0, self.plan.work[record].offset + offset
        if kind not in ("in", "out", "value"):
            return kind, k, offset
        record, k = (buffers(record)[k], 0) if kind == "in" else (record, k)
        kind, k, start, *_ = self.plan.location(record, k)
        return kind, k, start + offset

    @property
    def hosted(self) -> list[Record]:
        """The records that the host computes or decides."""
        return [*self.kernels.hosted, *decisions(self.program)]


def uses_tf32() -> bool:
    """Whether products may round factors of float32 to 10 bits: Paddle's flag."""
    return bool(FLAGS["FLAGS_enable_cublas_tensor_op_math"])


def usable() -> Gpu:
    """The GPU; raises CannotCompile with the reason if none can be used."""
    gpu = gpu_of(current_place().index)
    if isinstance(gpu, str):
        raise CannotCompile(gpu)
    return gpu


def device_of(array) -> Gpu | None:
    """The GPU on which an array lies, if it can run kernels of ours."""
    index = getattr(getattr(array, "device", None), "id", None)  # NumPy's is a text
    gpu = None if index is None else gpu_of(index)
    return gpu if isinstance(gpu, Gpu) else None


def decisions(program: Program) -> list[Record]:
    """The records that need a value on the host."""
    return [r for r in program.records if r.op in (cond, while_loop)]


class IndexCheck(NamedTuple):
    """The step that waits for the checks of indices, and raises IndexError."""

    executable: GpuProgram
    wrong: object

    def __call__(self) -> None:
        checks = self.executable.device.to_host(self.wrong).reshape(-1, 2).tolist()
        for place, (is_wrong, value) in zip(self.executable.kernels.places, checks, strict=True):
            if is_wrong:
                self.wrong.fill(0)
                raise_index_error(*place, value)


def raise_index_error(record: Record, places: IndexInput, value: int) -> NoReturn:
    """Raise NumPy's error for an array full of this index."""
    inputs = [x.attrs["value"] if x.op is NUMBER else zeros(x.spec) for x in record.inputs]
    inputs[places.k] = NUMPY.full_like(inputs[places.k], value)
    try:
        record.op.evaluate(NUMPY, inputs, record.attrs)
    except Exception as error:
        fail(record, error)
    raise AssertionError(f"{record.op.name}: the index {value} is in range after all")


def zeros(spec):
    """Zeros that take no memory."""
    return NUMPY.broadcast_to(NUMPY.zeros((), spec.dtype), spec.shape)


def list_addresses(call: Gemm, operands):
    """The addresses of all matrices of x, of those of y, and of those of c."""
    return NUMPY.ascontiguousarray((NUMPY.array(call.starts) + operands).T)
