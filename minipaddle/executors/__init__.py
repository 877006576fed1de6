"""Executors beyond the native one. Importing this registers them with the engine: CUDA for programs
on a GPU, NumPy in blocks where there is no C compiler, values computed from weights in advance,
what `paddle.tune` chose for kernels, C files in parts, a cache that trusts nobody else, and the
backend "auto", which compiles in the background.
"""

from ..engine.executors.executable_cache import BUILDERS
from ..engine.executors.native import SPLIT, TUNED
from .gpu import cuda
from .hot import background, eager_kernels, tapes
from .interpreted import executable as interpreted
from .native import compilers, folded_weights, objects, ownership, trials

BUILDERS["gpu"] = cuda.CudaExecutable
BUILDERS["no compiler"] = interpreted.Interpreted
TUNED[trials.CHOSEN] = trials.read_choices
SPLIT.append(objects.objects_of)

__all__ = [
    "background",
    "compilers",
    "cuda",
    "eager_kernels",
    "folded_weights",
    "interpreted",
    "objects",
    "ownership",
    "tapes",
    "trials",
]
