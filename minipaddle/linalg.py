"""Linear algebra. Source: Paddle API `paddle.linalg`."""

from .tensor.arranging import diagonal
from .tensor.decompositions import *
from .tensor.linalg import cross, matmul, matrix_transpose, vecdot
from .tensor.matrices import *
from .tensor.matrices import inverse as inv
from .tensor.norms import cond, matrix_norm, norm, vector_norm
