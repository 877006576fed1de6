"""Matrix products, inverses and factorizations, against torch.

Eigenvectors and singular vectors are right in either sign: the products are compared that must
give back the matrix. The derivatives of what reads symmetric matrices are in
tests/tensor/test_linalg.py, where the argument is made symmetric.
"""

import numpy as np
import scipy.linalg
import torch

from tests.ops.cases import Case, fixed, normal, whole

WIDE = ("float64", "float32")
"""Factorizations are not compared in halves: those are matrices of other condition."""


def positive(*shape):
    """A builder of one symmetric positive definite matrix (or a stack) of that shape."""

    def build(rng):
        a = rng.standard_normal(shape)
        return [a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])]

    return build


def regular(*shapes):
    """A builder of well-conditioned square matrices, then arrays of the other shapes."""

    def build(rng):
        first, *others = shapes
        a = rng.standard_normal(first) + 3 * np.eye(first[-1])
        return [a, *(rng.standard_normal(s) for s in others)]

    return build


def real_eigenvalues(n):
    """A builder of one matrix with the eigenvalues 1 … n and no orthogonal eigenvectors."""

    def build(rng):
        v = rng.standard_normal((n, n)) + 2 * np.eye(n)
        return [v @ np.diag(np.arange(1.0, n + 1)) @ np.linalg.inv(v)]

    return build


def packed_lu(x):
    packed, pivots = torch.linalg.lu_factor(x)
    return packed, pivots


def permutation_of(pivots):
    n = 4
    lu = torch.eye(n).expand(*pivots.shape[:-1], n, n).contiguous()
    return torch.lu_unpack(lu, pivots.int())[0].double()


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def transposed(x):
    return x.swapaxes(-1, -2)


def check_svd(results, inputs):
    u, s, vt = results
    (x,) = inputs
    k = s.shape[-1]
    same(u[..., :k] * s[..., None, :] @ vt[..., :k, :], x)
    same(
        transposed(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*x.shape[:-2], *u.shape[-1:] * 2))
    )
    same(s, np.linalg.svd(x.astype("float64"), compute_uv=False))


def check_eigh(results, inputs):
    (w, v), (x,) = results, inputs
    same(v * w[..., None, :] @ transposed(v), x)
    same(w, np.linalg.eigvalsh(x.astype("float64")))


def check_eig(results, inputs):
    w, v = results
    same(inputs[0] @ v, v * w)
    same(np.linalg.norm(v, axis=0), 1)
    np.testing.assert_allclose(np.sort(w), np.arange(1, len(w) + 1), rtol=1e-3)


def norm_case(build, p, axis, keepdim=False):
    attrs = {"p": p, "axis": axis, "keepdim": keepdim}
    return Case(build, lambda x: torch.linalg.vector_norm(x, p, axis, keepdim), attrs)


def deviation_case(build, axis, correction, keepdim=False):
    attrs = {"axis": axis, "correction": correction, "keepdim": keepdim}
    call = lambda x: torch.std(x, axis, correction=correction, keepdim=keepdim)
    return Case(build, call, attrs)


def triangular_case(x, y, lower, transpose=False, unit=False) -> Case:
    """Equations with a triangular matrix."""

    def solved(a, b):
        a, upper = (a.mT, lower) if transpose else (a, not lower)
        return torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)

    attrs = {"lower": lower, "transpose": transpose, "unit": unit}
    return Case(regular(x, y), solved, attrs, dtypes=WIDE)


CASES = {
    "p_norm": [
        norm_case(normal(2, 3), 2.0, (0, 1)),
        norm_case(normal(2, 3), 2.0, (1,), True),
        norm_case(normal(2, 3, 2), 3.0, (0, 2)),
        norm_case(normal(2, 3), 2.5, (0,)),
        norm_case(normal(2, 3), -1.0, (1,)),
    ],
    "deviation": [
        deviation_case(normal(2, 3), (0, 1), 1),
        deviation_case(normal(2, 3, 4), (0, 2), 0, True),
        deviation_case(normal(2, 3), (1,), 2),
    ],
    "distances": [
        Case(normal((3, 4), (5, 4)), torch.cdist),
        Case(normal((2, 1, 3, 4), (3, 5, 4)), torch.cdist),
        Case(normal((2, 3), (0, 3)), torch.cdist, order=0),
    ],
    "matmul": [
        Case(normal((2, 3), (3, 4)), torch.matmul),
        Case(normal((3,), (3,)), torch.matmul),
        Case(normal((3,), (3, 4)), torch.matmul),
        Case(normal((2, 3), (3,)), torch.matmul),
        Case(normal((2, 2, 3), (3, 4)), torch.matmul),
        Case(normal((2, 2, 3), (3,)), torch.matmul),
        Case(normal((3,), (2, 3, 2)), torch.matmul),
        Case(normal((2, 1, 2, 3), (4, 3, 2)), torch.matmul),
        Case(normal((2, 3), (2, 3, 2)), torch.matmul),
        Case(normal((0, 3), (3, 2)), torch.matmul),
        Case(normal((2, 0), (0, 3)), torch.matmul),
        Case(normal((2, 0, 3), (3, 2)), torch.matmul),
        Case(whole(-5, 5, (2, 3), (3, 2)), torch.matmul),
    ],
    "product": [
        Case(
            normal((3, 2), (4, 3)),
            lambda x, y: (x.T @ y.T).T,
            {"x_perm": (1, 0), "y_perm": (1, 0), "out_perm": (1, 0)},
        ),
        Case(
            normal((2, 4, 3, 5), (2, 6, 3, 5)),
            lambda x, y: (x.transpose(1, 2) @ y.permute(0, 2, 3, 1)).transpose(1, 2),
            {"x_perm": (0, 2, 1, 3), "y_perm": (0, 2, 3, 1), "out_perm": (0, 2, 1, 3)},
        ),
        Case(
            normal((1, 2, 3), (4, 3, 2)),
            lambda x, y: x @ y,
            {"x_perm": (0, 1, 2), "y_perm": (0, 1, 2), "out_perm": (0, 1, 2)},
        ),
    ],
    "inverse": [
        Case(regular((3, 3)), torch.linalg.inv, dtypes=WIDE),
        Case(regular((2, 3, 3)), torch.linalg.inv, dtypes=WIDE),
    ],
    "det": [
        Case(regular((3, 3)), torch.linalg.det, dtypes=WIDE),
        Case(regular((2, 3, 3)), torch.linalg.det, dtypes=WIDE),
    ],
    "slogdet": [
        Case(regular((3, 3)), torch.linalg.slogdet, dtypes=WIDE, results=(1,)),
        Case(regular((2, 3, 3)), torch.linalg.slogdet, dtypes=WIDE, results=(1,)),
    ],
    "solve": [
        Case(regular((3, 3), (3, 2)), torch.linalg.solve, dtypes=WIDE),
        Case(regular((2, 3, 3), (3, 1)), torch.linalg.solve, dtypes=WIDE),
        Case(regular((3, 3), (2, 3, 2)), torch.linalg.solve, dtypes=WIDE),
    ],
    "solve_triangular": [
        triangular_case((3, 3), (3, 2), lower=True),
        triangular_case((2, 3, 3), (3, 1), lower=False),
        triangular_case((3, 3), (2, 3, 2), lower=True, unit=True),
        triangular_case((9, 9), (9, 11), lower=False, unit=True),
        triangular_case((4, 4), (4, 2), lower=True, transpose=True),
        triangular_case((2, 4, 4), (2, 4, 9), lower=False, transpose=True, unit=True),
    ],
    "pinv": [
        Case(normal(4, 3), torch.linalg.pinv, {"rcond": 1e-15, "hermitian": False}, dtypes=WIDE),
        Case(normal(2, 2, 4), torch.linalg.pinv, {"rcond": 1e-15, "hermitian": False}, dtypes=WIDE),
        Case(
            positive(3, 3),
            lambda x: torch.linalg.pinv(x, hermitian=True),
            {"rcond": 1e-12, "hermitian": True},
            wrt=(),
            dtypes=("float64",),
        ),
        Case(
            fixed([[1.0, 2.0], [2.0, 4.0]]),
            lambda x: torch.linalg.pinv(x, hermitian=True),
            {"rcond": 1e-6, "hermitian": True},
            wrt=(),
            dtypes=WIDE,
        ),
    ],
    "cholesky": [
        Case(positive(3, 3), torch.linalg.cholesky, dtypes=WIDE, wrt=()),
        Case(positive(2, 3, 3), torch.linalg.cholesky, dtypes=WIDE, wrt=()),
    ],
    "qr": [
        Case(normal(4, 3), torch.linalg.qr, {"mode": "reduced"}, dtypes=WIDE, tolerance=10),
        Case(normal(2, 3, 3), torch.linalg.qr, {"mode": "reduced"}, dtypes=WIDE, tolerance=10),
        Case(normal(2, 4), torch.linalg.qr, {"mode": "reduced"}, dtypes=WIDE, tolerance=10),
        Case(
            normal(3, 3),
            lambda x: torch.linalg.qr(x, mode="complete"),
            {"mode": "complete"},
            dtypes=WIDE,
            tolerance=10,
        ),
    ],
    "lu": [
        Case(normal(4, 4), packed_lu, dtypes=WIDE, results=(0,), tolerance=10),
        Case(normal(2, 3, 3), packed_lu, dtypes=WIDE, results=(0,), tolerance=10),
        Case(normal(4, 2), packed_lu, dtypes=WIDE, wrt=(), tolerance=10),
        Case(normal(2, 4), packed_lu, dtypes=WIDE, wrt=(), tolerance=10),
    ],
    "permutation": [
        Case(
            fixed(np.array([3, 4, 3, 4], "int32")),
            permutation_of,
            {"size": 4, "dtype": np.dtype("float64")},
        ),
        Case(
            fixed(np.array([[2, 2, 4, 4], [1, 3, 3, 4]], "int32")),
            permutation_of,
            {"size": 4, "dtype": np.dtype("float64")},
        ),
    ],
    "svd": [
        Case(normal(4, 3), check=check_svd, attrs={"full_matrices": False}, dtypes=WIDE),
        Case(normal(2, 2, 3), check=check_svd, attrs={"full_matrices": False}, dtypes=WIDE),
        Case(normal(4, 3), check=check_svd, attrs={"full_matrices": True}, dtypes=WIDE, wrt=()),
    ],
    "eigh": [
        Case(positive(3, 3), check=check_eigh, attrs={"lower": True}, dtypes=WIDE, wrt=()),
        Case(positive(2, 3, 3), check=check_eigh, attrs={"lower": False}, dtypes=WIDE, wrt=()),
    ],
    "eig": Case(real_eigenvalues(3), check=check_eig, dtypes=WIDE),
    "matrix_exp": [
        Case(normal(3, 3), torch.linalg.matrix_exp, dtypes=WIDE),
        Case(normal(2, 3, 3), torch.linalg.matrix_exp, dtypes=WIDE),
        Case(fixed(np.full((2, 2), 30.0)), numpy=scipy.linalg.expm, dtypes=("float64",), order=0),
        Case(fixed(np.zeros((0, 0))), torch.linalg.matrix_exp, order=0),
    ],
}
CASES["wide_product"] = [case._replace(order=0) for case in CASES["product"]]
