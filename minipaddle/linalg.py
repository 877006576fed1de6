"""Linear algebra. Source: Paddle API `paddle.linalg`."""

from .core.missing import namespace
from .tensor import decompositions, matrices
from .tensor.arranging import diagonal
from .tensor.decompositions import *  # noqa: F403
from .tensor.linalg import cross, matmul, matrix_transpose, vecdot
from .tensor.matrices import *  # noqa: F403
from .tensor.matrices import inverse as inv
from .tensor.norms import cond, matrix_norm, norm, vector_norm

__all__ = [
    *decompositions.__all__,
    *matrices.__all__,
    "cond",
    "cross",
    "diagonal",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_transpose",
    "norm",
    "vecdot",
    "vector_norm",
]

__getattr__ = namespace("paddle.linalg", globals())
