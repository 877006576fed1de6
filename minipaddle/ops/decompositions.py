"""Inverses, determinants, factorizations of matrices (the last two axes) and their derivatives.

Unless said otherwise a rule is from Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008). ᵀ is `mT`, ḡ the cotangent.
"""

from functools import partial

from ..engine.core.dim import smaller
from ..engine.core.dtype import int32
from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.core.spec import broadcast_shapes
from ..engine.ops.elementwise import reciprocal, where
from ..engine.ops.linalg import matmul
from ..engine.ops.linalg import matrix_transpose as mT
from ..engine.ops.movement import concat, reshape, slice_
from ..engine.ops.reduction import sum
from .arrangement import eye, tril, triu

# ---- pieces of the formulas ------------------------------------------------------------------


def broadcast_columns(v):
    """A vector for each matrix, to multiply column j by v[j]."""
    return reshape(v, shape=(*v.spec.shape[:-1], 1, v.spec.shape[-1]))


def broadcast_rows(v):
    """A vector for each matrix, to multiply row i by v[i]."""
    return reshape(v, shape=(*v.spec.shape, 1))


def identity(n: int, like):
    """The identity matrix in the dtype of `like`."""
    return eye(rows=n, columns=n, dtype=like.spec.dtype)


def block(x, rows, columns):
    """A block of each matrix; rows and columns are pairs (start, stop)."""
    whole = ((None, None, None),) * (x.spec.ndim - 2)
    return slice_(x, index=(*whole, (*rows, 1), (*columns, 1)))


def one_over_differences(v):
    """F with F[i, j] = 1 / (v[j] - v[i]), and 0 where the two are equal (on the diagonal)."""
    difference = broadcast_columns(v) - broadcast_rows(v)
    same = difference == 0
    return where(same, 0.0, reciprocal(where(same, 1.0, difference)))


def require_square(x) -> Spec:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{x} holds no square matrices: its last two dimensions must be equal")
    return x


def require_matrix(x) -> Spec:
    if x.ndim < 2:
        raise ValueError(f"{x} holds no matrices: it needs at least two dimensions")
    return x


# ---- inverses and determinants ---------------------------------------------------------------


@opaque
def inverse(m, x):
    """The inverse of each square matrix."""
    return m.linalg.inv(x)


inverse.shape(require_square)
inverse.vjp(lambda g, out: -matmul(matmul(mT(out), g), mT(out)))


@opaque
def det(m, x):
    """The determinant of each square matrix."""
    return m.asarray(m.linalg.det(x))


det.shape(lambda x: Spec(require_square(x).shape[:-2], x.dtype))
det.vjp(lambda g, out, x: broadcast_rows(broadcast_rows(g * out)) * mT(inverse(x)))


@opaque
def slogdet(m, x):
    """The sign of the determinant and the logarithm of its absolute value."""
    return tuple(m.linalg.slogdet(x))


slogdet.shape(lambda x: (det.infer(x),) * 2)
slogdet.vjp(lambda g, x: broadcast_rows(broadcast_rows(g[1])) * mT(inverse(x)))


@opaque(promote=True)
def solve(m, x, y):
    """The z with x @ z = y, for square x and a matrix y (or stacks of them)."""
    return m.linalg.solve(*in_stacks(m, x, y))


def in_stacks(m, *arrays):
    """The matrices in stacks of one shape: CuPy's `solve` does not broadcast."""
    lead = broadcast_shapes(*(a.shape[:-2] for a in arrays))
    return [m.broadcast_to(a, (*lead, *a.shape[-2:])) for a in arrays]


@solve.shape
def _(x, y):
    n = require_square(x).shape[-1]
    if require_matrix(y).shape[-2] != n:
        raise ValueError(f"x has {n} rows, but y has {y.shape[-2]}")
    lead = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return Spec((*lead, *y.shape[-2:]), x.dtype)


solve.vjp(
    x=lambda g, out, x: (-matmul(solve(mT(x), g), mT(out))).sum_to(x.spec.shape),
    y=lambda g, x, y_spec: solve(mT(x), g).sum_to(y_spec.shape),
)


@opaque(promote=True)
def solve_triangular(m, x, y, *, lower, transpose, unit):
    """`solve` for a triangle of x, or its transpose; with `unit` its diagonal counts as ones."""
    cut = m.tril if lower else m.triu
    if unit:
        x = cut(x, -1 if lower else 1) + m.eye(x.shape[-1], dtype=x.dtype)
    else:
        x = cut(x)
    return m.linalg.solve(*in_stacks(m, m.swapaxes(x, -1, -2) if transpose else x, y))


solve_triangular.shape(lambda x, y, lower, transpose, unit: solve.infer(x, y))


def pull_back_to_right(g, x, lower, transpose, unit):
    """The cotangent of the right side, before it is summed over broadcast matrices."""
    return solve_triangular(x, g, lower=lower, transpose=not transpose, unit=unit)


def pull_back_to_triangle(g, out, x, lower, transpose, unit):
    """That of x: of `solve` there, and 0 outside of the triangle."""
    gy = pull_back_to_right(g, x, lower, transpose, unit)
    gx = -(matmul(out, mT(gy)) if transpose else matmul(gy, mT(out)))
    cut, first = (tril, -1) if lower else (triu, 1)
    return cut(gx.sum_to(x.spec.shape), diagonal=first if unit else 0)


solve_triangular.vjp(
    x=pull_back_to_triangle,
    y=lambda g, x, y_spec, **how: pull_back_to_right(g, x, **how).sum_to(y_spec.shape),
)


@opaque
def pinv(m, x, *, rcond, hermitian):
    """The Moore-Penrose inverse; singular values below rcond times the largest count as 0."""
    if not hermitian:
        return m.linalg.pinv(x, rcond)
    w, v = m.linalg.eigh(x)
    kept = m.abs(w) > rcond * m.max(m.abs(w), axis=-1, keepdims=True)
    scaled = v * m.where(kept, 1 / m.where(kept, w, 1), 0)[..., None, :]
    return m.matmul(scaled, m.swapaxes(v, -1, -2))


@pinv.shape
def _(x, *, rcond, hermitian):
    require_square(x) if hermitian else require_matrix(x)
    return Spec((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


@pinv.vjp
def _(g, out, x):
    """Golub and Pereyra, "The differentiation of pseudo-inverses" (1973), equation 4.12."""
    rows, columns = x.spec.shape[-2:]
    left = identity(rows, x) - matmul(x, out)
    right = identity(columns, x) - matmul(out, x)
    pt = mT(out)
    return (
        matmul(matmul(left, mT(g)), matmul(out, pt))
        + matmul(matmul(pt, out), matmul(mT(g), right))
        - matmul(matmul(pt, g), pt)
    )


# ---- factorizations --------------------------------------------------------------------------


@opaque
def cholesky(m, x):
    """The lower triangular L with L @ Lᵀ = x, for symmetric positive definite x."""
    return m.linalg.cholesky(x)


cholesky.shape(require_square)


@cholesky.vjp
def _(g, out):
    """Murray, "Differentiation of the Cholesky decomposition" (2016), equation 9."""
    below = tril(matmul(mT(out), g), diagonal=0)
    half = below - 0.5 * below * identity(out.spec.shape[-1], out)
    back = partial(solve_triangular, out, lower=True, transpose=True, unit=False)
    s = back(mT(back(mT(half))))
    return 0.5 * (s + mT(s))


@opaque
def qr(m, x, *, mode):
    """x = q @ r with orthonormal columns in q and upper triangular r."""
    return tuple(m.linalg.qr(x, mode))


@qr.shape
def _(x, *, mode):
    *lead, rows, columns = require_matrix(x).shape
    k = rows if mode == "complete" else smaller(rows, columns)
    return tuple(Spec((*lead, *size), x.dtype) for size in ((rows, k), (k, columns)))


@qr.vjp
def _(g, out, x_spec, mode):
    """Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2010)."""
    (gq, gr), (q, r) = g, out
    rows, columns = x_spec.shape[-2:]
    if mode == "complete" and rows > columns:
        raise ValueError("qr in mode 'complete' has no derivative for more rows than columns")
    if rows >= columns:
        return qr_pull_back(gq, gr, q, r)
    square, rest = (0, rows), (rows, columns)  # x = [x₁ x₂], r = [r₁ qᵀ x₂]
    r1, r2 = block(r, square, square), block(r, square, rest)
    g1, g2 = block(gr, square, square), block(gr, square, rest)
    gx1 = qr_pull_back(gq + matmul(matmul(q, r2), mT(g2)), g1, q, r1)
    return concat(gx1, matmul(q, g2), axis=len(x_spec.shape) - 1)


def qr_pull_back(gq, gr, q, r):
    """The cotangent of x = q @ r with at least as many rows as columns."""
    s = matmul(r, mT(gr)) - matmul(mT(gq), q)
    symmetric = tril(s, diagonal=0) + mT(tril(s, diagonal=-1))
    columns = mT(gq + matmul(q, symmetric))
    return mT(solve_triangular(r, columns, lower=False, transpose=False, unit=False))


@opaque
def lu(m, x):
    """L and U in one matrix (the ones of L's diagonal left out), and the rows exchanged.

    Gaussian elimination with the largest pivot of each column; pivot k says with which row,
    counted from 1, row k was exchanged.
    """
    a, pivots = m.array(x), []
    i = m.arange(x.shape[-2])
    for k in range(min(x.shape[-2:])):
        p = m.argmax(m.abs(a[..., k:, k]), axis=-1)[..., None] + k
        pivots.append(p + 1)
        order = m.where(i == k, p, m.where(i == p, k, i))
        a = m.take_along_axis(a, order[..., None], axis=-2)
        pivot = a[..., k : k + 1, k : k + 1]
        factors = a[..., k + 1 :, k : k + 1] / m.where(pivot == 0, 1, pivot)
        a[..., k + 1 :, k : k + 1] = factors
        a[..., k + 1 :, k + 1 :] -= factors * a[..., k : k + 1, k + 1 :]
    empty = m.zeros((*x.shape[:-2], 0), dtype="int32")
    return a, m.concatenate([empty, *pivots], axis=-1).astype("int32")


@lu.shape
def _(x):
    *lead, rows, columns = require_matrix(x).shape
    return x, Spec((*lead, smaller(rows, columns)), int32.numpy)


@lu.vjp
def _(g, out):
    """de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using triangular
    factorization" (2011), for square matrices.
    """
    packed, pivots = out
    n, columns = packed.spec.shape[-2:]
    if n != columns:
        raise ValueError(f"lu of {packed.spec} has no derivative here: its matrices are not square")
    lower, upper = lower_of(packed), triu(packed, diagonal=0)
    gl, gu = tril(g[0], diagonal=-1), triu(g[0], diagonal=0)
    s = tril(matmul(mT(lower), gl), diagonal=-1) + triu(matmul(gu, mT(upper)), diagonal=0)
    left = solve_triangular(packed, s, lower=True, transpose=True, unit=True)
    inner = mT(solve_triangular(packed, mT(left), lower=False, transpose=False, unit=False))
    p = permutation(pivots, size=n, dtype=packed.spec.dtype)
    return matmul(p, inner)


def lower_of(packed):
    """The L of a packed LU factorization: unit diagonal, as many columns as pivots."""
    rows, columns = packed.spec.shape[-2:]
    k = smaller(rows, columns)
    below = tril(block(packed, (0, rows), (0, k)), diagonal=-1)
    return below + eye(rows=rows, columns=k, dtype=packed.spec.dtype)


@opaque
def permutation(m, pivots, *, size, dtype):
    """The matrix P with x = P @ L @ U, from the exchanges that `lu` made."""
    i = m.arange(size)
    order = m.broadcast_to(i, (*pivots.shape[:-1], size))
    for k in range(pivots.shape[-1]):
        p = pivots[..., k : k + 1].astype("int64") - 1
        exchanged = m.where(i == k, p, m.where(i == p, k, i))
        order = m.take_along_axis(order, exchanged, axis=-1)
    return (order[..., None, :] == i[:, None]).astype(dtype)


permutation.shape(lambda pivots, size, dtype: Spec((*pivots.shape[:-1], size, size), dtype))


@opaque
def svd(m, x, *, full_matrices):
    """x = u @ diag(s) @ vᵀ with orthonormal u and v, and s ≥ 0 falling."""
    return tuple(m.linalg.svd(x, full_matrices=full_matrices))


@svd.shape
def _(x, *, full_matrices):
    *lead, rows, columns = require_matrix(x).shape
    k = smaller(rows, columns)
    p, q = (rows, columns) if full_matrices else (k, k)
    return tuple(Spec((*lead, *size), x.dtype) for size in ((rows, p), (k,), (q, columns)))


@svd.vjp
def _(g, out, full_matrices):
    (gu, gs, gvt), (u, s, vt) = g, out
    rows, columns, k = u.spec.shape[-2], vt.spec.shape[-1], s.spec.shape[-1]
    if full_matrices and rows != columns:
        raise ValueError("svd with full_matrices=True has a derivative for square matrices only")
    f = one_over_differences(s * s)
    j, i = f * matmul(mT(u), gu), f * matmul(vt, mT(gvt))
    core = (j + mT(j)) * broadcast_columns(s) + broadcast_rows(s) * (i + mT(i))
    core = core + broadcast_columns(gs) * identity(k, s)
    gx = matmul(matmul(u, core), vt)
    if rows > k:
        outside = gu / broadcast_columns(s)
        gx = gx + matmul(outside - matmul(u, matmul(mT(u), outside)), vt)
    if columns > k:
        outside = gvt / broadcast_rows(s)
        gx = gx + matmul(u, outside - matmul(matmul(outside, mT(vt)), vt))
    return gx


def eigen_specs(x, **_) -> tuple[Spec, Spec]:
    """The specs of eigenvalues and eigenvectors."""
    return Spec(require_square(x).shape[:-1], x.dtype), x


@opaque
def eigh(m, x, *, lower):
    """Eigenvalues (rising) and eigenvectors of symmetric x; one triangle is read."""
    return tuple(m.linalg.eigh(x, "L" if lower else "U"))


eigh.shape(eigen_specs)


@eigh.vjp
def _(g, out):
    (gw, gv), (w, v) = g, out
    core = broadcast_columns(gw) * identity(w.spec.shape[-1], w)
    core = core + one_over_differences(w) * matmul(mT(v), gv)
    return matmul(matmul(v, core), mT(v))


@opaque
def eig(m, x):
    """Eigenvalues and eigenvectors of square x; refused where they are not real."""
    values, vectors = m.linalg.eig(x)
    if values.dtype.kind == "c" and m.any(values.imag != 0):
        raise ValueError("x has complex eigenvalues, and complex numbers are not supported")
    return values.real.astype(x.dtype), vectors.real.astype(x.dtype)


eig.shape(eigen_specs)


@eig.vjp
def _(g, out):
    """Giles, section 3.1, with the eigenvectors held at length 1."""
    (gw, gv), (w, v) = g, out
    unit, s = identity(w.spec.shape[-1], w), matmul(mT(v), gv)
    diagonal = sum(s * unit, axis=(s.spec.ndim - 2,), keepdim=True)
    turned = one_over_differences(w) * (s - matmul(mT(v), v) * diagonal)
    core = broadcast_columns(gw) * unit + turned
    return solve(mT(v), matmul(core, mT(v)))
