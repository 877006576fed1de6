"""A GPU emulated by the CPU: kernels through g++ and a small header, cuBLAS by NumPy.

It is what `executors.cuda` needs of a device, so everything but the chip itself is tested.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import re
import shutil
import subprocess
import tempfile
from contextlib import nullcontext
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import pytest

from minipaddle.codegen.cuda.prologue import portable, prologue
from minipaddle.engine.eager.device import NUMPY
from tests.codegen.compiling import HERE

HEADER = (Path(__file__).parent / "cuda_on_cpu.h").read_text()
FLAGS = ("-O0", f"-march={HERE}", "-shared", "-fPIC", "-w", "-std=c++17", "-U_FORTIFY_SOURCE")


def can_emulate_gpu() -> bool:
    """Can this machine emulate a GPU?"""
    return shutil.which("g++") is not None and platform.machine() in ("x86_64", "AMD64")


needs_gxx = pytest.mark.skipif(not can_emulate_gpu(), reason="needs g++ on x86-64")
WAITS = re.compile("over_|Tiles::multiply|convolve<|__syncthreads|__shfl")
KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\((.*?)\)\n')


class Cpu:
    """What `executors.gpu.Gpu` is, on NumPy's arrays. `calls` counts what was asked for."""

    module = NUMPY

    def __init__(self):
        self.calls: list[str] = []

    def working(self):
        return nullcontext()

    def empty(self, size: int, dtype):
        """Memory that holds nothing sensible."""
        memory = np.empty(size, dtype)
        memory.view("uint8")[...] = 0xCB
        return memory

    def to_device(self, array):
        return np.asarray(array)

    def as_input(self, array, spec):
        if array.dtype == spec.dtype and array.flags.c_contiguous:
            return array.copy() if array.ctypes.data % 16 else array
        return np.ascontiguousarray(array, spec.dtype).reshape(spec.shape)

    def write(self, array, values) -> None:
        array[...] = values

    @staticmethod
    def address(array) -> int:
        return array.ctypes.data

    @staticmethod
    def to_host(array):
        return array.copy()

    def compile(self, text: str, names) -> dict:
        library = built(text.removeprefix(prologue())) if names else None
        return {name: getattr(library, f"run_{name}") for name in names}

    def launch(self, function, blocks, threads, addresses) -> None:
        self.calls.append("launch")
        assert 0 < blocks[0] < 2**31
        assert 0 < blocks[1] < 2**16
        assert 0 < prod(threads) <= 1024
        function(*blocks, *threads, (ctypes.c_void_p * len(addresses))(*addresses))

    def gemm(self, call, x: int, y: int, c: int) -> None:
        self.calls.append("gemm")
        if call.starts:
            tables = [(ctypes.c_int64 * call.count).from_address(table) for table in (x, y, c)]
            for at in zip(*tables, strict=True):
                multiply(call._replace(count=1), *at)
        else:
            multiply(call, x, y, c)

    def clear(self, address: int, nbytes: int) -> None:
        ctypes.memset(address, 0, nbytes)

    def copy(self, to: int, source: int, nbytes: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def record_graph(self, steps):
        """As on a GPU nothing is done while it is captured, and no new step comes in later."""
        self.calls.append("captured")
        steps = tuple(steps)
        return lambda: [self.calls.append("graph"), *(step() for step in steps)]


def multiply(call, x: int, y: int, c: int) -> None:
    """Compute a `Gemm` on matrices at these addresses."""
    assert min(call.m, call.n, call.k, call.count) > 0
    assert call.x.pitch >= (call.m if call.x.turned else call.k)
    assert call.y.pitch >= (call.k if call.y.turned else call.n)
    assert call.c.pitch >= call.n
    a = matrices(call.x, x, call.m, call.k, call.count, call.dtype)
    b = matrices(call.y, y, call.k, call.n, call.count, call.dtype)
    out = matrices(call.c, c, call.m, call.n, call.count, call.result)
    out[...] = np.matmul(widened(a), widened(b))


def matrices(matrix, address: int, rows: int, columns: int, count: int, dtype):
    """The array of matrices [count, rows, columns] that lies at an address."""
    size, lines = dtype.itemsize, columns if matrix.turned else rows
    reach = (count - 1) * matrix.step + (lines - 1) * matrix.pitch
    reach += rows if matrix.turned else columns
    memory = (ctypes.c_char * (reach * size)).from_address(address)
    steps = (1, matrix.pitch) if matrix.turned else (matrix.pitch, 1)
    flat = np.frombuffer(memory, dtype)
    strides = [s * size for s in (matrix.step, *steps)]
    return np.lib.stride_tricks.as_strided(flat, (count, rows, columns), strides)


def widened(a):
    return a.astype("float32") if a.dtype.itemsize == 2 else a


@cache
def built(text: str) -> ctypes.CDLL:
    """The shared object of the kernels of a file; each has a function that runs its grid."""
    runs = []
    for name, parameters in KERNEL.findall(text):
        types = [p.rpartition("*")[0] + "*" for p in parameters.split(", ")]
        args = ", ".join(f"({t})given[{k}]" for k, t in enumerate(types))
        start = text.index(f" {name}(")
        own = text[start : text.find('extern "C"', start)]
        waits = (
            "true"
            if re.search("over_|Tiles::multiply|convolve<|__syncthreads|__shfl", own)
            else "false"
        )
        runs.append(
            f'extern "C" void run_{name}(unsigned x, unsigned y, unsigned tx, unsigned ty, '
            f"void **p)\n{{\n    given = p;\n    run_grid([] {{ {name}({args}); }}, {waits}, "
            "x, y, tx, ty);\n}\n"
        )
    whole = "\n".join([HEADER, portable(), text, "static void **given;", *runs])
    folder = Path(tempfile.gettempdir()) / "minipaddle-cuda-on-cpu"
    folder.mkdir(exist_ok=True)
    key = hashlib.sha256(repr((whole, FLAGS)).encode()).hexdigest()[:20]
    library = folder / f"{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, part = Path(work) / "k.cpp", Path(work) / "k.so"
            source.write_text(whole)
            subprocess.run(["g++", *FLAGS, str(source), "-o", str(part)], check=True)
            part.rename(library)
    return ctypes.CDLL(str(library))
