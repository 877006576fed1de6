"""Inverses, linear equations, functions of matrices, covariance.

Matrices are the last two axes; the others are a stack of them.
"""

from ..core.prelude import creation, int32, int64, reduction, require_floats, value_error
from ..engine.ops.elementwise import cast, maximum, minimum, sqrt
from ..engine.ops.linalg import matmul
from ..engine.ops.linalg import matrix_transpose as mT
from ..engine.ops.movement import reshape, stack
from ..ops import decompositions as ops
from ..ops import matrix_functions
from ..ops.arrangement import diagonal
from . import reduce
from .decompositions import lu_unpack, svdvals
from .norms import singular_values

# ---- linear equations ------------------------------------------------------------------------


def inverse(x, name=None):
    """The inverse of each square matrix; ValueError for a singular one.

    >>> paddle.inverse(paddle.to_tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    require_floats("inverse", x)
    return ops.inverse(x)


def det(x, name=None):
    """The determinant of each square matrix.

    >>> paddle.linalg.det(paddle.to_tensor([[2.0, 0.0], [0.0, 4.0]])).item()
    8.0
    """
    require_floats("det", x)
    return ops.det(x)


def slogdet(x, name=None):
    """The sign of the determinant and ln |det|, stacked in front.

    >>> paddle.linalg.slogdet(paddle.eye(3)).tolist()
    [1.0, 0.0]
    """
    require_floats("slogdet", x)
    return stack(*ops.slogdet(x), axis=0)


def solve(x, y, left=True, name=None):
    """The z with x @ z = y (or z @ x = y, if not `left`), for square x.

    y is a stack of matrices, or of vectors if it has one dimension less than x. Raises ValueError
    for a singular x.

    >>> paddle.linalg.solve(2 * paddle.eye(2), paddle.ones([2])).tolist()
    [0.5, 0.5]
    """
    require_floats("solve", x)
    if not left:
        return mT(ops.solve(mT(x), mT(y)))
    shape = y.spec.shape
    if shape != x.spec.shape[:-1]:
        return ops.solve(x, y)
    z = ops.solve(x, reshape(y, shape=(*shape, 1)))
    return reshape(z, shape=z.spec.shape[:-1])


def triangular_solve(x, y, upper=True, transpose=False, unitriangular=False, name=None):
    """`solve` for a triangular x; the other triangle is not read.

    With `transpose` xᵀ @ z = y is solved; with `unitriangular` the diagonal counts as ones.

    >>> x = paddle.to_tensor([[1.0, 1.0], [9.0, 2.0]])
    >>> paddle.linalg.triangular_solve(x, paddle.to_tensor([[3.0], [4.0]])).tolist()
    [[1.0], [2.0]]
    """
    require_floats("triangular_solve", x)
    how = {"lower": not upper, "transpose": bool(transpose), "unit": bool(unitriangular)}
    return ops.solve_triangular(x, y, **how)


def pinv(x, rcond=1e-15, hermitian=False, name=None):
    """The Moore-Penrose inverse of each matrix.

    Singular values below `rcond` times the largest count as 0.

    >>> paddle.linalg.pinv(paddle.to_tensor([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    require_floats("pinv", x)
    rcond = rcond.item() if hasattr(rcond, "item") else rcond
    return ops.pinv(x, rcond=float(rcond), hermitian=hermitian)


def lstsq(x, y, rcond=None, driver=None, name=None):
    """The z for which |x @ z - y| is least: (z, residuals, rank, singular values of x).

    The residuals are the squared lengths of what remains, where x has more rows than columns and
    the driver is not "gelsy"; the singular values come with "gelsd" and "gelss", else both are
    empty.

    >>> x, y = paddle.to_tensor([[1.0], [0.0]]), paddle.to_tensor([[2.0], [3.0]])
    >>> paddle.linalg.lstsq(x, y)[0].tolist()
    [[2.0]]
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise value_error(f"driver={driver!r}", "gels, gelsy, gelsd or gelss")
    rows, columns = x.spec.shape[-2:]
    z = matmul(pinv(x, negligible(x) if rcond is None else rcond), y)
    empty = creation.full(shape=(0,), value=0, dtype=x.spec.dtype)
    residuals = spread = empty
    if rows > columns and driver in ("gels", "gelsd", "gelss"):
        left = matmul(x, z) - y
        residuals = reduction.sum(left * left, axis=(left.spec.ndim - 2,), keepdim=False)
    if driver in ("gelsd", "gelss"):
        spread = svdvals(x)
    return z, residuals, cast(matrix_rank(x), dtype=int32.numpy), spread


def negligible(x) -> float:
    """The share of the largest singular value below which one is rounding error."""
    eps = 2.0**-23 if x.spec.dtype.itemsize <= 4 else 2.0**-52
    return eps * max(x.spec.shape[-2:])


def cholesky_solve(x, y, upper=False, name=None):
    """The z with A @ z = x, given A's Cholesky factor y.

    >>> paddle.linalg.cholesky_solve(paddle.ones([1, 1]), paddle.full([1, 1], 2.0)).item()
    0.25
    """
    lower = mT(y) if upper else y
    half = triangular_solve(lower, x, upper=False)
    return triangular_solve(lower, half, upper=False, transpose=True)


def cholesky_inverse(x, upper=False, name=None):
    """A⁻¹, given A's Cholesky factor x.

    >>> paddle.linalg.cholesky_inverse(paddle.full([1, 1], 2.0)).item()
    0.25
    """
    return cholesky_solve(ops.identity(x.spec.shape[-1], x), x, upper)


def lu_solve(b, lu, pivots, trans="N", name=None):
    """The z with A @ z = b, or Aᵀ @ z = b for trans="T", given the LU factorization of A.

    >>> factors = paddle.linalg.lu(paddle.full([1, 1], 4.0))
    >>> paddle.linalg.lu_solve(paddle.ones([1, 1]), *factors).item()
    0.25
    """
    p, lower, upper = lu_unpack(lu, pivots)
    if trans == "N":
        z = triangular_solve(lower, matmul(mT(p), b), upper=False, unitriangular=True)
        return triangular_solve(upper, z)
    z = triangular_solve(upper, b, transpose=True)
    return matmul(p, triangular_solve(lower, z, upper=False, transpose=True, unitriangular=True))


# ---- functions of matrices -------------------------------------------------------------------


def matrix_power(x, n, name=None):
    """x @ x @ … n times, of the inverse if n is negative.

    >>> paddle.linalg.matrix_power(paddle.to_tensor([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    x, n = (inverse(x), -n) if n < 0 else (x, n)
    if n == 0:
        return x * 0 + ops.identity(x.spec.shape[-1], x)
    square, out = x, None
    while n:  # out · square^n stays the result
        if n & 1:
            out = square if out is None else matmul(out, square)
        n >>= 1
        square = matmul(square, square) if n else square
    return out


def matrix_exp(x, name=None):
    """1 + x + x²/2 + x³/6 + …, with powers of matrices.

    >>> paddle.linalg.matrix_exp(paddle.zeros([2, 2])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    require_floats("matrix_exp", x)
    return matrix_functions.matrix_exp(x)


def matrix_rank(x, tol=None, hermitian=False, atol=None, rtol=None, name=None):
    """The number of singular values above the larger of `atol` and `rtol` times the largest.

    A tensor of bounds has one for each matrix. `tol` is an older name of `atol`; without any of
    them rtol is the dtype's precision times the larger dimension.

    >>> paddle.linalg.matrix_rank(paddle.ones([3, 3])).item()
    1
    """
    require_floats("matrix_rank", x)
    s = singular_values(x)
    last = (s.spec.ndim - 1,)
    atol = tol if atol is None else atol
    if atol is None and rtol is None:
        rtol = negligible(x)
    largest = reduction.max(s, axis=last, keepdim=False)
    bound = largest * (0.0 if rtol is None else rtol)
    above = (s > column(bound)) & (s > column(0.0 if atol is None else atol))
    return reduction.sum(cast(above, dtype=int64.numpy), axis=(above.spec.ndim - 1,), keepdim=False)


def column(bound):
    """A bound for each matrix beside its singular values; a number as it is."""
    shape = getattr(bound, "shape", ())
    return reshape(bound, shape=(*shape, 1)) if len(shape) else bound


def multi_dot(x, name=None):
    """The product of a list of matrices, in the cheapest order.

    The first may be a row and the last a column, given as vectors.

    >>> chain = [paddle.ones([2, 3]), paddle.ones([3, 4]), paddle.ones([4])]
    >>> paddle.linalg.multi_dot(chain).tolist()
    [12.0, 12.0]
    """
    if len(x) < 2:
        raise value_error(f"multi_dot of {len(x)} matrices", "at least two")
    first, last = x[0].spec, x[-1].spec
    sizes = [1 if first.ndim == 1 else first.shape[0], *(m.spec.shape[0] for m in x[1:])]
    sizes.append(1 if last.ndim == 1 else last.shape[-1])
    order = cheapest(sizes)

    def product(i, j):
        if i == j:
            return x[i]
        k = order[i, j]
        return matmul(product(i, k), product(k + 1, j))

    return product(0, len(x) - 1)


def cheapest(sizes) -> dict:
    """Where to split each chain of matrices i … j; matrix i is sizes[i] × sizes[i + 1].

    Source: Cormen et al., "Introduction to Algorithms", matrix-chain multiplication.
    """
    n = len(sizes) - 1
    cost, split = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


# ---- covariance ------------------------------------------------------------------------------


def cov(x, rowvar=True, ddof=True, fweights=None, aweights=None, name=None):
    """The covariances of the rows of x (of its columns, if not `rowvar`), each a variable.

    Columns are observations; `fweights` says how often each was made, `aweights` how much it
    counts. `ddof` divides by one less than their number.

    >>> paddle.linalg.cov(paddle.to_tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    require_floats("cov", x)
    if x.spec.ndim > 2:
        raise value_error(f"cov of {x.spec}", "a vector or a matrix")
    rows = reshape(x, shape=(1, x.spec.size)) if x.spec.ndim == 1 else x if rowvar else mT(x)
    n = rows.spec.shape[-1]
    weights = [w.astype(x.spec.dtype) for w in (fweights, aweights) if w is not None]
    w = weights[0] * weights[-1] if len(weights) == 2 else weights[0] if weights else None
    count = n if w is None else reduce.sum(w)
    weighted = rows if w is None else rows * w
    centered = rows - reduction.sum(weighted, axis=(1,), keepdim=True) / count
    if ddof:
        lost = 1 if aweights is None else reduce.sum(w * weights[-1]) / count
        count = count - lost
    c = matmul(centered if w is None else centered * w, mT(centered)) / count
    return reshape(c, shape=()) if c.spec.size == 1 else c


def corrcoef(x, rowvar=True, name=None):
    """The correlations of the rows of x: covariances over the product of the deviations.

    >>> paddle.linalg.corrcoef(paddle.to_tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    c = cov(x, rowvar)
    if not c.spec.ndim:
        return c / c
    deviation = sqrt(diagonal(c, offset=0, axis1=0, axis2=1))
    scaled = c / ops.broadcast_rows(deviation) / ops.broadcast_columns(deviation)
    return maximum(minimum(scaled, 1.0), -1.0)


__all__ = [
    "cholesky_inverse", "cholesky_solve", "corrcoef", "cov", "det", "inverse", "lstsq", "lu_solve",
    "matrix_exp", "matrix_power", "matrix_rank", "multi_dot", "pinv", "slogdet", "solve",
    "triangular_solve",
]  # fmt: skip
