"""The operator suite in the CUDA executor, on a GPU that the CPU plays."""

import pytest

from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import open_sizes
from minipaddle.executors.gpu.cuda import CudaExecutable
from tests.codegen import nvrtc
from tests.codegen.cuda_on_cpu import Cpu, needs_gxx
from tests.executors.test_native_operators import chunks, program_of, unequal

pytestmark = pytest.mark.sweep(one_in=3)

PARTS = 8


@needs_gxx
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("again", [False, True])
def test_operators(part, again):
    """Each case in float32, and in one of two other types: one kernel's text is that of another but
    for the type."""
    dtype = ("float64", "bfloat16")[part % 2] if again else "float32"
    cases = [c for j, chunk in enumerate(chunks(dtype)) if j % PARTS == part for c in chunk]
    closed = [c for c in cases if not open_sizes(program_of([c], dtype)[0])]
    program, arrays, owners = program_of(closed, dtype)
    quietly = QUIET.copy().run
    wanted = quietly(Run(NUMPY), program, [a.copy() for a in arrays])
    made = CudaExecutable(program, device=Cpu())
    found = quietly(made, program, [a.copy() for a in arrays])
    assert not unequal(owners, wanted, found, dtype)
    if dtype == "float32" and nvrtc.library() is not None:
        assert not nvrtc.compile_error(made.kernels.text, 90)
