"""Functions of the OpenBLAS that NumPy contains, for kernels: products, and linear algebra."""

from __future__ import annotations

import ctypes
from functools import cache, partial

from ..engine.codegen.kernel import POINTERS
from ..engine.eager.device import NUMPY

BLAS = """\
static void (*blas_sgemm)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                          const float *, int64_t, float, float *, int64_t);
"""
"""The pointer to `cblas_sgemm` with 64-bit sizes. If it is null, kernels use their own loops."""


def library_function(name: str) -> int | None:
    """The address of a function; None if NumPy has no OpenBLAS of its own, or another one."""
    try:
        library = ctypes.CDLL(NUMPY._core._multiarray_umath.__file__)
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


@cache
def lapack_pointer(name: str) -> str:
    """The declaration of the pointer to a function of LAPACK with 64-bit sizes."""
    text = f"static void (*lapack_{name})();\n"
    POINTERS[text] = cache(partial(library_function, f"scipy_{name}_64_"))
    return text


POINTERS[BLAS] = cache(partial(library_function, "scipy_cblas_sgemm64_"))
