"""Kernels beyond loop nests: products in tiles, convolutions, pooling, gather and scatter.

Importing this package registers them with the engine: emitters of operators (`kernel.EMITTERS`) and
of groups that begin with a product (`kernel.GROUP_EMITTERS`), functions for formulas
(`scalar.FUNCTIONS`, `translation_unit.register`), and a test for records whose indices an earlier
record has checked (`native.CHECKED`).
"""

from functools import partial

from ..engine.codegen.kernel import EMITTERS
from ..engine.executors.native import CHECKED
from . import (
    columns,
    concat_split,
    convolution,
    counting,
    depthwise,
    drawing,
    epilogue,
    extremes,
    fills,
    generator,
    index_checks,
    indexing,
    integer_convolution,
    integer_products,
    interleaved,
    lapack,
    matmul,
    online_softmax,
    pooling,
    resampling,
    scans,
    short_rows,
    sorting,
    special,
    strip_products,
    vector_rows,
    weight_only,
)
from .c_target import emit
from .target import KERNELS

EMITTERS.update((name, partial(emit, define)) for name, define in KERNELS.items())
EMITTERS["searchsorted"].mixes = True  # it compares in the wider dtype
EMITTERS.pop("matmul", None)  # one that no pass has laid out anew: NumPy's is faster than loops
CHECKED.append(index_checks.checked)

__all__ = [
    "columns",
    "concat_split",
    "convolution",
    "counting",
    "depthwise",
    "drawing",
    "epilogue",
    "extremes",
    "fills",
    "generator",
    "index_checks",
    "indexing",
    "integer_convolution",
    "integer_products",
    "interleaved",
    "lapack",
    "matmul",
    "online_softmax",
    "pooling",
    "resampling",
    "scans",
    "short_rows",
    "sorting",
    "special",
    "strip_products",
    "vector_rows",
    "weight_only",
]
