"""The registry of emitters, filled: who reads `EMITTERS` from here has them all."""

from functools import partial

from ...codegen import convolution, generator, indexing, joining, matmul, pooling
from ...codegen.c_target import emit
from ...codegen.target import KERNELS
from .kernel import EMITTERS, Kernel

EMITTERS.update((name, partial(emit, define)) for name, define in KERNELS.items())

__all__ = [
    "EMITTERS",
    "Kernel",
    "convolution",
    "generator",
    "indexing",
    "joining",
    "matmul",
    "pooling",
]
