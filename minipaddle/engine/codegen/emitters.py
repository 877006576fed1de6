"""The registry of emitters, filled: who reads `EMITTERS` from here has them all."""

from ...codegen import convolution, generator, indexing, joining, matmul, pooling
from .kernel import EMITTERS, Kernel

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
