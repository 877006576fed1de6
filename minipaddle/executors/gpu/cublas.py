"""Matrix products by direct calls of cuBLAS: CuPy's calls cannot be captured in a graph."""

from __future__ import annotations

import ctypes
import importlib

from ...codegen.cuda.calls import Gemm

SINGLE, DOUBLE, TF32 = 68, 70, 77
"""CUBLAS_COMPUTE_32F, _64F and _32F_FAST_TF32: the precision of sums, and of factors."""

TYPES = {
    "float32": (0, SINGLE, ctypes.c_float),
    "float64": (1, DOUBLE, ctypes.c_double),
    "float16": (2, SINGLE, ctypes.c_float),
    "bfloat16": (14, SINGLE, ctypes.c_float),
}
"""dtype -> cudaDataType of a matrix, the type of its sums, that of the factors."""

DEFAULT_ALGORITHM = -1


def library() -> ctypes.CDLL:
    """The cuBLAS library that CuPy uses; raises OSError if there is none."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path)
    except (ImportError, RuntimeError) as error:
        for name in ("libcublas.so.13", "libcublas.so.12", "libcublas.so"):
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
        raise OSError(str(error)) from error


class Cublas:
    """A handle of cuBLAS on one stream, with a workspace."""

    def __init__(self, stream: int, workspace: int, nbytes: int):
        self.library, self.handle = library(), ctypes.c_void_p()
        self.check("cublasCreate_v2", ctypes.byref(self.handle))
        self.check("cublasSetStream_v2", self.handle, ctypes.c_void_p(stream))
        room = ctypes.c_void_p(workspace), ctypes.c_size_t(nbytes)
        self.check("cublasSetWorkspace_v2", self.handle, *room)

    def check(self, name: str, *args) -> None:
        """Call a function; raises RuntimeError if its status is an error."""
        if status := getattr(self.library, name)(*args):
            raise RuntimeError(f"{name} answered {status}")

    def gemm(self, call: Gemm, x: int, y: int, c: int) -> None:
        """Compute one `Gemm` on matrices at these addresses; with `starts`, there is the address of
        each matrix.

        cuBLAS is column-major: for it a row-major matrix is transposed. So it computes cᵀ = yᵀ ·
        xᵀ.
        """
        kind, compute, Factor = TYPES[call.dtype.name]
        result, _, _ = TYPES[call.result.name]
        compute = TF32 if call.tf32 and call.dtype.name == "float32" else compute
        one, zero = Factor(1), Factor(0)

        def matrix(m, address, kind=kind):
            step = () if call.starts else (ctypes.c_longlong(m.step),)
            return (ctypes.c_void_p(address), kind, m.pitch, *step)

        self.check(
            f"cublasGemm{'' if call.starts else 'Strided'}BatchedEx", self.handle,
            int(call.y.turned), int(call.x.turned), call.n, call.m, call.k, ctypes.byref(one),
            *matrix(call.y, y), *matrix(call.x, x), ctypes.byref(zero),
            *matrix(call.c, c, result), call.count, compute, DEFAULT_ALGORITHM,
        )  # fmt: skip
