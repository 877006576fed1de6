"""The beginning of each CUDA file: types, half precision, functions of C, joins of threads.

No header of the CUDA toolkit is needed: NVRTC alone compiles it.
"""

from __future__ import annotations

from functools import cache

from ...engine.codegen.kernel import BFLOAT16, read_template
from ...engine.codegen.translation_unit import FURTHER, helpers

TYPES = read_template("types.cu", __file__)
"""The types and functions that a C compiler finds in its headers."""

TENSOR_CORES = read_template("tensor_cores.cu", __file__)

HALF = read_template("half.cu", __file__)

JOINS = read_template("joins.cu", __file__)


@cache
def portable() -> str:
    """The text before the kernels, also where a CPU plays the GPU."""
    bfloat16 = BFLOAT16.replace("(bfloat16){", "bfloat16{")
    further = [complete(text) for text, complete in FURTHER]
    return "\n".join([bfloat16, HALF, helpers(), *further, JOINS])


@cache
def prologue() -> str:
    """The text before the kernels of a file."""
    return f"{TYPES}\n{TENSOR_CORES}\n{portable()}"
