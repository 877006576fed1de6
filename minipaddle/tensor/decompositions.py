"""Factorizations of matrices: the last two axes; the others are a stack of them."""

from ..core.prelude import creation, int32, require_floats, require_one_of, value_error
from ..engine.ops.linalg import matmul
from ..engine.ops.linalg import matrix_transpose as mT
from ..ops import decompositions as ops
from ..ops.arrangement import eye, tril, triu
from .norms import singular_values


def cholesky(x, upper=False, name=None):
    """The triangular L with L @ Lᵀ = x (or Lᵀ @ L, if `upper`) of positive definite matrices.

    Raises ValueError if one is not.

    >>> paddle.linalg.cholesky(paddle.to_tensor([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    require_floats("cholesky", x)
    return mT(ops.cholesky(mT(x))) if upper else ops.cholesky(x)


def lu(x, pivot=True, get_infos=False, name=None):
    """Gaussian elimination: L and U in one matrix, and with which row (from 1) each was exchanged.

    With `get_infos` a zero for each matrix comes third.

    >>> packed, pivots = paddle.linalg.lu(paddle.to_tensor([[1.0, 2.0], [2.0, 6.0]]))
    >>> packed.tolist(), pivots.tolist()
    ([[2.0, 6.0], [0.5, -1.0]], [2, 2])
    """
    require_floats("lu", x)
    if not pivot:
        raise value_error("lu(pivot=False) is not supported", hint="leave pivot out")
    packed, pivots = ops.lu(x)
    infos = creation.full(shape=x.spec.shape[:-2], value=0, dtype=int32.numpy)
    return (packed, pivots, infos) if get_infos else (packed, pivots)


def lu_unpack(x, y, unpack_ludata=True, unpack_pivots=True, name=None):
    """P, L and U with P @ L @ U the matrix that `lu` made x and y of; None for the parts that are
    not requested.

    >>> p, l, u = paddle.linalg.lu_unpack(*paddle.linalg.lu(paddle.to_tensor([[0.0, 2], [2, 0]])))
    >>> p.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]])
    """
    p = lower = upper = None
    rows, columns = x.spec.shape[-2:]
    if unpack_pivots:
        p = ops.permutation(y, size=rows, dtype=x.spec.dtype)
    if unpack_ludata:
        k = min(rows, columns)
        lower, upper = ops.lower_of(x), triu(ops.block(x, (0, k), (0, columns)), diagonal=0)
    return p, lower, upper


def qr(x, mode="reduced", name=None):
    """q with orthonormal columns and upper triangular r with q @ r = x; r alone in mode "r".

    "complete" fills q up to a square matrix.

    >>> q, r = paddle.linalg.qr(paddle.ones([3, 2]))
    >>> q.shape, r.shape
    ([3, 2], [2, 2])
    """
    require_floats("qr", x)
    require_one_of("qr", ("reduced", "complete", "r"), mode=mode)
    q, r = ops.qr(x, mode="reduced" if mode == "r" else mode)
    return r if mode == "r" else (q, r)


def svd(x, full_matrices=False, name=None):
    """u, s and vᵀ with u @ diag(s) @ vᵀ = x, the singular values s falling.

    Gradients reach x from u and v where the singular values differ.

    >>> u, s, vh = paddle.linalg.svd(paddle.to_tensor([[3.0, 0.0], [0.0, 2.0]]))
    >>> s.tolist()
    [3.0, 2.0]
    """
    require_floats("svd", x)
    return ops.svd(x, full_matrices=full_matrices)


def svdvals(x, name=None):
    """The singular values, falling.

    >>> paddle.linalg.svdvals(paddle.to_tensor([[3.0, 0.0], [0.0, 2.0]])).tolist()
    [3.0, 2.0]
    """
    require_floats("svdvals", x)
    return singular_values(x)


def eigh(x, UPLO="L", name=None):
    """Eigenvalues (rising) and eigenvectors of symmetric matrices; one triangle is read.

    >>> w, v = paddle.linalg.eigh(paddle.to_tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [1.0, 2.0]
    """
    require_floats("eigh", x)
    if UPLO not in ("L", "U"):
        raise value_error(f"UPLO={UPLO!r}", "'L' or 'U', the triangle to read")
    return ops.eigh(x, lower=UPLO == "L")


def eigvalsh(x, UPLO="L", name=None):
    """The eigenvalues of symmetric matrices, rising.

    >>> paddle.linalg.eigvalsh(paddle.to_tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return eigh(x, UPLO)[0]


def eig(x, name=None):
    """Eigenvalues and eigenvectors of square matrices; ValueError where they are not real.

    Paddle's are always complex; here they are real.

    >>> paddle.linalg.eig(paddle.to_tensor([[2.0, 1.0], [0.0, 1.0]]))[0].tolist()
    [2.0, 1.0]
    """
    require_floats("eig", x)
    return ops.eig(x)


def eigvals(x, name=None):
    """The eigenvalues of square matrices; ValueError where they are not real.

    >>> paddle.linalg.eigvals(paddle.to_tensor([[2.0, 1.0], [0.0, 1.0]])).tolist()
    [2.0, 1.0]
    """
    return eig(x)[0]


def householder_product(x, tau, name=None):
    """The product of the reflections 1 - tau[i]·v vᵀ, v the column i of x with v[i] = 1, v[:i] = 0.

    Its first columns, as many as x has.

    >>> x, tau = paddle.to_tensor([[1.0], [1.0]]), paddle.to_tensor([1.0])
    >>> paddle.linalg.householder_product(x, tau).tolist()
    [[0.0], [-1.0]]
    """
    require_floats("householder_product", x)
    rows, columns = x.spec.shape[-2:]
    return apply_reflections(x, tau, eye(rows=rows, columns=columns, dtype=x.spec.dtype))


def apply_reflections(x, tau, y):
    """The product of the reflections of `householder_product`, times y."""
    rows, columns = x.spec.shape[-2:]
    ones = eye(rows=rows, columns=columns, dtype=x.spec.dtype)
    vectors = tril(x, diagonal=-1) + ones
    for i in reversed(range(tau.spec.shape[-1])):
        v = ops.block(vectors, (0, rows), (i, i + 1))
        factor = ops.block(ops.broadcast_columns(tau), (0, 1), (i, i + 1))
        y = y - factor * matmul(v, matmul(mT(v), y))
    return y


def ormqr(x, tau, y, left=True, transpose=False, name=None):
    """Q @ y for the square Q of `householder_product`; Qᵀ @ y, y @ Q, y @ Qᵀ by the two switches.

    >>> x, tau = paddle.to_tensor([[1.0], [1.0]]), paddle.to_tensor([1.0])
    >>> paddle.linalg.ormqr(x, tau, paddle.eye(2)).tolist()
    [[0.0, -1.0], [-1.0, 0.0]]
    """
    rows = x.spec.shape[-2]
    q = apply_reflections(x, tau, ops.identity(rows, x))
    q = mT(q) if transpose else q
    return matmul(q, y) if left else matmul(y, q)


__all__ = [
    "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "lu", "lu_unpack",
    "ormqr", "qr", "svd", "svdvals",
]  # fmt: skip
