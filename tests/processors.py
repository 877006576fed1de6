"""The processors that tests run as on: `./run test --processor x86-64-v3` repeats the suite as a
machine of that level would. Programs are compiled for it, and the libraries that look at the
processor when they start are asked for no more than it has.

`python -m tests.processors x86-64-v3` prints the environment variables that do this, one a line, or
says which instructions are missing here; those that the user has set stay as they are.
"""

import os
import sys
from contextlib import suppress
from functools import cache

from numpy._core._multiarray_umath import __cpu_dispatch__

from minipaddle.codegen.machine import find_missing
from minipaddle.engine.executors.compiler import compiler

LIBRARIES = {
    "x86-64-v2": {
        "OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA",
    },
    "x86-64-v3": {
        "OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "x86-64-v4": {
        "OPENBLAS_CORETYPE": "SkylakeX", "ATEN_CPU_CAPABILITY": "avx512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    },
}  # fmt: skip
"""What OpenBLAS, PyTorch with its libraries, and glibc read when they start, for each level of x86:
SSE4.2, which NumPy needs, AVX2, AVX-512."""


def settings(level: str) -> dict[str, str]:
    """The environment variables with which programs run as on a processor of a level."""
    has = {name.upper().replace("-64-", "_") for name in LIBRARIES if name <= level}  # X86_V3, …
    without = ",".join(name for name in __cpu_dispatch__ if name not in has)
    ours = {"MINIPADDLE_PROCESSOR": level, "NPY_DISABLE_CPU_FEATURES": without}
    return {**ours, **LIBRARIES[level]}


def variables(level: str) -> dict[str, str]:
    """`settings`, with what the user has set for a library; `native` is this processor. Raises
    ValueError if there is no such level, or if this processor lacks some of its instructions.
    """
    if level == "native":
        return {"MINIPADDLE_PROCESSOR": level}
    if level not in LIBRARIES:
        raise ValueError(f"there is no {level!r}; expected: native, {', '.join(LIBRARIES)}.")
    cc = compiler()
    if cc is None:
        raise ValueError(f"without a C compiler nothing is compiled for {level}.")
    lacks = find_missing(cc, level)
    if lacks:
        raise ValueError(
            f"{level} needs {', '.join(lacks)}; this processor lacks them.\n"
            f"It can run {', '.join(processors())}."
        )
    ours = settings(level)
    own = {name: os.environ[name] for name in ours if name in os.environ}
    return ours | own | {"MINIPADDLE_PROCESSOR": level}


@cache
def processors() -> list[str]:
    """The names of all that the processor of the tests can run, itself included; none without a
    compiler.
    """
    cc, found = compiler(), []
    for name in ("x86-64", *LIBRARIES, "native") if cc else ():
        with suppress(ValueError):  # the compiler's processors have other names
            if not find_missing(cc, name, cc.processor):
                found.append(name)
    return found


if __name__ == "__main__":
    try:
        found = variables("".join(sys.argv[1:]))
    except ValueError as why:
        sys.exit("./run test --processor: " + str(why).replace("\n", "\n       "))
    print(*(f"{name}={value}" for name, value in found.items()), sep="\n")
