"""Linear algebra. Source: Paddle API `paddle.linalg`."""

from .core.missing import namespace
from .tensor.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    householder_product,
    lu,
    lu_unpack,
    ormqr,
    qr,
    svd,
    svdvals,
)
from .tensor.linalg import cross, matmul, matrix_transpose, vecdot
from .tensor.matrices import (
    cholesky_inverse,
    cholesky_solve,
    corrcoef,
    cov,
    det,
    inverse,
    lstsq,
    lu_solve,
    matrix_exp,
    matrix_power,
    matrix_rank,
    multi_dot,
    pinv,
    slogdet,
    solve,
    triangular_solve,
)
from .tensor.norms import cond, matrix_norm, norm, vector_norm

inv = inverse

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "corrcoef",
    "cov",
    "cross",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "lstsq",
    "lu",
    "lu_solve",
    "lu_unpack",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "ormqr",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "triangular_solve",
    "vecdot",
    "vector_norm",
]

__getattr__ = namespace("paddle.linalg", globals())
