"""Kernels beyond loop nests: products in tiles, convolutions, pooling, gather and scatter.

Importing this registers them with the engine: emitters of operators (`kernel.EMITTERS`), of groups
that begin with a product (`kernel.GROUP_EMITTERS`), functions of C's that formulas call
(`c_helpers.register`), and which records have their indices checked by an earlier one.
"""

from functools import partial

from ..engine.codegen.kernel import EMITTERS
from ..engine.executors.native import CHECKED
from . import (
    chain,
    convolution,
    epilogue,
    generator,
    indexing,
    joining,
    matmul,
    places,
    pooling,
    special,
)
from .c_target import emit
from .target import KERNELS

EMITTERS.update((name, partial(emit, define)) for name, define in KERNELS.items())
CHECKED.append(places.checked)

__all__ = [
    "chain",
    "convolution",
    "epilogue",
    "generator",
    "indexing",
    "joining",
    "matmul",
    "places",
    "pooling",
    "special",
]
