"""Kernels beyond loop nests: products in tiles, convolutions, pooling, gather and scatter.

Importing this package registers them with the engine: emitters of operators (`kernel.EMITTERS`) and
of groups that begin with a product (`kernel.GROUP_EMITTERS`), functions for formulas
(`scalar.FUNCTIONS`, `translation_unit.register`), and a test for records whose indices an earlier
record has checked (`native.CHECKED`).

A room holds the kernels of one idea, with their C in its folder `templates`. The files here serve
all rooms. The order of imports is that of the registries.
"""

from functools import partial

from ..engine.codegen.kernel import EMITTERS
from ..engine.executors.native import CHECKED
from . import open_sizes
from .c_target import emit
from .convolutions import (
    convolution,
    depthwise_planes,
    integer_convolution,
    pooling,
    resampling,
)
from .functions import formulas, special
from .indices import concat_split, counting, filled_arrays, index_checks, indexing
from .linear_algebra import lapack
from .products import (
    epilogue,
    matmul,
    online_softmax,
    strip_products,
    weight_only,
)
from .random import draws, generator
from .rows import (
    argmax,
    column_nest,
    interleaved_rows,
    scans,
    short_row_nest,
    sorting,
    vector_row_nest,
)
from .target import KERNELS

EMITTERS.update((name, partial(emit, define)) for name, define in KERNELS.items())
EMITTERS["searchsorted"].mixes = True  # it compares in the wider dtype
EMITTERS.pop("matmul", None)  # one that no pass has laid out anew: NumPy's is faster than loops
CHECKED.append(index_checks.find_checked)
