"""Functions of the OpenBLAS that NumPy contains, for kernels: products, and linear algebra."""

from __future__ import annotations

import ctypes
from functools import cache, partial

from ...engine.codegen.kernel import POINTERS
from ...engine.eager.device import NUMPY
from ..machine import DOTS, facts, is_elsewhere

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


WIDTHS = {
    **dict.fromkeys(("SkylakeX", "Cooperlake", "SapphireRapids", "A64FX"), 64),
    **dict.fromkeys(("Haswell", "Zen", "Sandybridge", "Bulldozer", "Piledriver", "Excavator"), 32),
}
"""Bytes of the vectors in OpenBLAS's kernels for a processor, by its name there; 16 in others."""


@cache
def core() -> str:
    """The processor for which OpenBLAS has chosen its kernels; "" if it is not there."""
    address = library_function("scipy_openblas_get_corename64_")
    return ctypes.CFUNCTYPE(ctypes.c_char_p)(address)().decode() if address else ""


def is_wide() -> bool:
    """Whether OpenBLAS's kernels use vectors as wide as the processor's. Otherwise they reach half
    of the speed, or less, that the kernels written here have."""
    if is_elsewhere() or not core():
        return False
    return WIDTHS.get(core(), 16) >= facts().vector


def report() -> str:
    """The processor as products know it, and who computes the large ones, for `./run doctor`."""
    known, ours = facts(), "kernels written here"
    caches = ", ".join(f"{size >> 10:,}" for size in known[2:5])
    dots = "".join(f", {name}" for name in DOTS if getattr(known, name))
    without = f"{ours}; OpenBLAS has {core()}'s" if core() else f"{ours}; NumPy has no OpenBLAS"
    blas = f"OpenBLAS on one thread, with kernels for {core()}"
    return (
        f"{known.registers} vectors of {known.vector} bytes, caches of {caches} KiB{dots}; "
        f"large products by {blas if is_wide() else without}"
    )


@cache
def lapack_pointer(name: str) -> str:
    """The declaration of the pointer to a function of LAPACK with 64-bit sizes."""
    text = f"static void (*lapack_{name})();\n"
    POINTERS[text] = cache(partial(library_function, f"scipy_{name}_64_"))
    return text


POINTERS[BLAS] = cache(partial(library_function, "scipy_cblas_sgemm64_"))
