"""Norms and distances."""

from math import inf

from ..core.axes import axis_of, no_out
from ..core.checks import require_floats
from ..core.prelude import abs, as_operator, current, normalize_axes, reduction, sign, value_error
from ..engine.ops.gather import take
from ..engine.ops.movement import reshape, transpose
from ..ops import decompositions
from ..ops.norm import distances, p_norm

__all__ = ["cdist", "cond", "dist", "matrix_norm", "norm", "pdist", "vector_norm"]


def norm(x, p=None, axis=None, keepdim=False, out=None, dtype=None, name=None):
    """The p-norm of vectors along one axis (or of all elements), of matrices along a pair.

    Vectors: any number p, ±inf; "fro" and None are 2. Matrices: "fro", "nuc" (the sum of the
    singular values), ±1, ±2, ±inf.

    >>> paddle.norm(paddle.to_tensor([3.0, 4.0])).item()
    5.0
    """
    if out is not None:
        raise no_out()
    x = x if dtype is None else x.astype(dtype)
    pair = isinstance(axis, list | tuple) and len(axis) == 2
    if p == "nuc" and axis is None:
        axis, pair = (-2, -1), True
    if pair:
        return matrix_norm(x, "fro" if p is None else p, axis, keepdim)
    return vector_norm(x, 2 if p in (None, "fro") else p, axis, keepdim)


def vector_norm(x, p=2.0, axis=None, keepdim=False, name=None, *, dtype=None):
    """(Σ |x|^p)^(1/p) over `axis` (None: all); p = 0 counts, ±inf is the largest or smallest |x|.

    >>> paddle.linalg.vector_norm(paddle.to_tensor([[3.0, -4.0]]), 1, axis=1).tolist()
    [7.0]
    """
    if isinstance(p, str):
        raise value_error(f"the vector norm p={p!r}", "a number, inf or -inf")
    x = x if dtype is None else x.astype(dtype)
    require_floats("norm", x)
    axes = normalize_axes(axis, x.spec.ndim)
    if p in (inf, -inf):
        op = reduction.max if p > 0 else reduction.min
        return op(abs(x), axis=axes, keepdim=keepdim)
    if p in (0, 1):
        parts = abs(x if p else sign(x))
        return reduction.sum(parts, axis=axes, keepdim=keepdim)
    return p_norm(x, p=float(p), axis=axes, keepdim=keepdim)


def matrix_norm(x, p="fro", axis=[-2, -1], keepdim=False, name=None):  # noqa: B006
    """A norm of each matrix: "fro", "nuc", ±1 (columns), ±inf (rows), ±2 (singular values).

    >>> paddle.linalg.matrix_norm(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]), 1).item()
    6.0
    """
    require_floats("norm", x)
    rows, columns = (axis_of(a, x.spec.ndim) for a in axis)
    if p == "fro":
        return p_norm(x, p=2.0, axis=normalize_axes(list(axis), x.spec.ndim), keepdim=keepdim)
    extreme = reduction.max if p in (1, 2, inf) else reduction.min
    if p in (1, -1, inf, -inf):
        inner, outer = (rows, columns) if p in (1, -1) else (columns, rows)
        total = reduction.sum(abs(x), axis=(inner,), keepdim=True)
        norm = extreme(total, axis=(outer,), keepdim=True)
    elif p in ("nuc", 2, -2):
        s = singular_values(x, rows, columns)
        op = reduction.sum if p == "nuc" else extreme
        norm = op(s, axis=(s.spec.ndim - 1,), keepdim=False)
    else:
        raise value_error(f"the matrix norm p={p!r}", "'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    kept = reduction.spec_of_reduction(x.spec, axis=(rows, columns), keepdim=keepdim)
    return reshape(norm, shape=kept.shape)


def singular_values(x, rows: int = -2, columns: int = -1):
    """The singular values of the matrices along two axes."""
    n = x.spec.ndim
    rows, columns = rows % n, columns % n
    if (rows, columns) != (n - 2, n - 1):
        others = [d for d in range(n) if d not in (rows, columns)]
        x = transpose(x, perm=(*others, rows, columns))
    return decompositions.svd(x, full_matrices=False)[1]


def cond(x, p=None, name=None):
    """The condition number ‖x‖ · ‖x⁻¹‖ of each matrix, in the norm p (None: 2).

    >>> paddle.linalg.cond(paddle.to_tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    require_floats("cond", x)
    if p in (None, 2, -2):
        s = singular_values(x)
        last = (s.spec.ndim - 1,)
        most, least = (op(s, axis=last, keepdim=False) for op in (reduction.max, reduction.min))
        return least / most if p == -2 else most / least
    return matrix_norm(x, p) * matrix_norm(decompositions.inverse(x), p)


@as_operator("dist")
def dist(x, y, p=2, name=None):
    """The p-norm of x - y, over all elements.

    >>> paddle.dist(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([4.0, 6.0])).item()
    5.0
    """
    return vector_norm(x - y, p)


def cdist(x, y, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary", name=None):
    """The p-norm of the difference of each row of x and each row of y.

    Source: Paddle API `paddle.cdist` (`compute_mode` chooses how, and is of no effect here).

    >>> paddle.cdist(paddle.zeros([1, 2]), paddle.to_tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    require_floats("cdist", x)
    if p == 2:
        return distances(x, y)
    (*a, m, n), (*b, k, _) = x.spec.shape, y.spec.shape
    rows = reshape(x, shape=(*a, m, 1, n)) - reshape(y, shape=(*b, 1, k, n))
    return vector_norm(rows, p, axis=-1)


def pdist(x, p=2.0, name=None):
    """The p-norm of the difference of each row and each later one: 0 and 1, 0 and 2, … 1 and 2, …

    >>> paddle.pdist(paddle.to_tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])).tolist()[:2]
    [5.0, 1.0]
    """
    n = x.spec.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, second = ([pair[k] for pair in pairs] for k in (0, 1))
    rows, others = (take(x, current.top.constant(i, "int64"), axis=0) for i in (first, second))
    return vector_norm(rows - others, p, axis=-1)
