"""What steps launch, counted without a GPU: kernels are neither compiled nor run.

python -m tests.gpu.count gpt-384 resnet-18 mlp     names of `worker.LARGE` or of WORKLOADS
"""

from __future__ import annotations

import sys

import pytest

import minipaddle as paddle
from minipaddle.codegen.cuda.calls import Clear, Gemm, Launch
from minipaddle.executors.gpu.cuda import CudaExecutable
from tests.benchmarks.workloads import WORKLOADS
from tests.benchmarks.workloads.workload import Workload
from tests.codegen.cuda_on_cpu import Cpu
from tests.gpu.fake_cupy import KERNELS
from tests.gpu.worker import LARGE, build, gpu_or_stand_in

HEAD = "step", "kernels", "products", "clears", "copies of inputs and results", "eager kernels"


def count_captured(workload: Workload) -> list[int]:
    """Kernels, products, clears, and copies of inputs and results of a captured step."""
    step, statics = build(paddle, workload, "float32", "captured")
    step()
    (made,) = statics[0].concrete_program.executables.compiled.values()
    assert isinstance(made, CudaExecutable)
    calls = [type(call) for _, call in made.kernels.calls()]
    ends = sum(map(len, made.ends.values()))
    return [*map(calls.count, (Launch, Gemm, Clear)), ends - len(made.slots)]


def count_eager(workload: Workload) -> int:
    """The kernels of the third step in eager mode: ours, and those of array operations."""
    step, _ = build(paddle, workload, "float32", "eager")
    for _ in range(3):
        KERNELS.clear()
        step()
    return KERNELS.total()


def main(*names: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cpu, "compile", lambda self, text, names: dict.fromkeys(names))
        patch.setattr(Cpu, "launch", lambda self, *call: None)
        patch.setattr(Cpu, "gemm", lambda self, *call: None)
        print("|", " | ".join(HEAD), "|")
        for name in names:
            with gpu_or_stand_in():
                workload = (LARGE | WORKLOADS)[name]
                row = [*count_captured(workload), count_eager(workload)]
            print("|", " | ".join([workload.title, *map("{:,}".format, row)]), "|", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
