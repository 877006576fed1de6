"""Linear algebra against torch: values, first and second derivatives, and what is refused.

What an operator computes is tested in tests/ops; here are the public functions, and derivatives of
what reads symmetric matrices (the argument is made symmetric).
"""

import numpy as np
import pytest
import torch

import minipaddle as paddle

L = paddle.linalg
rng = np.random.default_rng(0)


def spd(x):
    """Symmetric positive definite, with eigenvalues apart, of any square x."""
    n = x.shape[-1]
    diagonal = np.diag(np.arange(1.0, n + 1)) * n
    if isinstance(x, torch.Tensor):
        return x @ x.mT + torch.from_numpy(diagonal)
    return x @ x.mT + paddle.to_tensor(diagonal)


def general(x):
    """A well-conditioned matrix of any square x."""
    eye = 3 * np.eye(x.shape[-1])
    return x + (torch.from_numpy(eye) if isinstance(x, torch.Tensor) else paddle.to_tensor(eye))


def listed(y):
    return list(y) if isinstance(y, list | tuple) else [y]


def check(ours, theirs, *arrays, order=2, rtol=1e-9, atol=1e-10):
    """Values and derivatives of two functions, by random weights on the results."""
    arrays = [np.asarray(a) for a in arrays]
    xs = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    ys, zs = listed(ours(*xs)), listed(theirs(*ts))
    assert len(ys) == len(zs)
    for y, z in zip(ys, zs, strict=True):
        assert y.shape == list(z.shape)
        np.testing.assert_allclose(y.numpy(), z.detach().numpy(), rtol, atol)
    weights = np.random.default_rng(1)
    for _ in range(order):
        parts = [(y, z, weights.standard_normal(y.shape)) for y, z in zip(ys, zs, strict=True)]
        loss = sum((y * paddle.to_tensor(w) * y).sum() for y, _, w in parts)
        target = sum((z * torch.from_numpy(w) * z).sum() for _, z, w in parts)
        ys = paddle.grad(loss, xs, create_graph=True)
        zs = torch.autograd.grad(target, ts, create_graph=True)
        for y, z in zip(ys, zs, strict=True):
            np.testing.assert_allclose(y.numpy(), z.detach().numpy(), rtol * 100, atol * 100)


A, B, STACK = (rng.standard_normal(s) for s in [(3, 3), (3, 2), (2, 3, 3)])
TALL, WIDE = rng.standard_normal((4, 2)), rng.standard_normal((2, 4))
V, W = rng.standard_normal(3), rng.standard_normal(3)


# ---- products --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "arrays"),
    [
        (
            lambda x, y: paddle.matmul(x, y, True, True),
            lambda x, y: x.mT @ y.mT,
            (B, rng.standard_normal((4, 3))),
        ),
        (lambda x, y: paddle.matmul(x, y, True, True), torch.matmul, (V, W)),
        (paddle.mm, torch.mm, (A, B)),
        (paddle.bmm, torch.bmm, (STACK, STACK)),
        (paddle.mv, torch.mv, (A, V)),
        (paddle.dot, torch.dot, (V, W)),
        (paddle.dot, lambda x, y: (x * y).sum(-1), (A, A)),
        (paddle.vecdot, torch.linalg.vecdot, (A, STACK)),
        (lambda x, y: paddle.vecdot(x, y, 0), lambda x, y: (x * y).sum(0), (A, A)),
        (paddle.inner, torch.inner, (STACK, A)),
        (paddle.inner, torch.inner, (np.float64(2.0), A)),
        (paddle.outer, lambda x, y: torch.outer(x.flatten(), y.flatten()), (A, B)),
        (paddle.cross, lambda x, y: torch.linalg.cross(x, y, dim=0), (A, A[::-1].copy())),
        (lambda x, y: paddle.cross(x, y, -1), torch.linalg.cross, (STACK, STACK[::-1].copy())),
        (
            lambda i, x, y: paddle.addmm(i, x, y, 2.0, 3.0),
            lambda i, x, y: 2 * i + 3 * x @ y,
            (V, A, A),
        ),
        (paddle.addmm, torch.addmm, (A, A, A)),
        (paddle.baddbmm, torch.baddbmm, (STACK, STACK, STACK)),
        (paddle.tensordot, torch.tensordot, (STACK, A)),
        (
            lambda x, y: paddle.tensordot(x, y, [[0, 2], [2, 1]]),
            lambda x, y: torch.tensordot(x, y, ([0, 2], [2, 1])),
            (STACK, rng.standard_normal((4, 3, 2))),
        ),
        (
            lambda x, y: paddle.tensordot(x, y, [1]),
            lambda x, y: torch.tensordot(x, y, ([1], [1])),
            (A, A),
        ),
        (
            lambda x, y: paddle.tensordot(x[:, :1], y, [[0, 1, 2], [0, 1, 2]]),
            lambda x, y: torch.tensordot(x[:, :1], y, ([0, 1, 2], [0, 1, 2])),
            (STACK, STACK),
        ),
        (
            lambda x, y: paddle.tensordot(x, y[:, :, :1], [0, 2]),
            lambda x, y: torch.tensordot(x, y[:, :, :1], ([0, 2], [0, 2])),
            (STACK, STACK),
        ),
        (lambda x, y: paddle.tensordot(x, y, 0), lambda x, y: torch.tensordot(x, y, 0), (V, A)),
        (lambda x, y: paddle.tensordot(x, y, [0, 1]), lambda x, y: (x * y).sum(), (A, A)),
        (paddle.t, torch.t, (B,)),
        (paddle.kron, torch.kron, (B, A)),
        (lambda x: paddle.trace(x, 1, 1, 2), lambda x: x.diagonal(1, 1, 2).sum(-1), (STACK,)),
        (paddle.matrix_transpose, lambda x: x.mT, (STACK,)),
        (
            lambda *x: L.multi_dot(list(x)),
            lambda *x: torch.linalg.multi_dot(x),
            (WIDE, TALL, WIDE, TALL),
        ),
        (lambda *x: L.multi_dot(list(x)), lambda *x: torch.linalg.multi_dot(x), (V, A, B)),
        (lambda *x: L.multi_dot(list(x)), lambda *x: torch.linalg.multi_dot(x), (B.T, A, V)),
    ],
)
def test_products(ours, theirs, arrays):
    check(ours, theirs, *arrays)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3])), "last dimension of x"),
        (lambda: paddle.matmul(paddle.ones([]), paddle.ones([2])), "at least one dimension"),
        (lambda: paddle.bmm(paddle.ones([2, 2]), paddle.ones([2, 2])), "3 dimensions"),
        (lambda: paddle.bmm(paddle.ones([2, 2, 2]), paddle.ones([1, 2, 2])), "same number"),
        (lambda: paddle.mv(paddle.ones([2, 2]), paddle.ones([2, 2])), "1 dimensions"),
        (lambda: paddle.dot(paddle.ones([2]), paddle.ones([3])), "of one shape"),
        (lambda: paddle.cross(paddle.ones([2, 2]), paddle.ones([2, 2])), "an axis of size 3"),
        (lambda: paddle.cross(paddle.ones([2, 3]), paddle.ones([2, 3]), 0), "an axis of size 3"),
        (lambda: paddle.tensordot(paddle.ones([2]), paddle.ones([3]), 1), "last dimension of x"),
        (lambda: L.multi_dot([paddle.ones([2, 2])]), "at least two"),
    ],
)
def test_products_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- norms -----------------------------------------------------------------------------------

INF = float("inf")


@pytest.mark.parametrize("p", [0, 1, 2, 3, 2.5, -1, INF, -INF])
@pytest.mark.parametrize(("axis", "keepdim"), [(None, False), (1, True), ([0, 2], False)])
def test_vector_norms(p, axis, keepdim):
    check(
        lambda x: L.vector_norm(x, p, axis, keepdim),
        lambda x: torch.linalg.vector_norm(x, p, axis, keepdim),
        STACK,
        order=0 if p == 0 else 2,
    )


@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
@pytest.mark.parametrize(("axis", "keepdim"), [([-2, -1], False), ([1, 0], True)])
def test_matrix_norms(p, axis, keepdim):
    check(
        lambda x: L.matrix_norm(x, p, axis, keepdim),
        lambda x: torch.linalg.matrix_norm(x, p, tuple(axis), keepdim),
        STACK,
    )


def test_norm_chooses():
    x = paddle.to_tensor(STACK)
    for same in [
        (paddle.norm(x), L.vector_norm(x)),
        (paddle.norm(x, "fro", [0, 1]), L.matrix_norm(x, "fro", [0, 1])),
        (paddle.norm(x, axis=[0, 1]), L.matrix_norm(x, "fro", [0, 1])),
        (paddle.norm(x[0], "nuc"), L.matrix_norm(x[0], "nuc")),
        (paddle.norm(x, 1, [1]), L.vector_norm(x, 1, 1)),
        (paddle.norm(x, "fro", 1), L.vector_norm(x, 2, 1)),
        (x.norm(p=3, axis=-1), L.vector_norm(x, 3, 2)),
        (paddle.norm(x.astype("float32"), dtype="float64"), L.vector_norm(x)),
        (L.vector_norm(x.astype("float32"), dtype="float64"), L.vector_norm(x)),
    ]:
        np.testing.assert_allclose(*(y.numpy() for y in same), rtol=1e-6)


@pytest.mark.parametrize("p", [0, 1, 2, 3, INF])
def test_the_gradient_at_zero_is_zero(p):
    x = paddle.zeros([2])
    x.stop_gradient = False
    (dx,) = paddle.grad(paddle.norm(x, p), x, create_graph=True)
    assert dx.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: paddle.norm(x, 3, [0, 1]), ValueError, "matrix norm p=3"),
        (lambda x: L.vector_norm(x, "nuc"), ValueError, "vector norm p='nuc'"),
        (lambda x: paddle.norm(x, out=x), ValueError, r"norm\(out=...\)"),
        (lambda x: paddle.norm(x.astype("int64")), TypeError, "a floating dtype"),
        (lambda x: paddle.norm(x, axis=5), ValueError, "out of range"),
    ],
)
def test_norms_that_are_none(call, error, message):
    with pytest.raises(error, match=message):
        call(paddle.ones([2, 2]))


@pytest.mark.parametrize(("spread", "away"), [(1, 0), (1e-3, 0), (1, 1e3), (1e-6, 1), (1e25, 0)])
def test_distances_of_rows_that_are_close(spread, away):
    """By products they would cancel; equal rows have the distance 0 and no slope."""
    x, y = (away + spread * rng.standard_normal((2, 30, 8))).astype("float32")
    y[:3], y[3, 0], y[4, 1] = x[:3], np.inf, np.nan
    a, b = (paddle.to_tensor(v, stop_gradient=False) for v in (x, y[:3]))
    apart = (x[:, None] - y).astype("float64")
    near = lambda found, right: np.testing.assert_allclose(found.numpy(), right, rtol=3e-6)
    near(paddle.cdist(paddle.to_tensor(x), paddle.to_tensor(y)), np.sqrt((apart**2).sum(-1)))
    paddle.cdist(a, b).sum().backward()
    apart, far = apart[:, :3], np.sqrt((apart[:, :3] ** 2).sum(-1, keepdims=True))
    slopes = np.where(far > 0, apart / np.where(far > 0, far, 1), 0)
    for found, right in ((a.grad, slopes.sum(1)), (b.grad, -slopes.sum(0))):
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3, INF])
def test_distances(p):
    x, y = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 5, 3))
    check(lambda x, y: paddle.cdist(x, y, p), lambda x, y: torch.cdist(x, y, p), x, y, order=1)
    check(lambda x, y: paddle.dist(x, y, p), lambda x, y: torch.dist(x, y, p), A, A.T.copy())
    check(lambda x: paddle.pdist(x, p), lambda x: torch.pdist(x, p), x[0], order=1)


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, "fro", INF, "nuc"])
def test_condition_numbers(p):
    def theirs(x):
        norm = torch.linalg.matrix_norm
        if p == -2:
            return norm(x, -2) / norm(x, 2)
        return norm(x, p or 2) * norm(torch.linalg.inv(x), p or 2)

    check(lambda x: L.cond(general(x), p), lambda x: theirs(general(x)), STACK, order=1)


# ---- solving ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "arrays"),
    [
        (lambda x: paddle.inverse(general(x)), lambda x: torch.linalg.inv(general(x)), (STACK,)),
        (lambda x: L.det(general(x)), lambda x: torch.linalg.det(general(x)), (STACK,)),
        (
            lambda x: L.slogdet(general(x)),
            lambda x: torch.stack(torch.linalg.slogdet(general(x))),
            (STACK,),
        ),
        (
            lambda x, y: L.solve(general(x), y),
            lambda x, y: torch.linalg.solve(general(x), y),
            (STACK, B),
        ),
        (
            lambda x, y: L.solve(general(x), y),
            lambda x, y: torch.linalg.solve(general(x), y),
            (A, V),
        ),
        (
            lambda x, y: L.solve(general(x), y, left=False),
            lambda x, y: torch.linalg.solve(general(x), y, left=False),
            (A, B.T.copy()),
        ),
        (
            lambda x, y: L.triangular_solve(general(x), y),
            lambda x, y: torch.linalg.solve_triangular(general(x), y, upper=True),
            (STACK, B),
        ),
        (
            lambda x, y: L.triangular_solve(
                general(x), y, upper=False, transpose=True, unitriangular=True
            ),
            lambda x, y: torch.linalg.solve_triangular(
                general(x).mT, y, upper=True, unitriangular=True
            ),
            (A, B),
        ),
        (L.pinv, torch.linalg.pinv, (TALL,)),
        (L.pinv, torch.linalg.pinv, (WIDE,)),
        (lambda x: L.pinv(spd(x), hermitian=True), lambda x: torch.linalg.inv(spd(x)), (A,)),
        (lambda x, y: L.lstsq(x, y)[0], lambda x, y: torch.linalg.lstsq(x, y)[0], (TALL, TALL * 2)),
        (
            lambda x: L.matrix_power(general(x), 5),
            lambda x: torch.linalg.matrix_power(general(x), 5),
            (A,),
        ),
        (
            lambda x: L.matrix_power(general(x), -3),
            lambda x: torch.linalg.matrix_power(general(x), -3),
            (A,),
        ),
        (L.matrix_exp, torch.linalg.matrix_exp, (STACK,)),
        (L.cov, torch.cov, (WIDE,)),
        (L.corrcoef, torch.corrcoef, (WIDE,)),
        (
            lambda x: L.cov(x, rowvar=False, ddof=False),
            lambda x: torch.cov(x.mT, correction=0),
            (TALL,),
        ),
        (L.cov, torch.cov, (V,)),
    ],
)
def test_solving(ours, theirs, arrays):
    check(ours, theirs, *arrays, rtol=1e-8, atol=1e-9)


def test_matrix_power_zero():
    x = paddle.to_tensor(STACK)
    np.testing.assert_array_equal(L.matrix_power(x, 0).numpy(), np.stack([np.eye(3)] * 2))
    assert L.matrix_power(x, 1).tolist() == STACK.tolist()


def test_weighted_covariance():
    often, much = np.array([1, 2, 3, 1]), np.array([0.5, 1.0, 2.0, 1.5])
    for f, a in [(often, None), (None, much), (often, much)]:
        for ddof in (True, False):
            weights = [None if w is None else paddle.to_tensor(w) for w in (f, a)]
            ours = L.cov(paddle.to_tensor(WIDE), True, ddof, *weights).numpy()
            theirs = np.cov(WIDE, ddof=int(ddof), fweights=f, aweights=a)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert L.corrcoef(paddle.to_tensor(V)).item() == 1.0
    with pytest.raises(ValueError, match="a vector or a matrix"):
        L.cov(paddle.ones([2, 2, 2]))


def test_matrix_rank():
    x = np.diag([3.0, 1.0, 1e-3, 0.0])
    y = paddle.to_tensor(np.stack([x, np.eye(4)]))
    assert L.matrix_rank(y).tolist() == [3, 4]
    assert L.matrix_rank(y, tol=0.01).tolist() == [2, 4]
    assert L.matrix_rank(y, atol=0.01, rtol=0.5).tolist() == [1, 4]
    assert L.matrix_rank(y, rtol=0.5).tolist() == [1, 4]
    assert L.matrix_rank(y).dtype == "int64"


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_lstsq(driver):
    x, y = rng.standard_normal((5, 2)), rng.standard_normal((5, 3))
    z, residuals, rank, s = L.lstsq(paddle.to_tensor(x), paddle.to_tensor(y), driver=driver)
    exact = np.linalg.lstsq(x, y, rcond=None)
    np.testing.assert_allclose(z.numpy(), exact[0], rtol=1e-10)
    assert rank.item() == 2
    if driver in ("gels", "gelsd", "gelss"):
        np.testing.assert_allclose(residuals.numpy(), exact[1], rtol=1e-10)
    else:
        assert residuals.shape == [0]
    assert s.shape == ([2] if driver in ("gelsd", "gelss") else [0])


def test_lstsq_refuses_another_driver():
    with pytest.raises(ValueError, match="gels, gelsy, gelsd or gelss"):
        L.lstsq(paddle.ones([2, 2]), paddle.ones([2, 2]), driver="qr")


def test_cholesky_and_lu_solve():
    s, b = spd(paddle.to_tensor(A)), paddle.to_tensor(B)
    exact = np.linalg.solve(s.numpy(), B)
    for upper in (False, True):
        factor = L.cholesky(s, upper)
        np.testing.assert_allclose(L.cholesky_solve(b, factor, upper).numpy(), exact, rtol=1e-10)
        inverse = L.cholesky_inverse(factor, upper).numpy()
        np.testing.assert_allclose(inverse @ s.numpy(), np.eye(3), atol=1e-12)
    a = paddle.to_tensor(A)
    for trans, matrix in (("N", A), ("T", A.T)):
        np.testing.assert_allclose(
            L.lu_solve(b, *L.lu(a), trans=trans).numpy(), np.linalg.solve(matrix, B), rtol=1e-10
        )


# ---- factorizations --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "arrays"),
    [
        (lambda x: L.cholesky(spd(x)), lambda x: torch.linalg.cholesky(spd(x)), (STACK,)),
        (
            lambda x: L.cholesky(spd(x), True),
            lambda x: torch.linalg.cholesky(spd(x), upper=True),
            (A,),
        ),
        (L.qr, torch.linalg.qr, (TALL,)),
        (L.qr, torch.linalg.qr, (WIDE,)),
        (lambda x: L.qr(x, "r"), lambda x: torch.linalg.qr(x)[1], (STACK,)),
        (lambda x: L.eigvalsh(spd(x)), lambda x: torch.linalg.eigvalsh(spd(x)), (STACK,)),
        (lambda x: L.eigh(spd(x), "U")[1] ** 2, lambda x: torch.linalg.eigh(spd(x))[1] ** 2, (A,)),
        (L.svdvals, torch.linalg.svdvals, (STACK,)),
        (lambda x: L.svd(x)[0] ** 2, lambda x: torch.linalg.svd(x, False)[0] ** 2, (TALL,)),
        (lambda x: L.svd(x)[2] ** 2, lambda x: torch.linalg.svd(x, False)[2] ** 2, (WIDE,)),
        (lambda x: L.svd(x)[2] ** 2, lambda x: torch.linalg.svd(x, False)[2] ** 2, (TALL,)),
        (lambda x: L.lu(x)[0], lambda x: torch.linalg.lu_factor(x)[0], (STACK,)),
        (
            lambda x: L.lu_unpack(*L.lu(x))[1:],
            lambda x: torch.linalg.lu(x)[1:],
            (STACK,),
        ),
    ],
)
def test_factorizations(ours, theirs, arrays):
    check(ours, theirs, *arrays, rtol=1e-8, atol=1e-9)


def test_eig_of_real_eigenvalues():
    x = np.array([[2.0, 1.0], [0.5, 3.0]])
    w, v = L.eig(paddle.to_tensor(x))
    np.testing.assert_allclose(x @ v.numpy(), v.numpy() * w.numpy(), atol=1e-12)

    def by_size(w):
        return w.sort() if isinstance(w, paddle.Tensor) else w.real.sort()[0]

    check(lambda x: by_size(L.eigvals(x)), lambda x: by_size(torch.linalg.eigvals(x)), x)
    check(
        lambda x: (L.eig(x)[1] ** 2).sum(axis=1),
        lambda x: (torch.linalg.eig(x)[1].real ** 2).sum(1),
        x,
    )
    with pytest.raises(ValueError, match="complex numbers are not supported"):
        L.eig(paddle.to_tensor([[0.0, 1.0], [-1.0, 0.0]]))


@pytest.mark.parametrize("shape", [(4, 4), (4, 2), (2, 4), (2, 3, 2)])
def test_lu(shape):
    x = rng.standard_normal(shape)
    packed, pivots, infos = L.lu(paddle.to_tensor(x), get_infos=True)
    ours = L.lu_unpack(packed, pivots)
    theirs = torch.linalg.lu(torch.from_numpy(x))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12)
    assert infos.shape == list(shape[:-2])
    assert pivots.dtype == infos.dtype == "int32"
    assert L.lu_unpack(packed, pivots, unpack_pivots=False)[0] is None
    assert L.lu_unpack(packed, pivots, unpack_ludata=False)[1:] == (None, None)


def test_lu_of_a_singular_matrix():
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    p, lower, upper = L.lu_unpack(*L.lu(paddle.to_tensor(x)))
    np.testing.assert_allclose((p @ lower @ upper).numpy(), x)


def test_complete_qr_and_full_svd():
    x = paddle.to_tensor(TALL, stop_gradient=False)
    q, r = L.qr(x, "complete")
    assert (q.shape, r.shape) == ([4, 4], [4, 2])
    np.testing.assert_allclose((q @ r).numpy(), TALL, atol=1e-12)
    with pytest.raises(ValueError, match="no derivative for more rows"):
        q.sum().backward()
    u, _, vt = L.svd(x, full_matrices=True)
    assert (u.shape, vt.shape) == ([4, 4], [2, 2])
    with pytest.raises(ValueError, match="for square matrices only"):
        u.sum().backward()
    with pytest.raises(ValueError, match="has no derivative here"):
        L.lu(x)[0].sum().backward()


def test_householder_reflections():
    a, tau = torch.geqrf(torch.from_numpy(TALL))
    a, tau = a.numpy(), tau.numpy()
    check(L.householder_product, torch.linalg.householder_product, a, tau, order=1)
    y, z = rng.standard_normal((4, 3)), rng.standard_normal((3, 4))
    for left, transpose in [(True, False), (True, True), (False, False), (False, True)]:
        given = [paddle.to_tensor(v) for v in (a, tau, y if left else z)]
        theirs = torch.ormqr(*(torch.from_numpy(v.numpy()) for v in given), left, transpose)
        ours = L.ormqr(*given, left=left, transpose=transpose)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


def test_equal_eigenvalues_leave_finite_gradients():
    x = paddle.eye(3, dtype="float64")
    x.stop_gradient = False
    w, v = L.eigh(x)
    (w.sum() + (v**2).sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: L.inv(paddle.zeros([2, 2])), ValueError, "Singular matrix"),
        (lambda: L.inv(paddle.ones([2, 3])), ValueError, "holds no square matrices"),
        (lambda: L.inv(paddle.ones([2, 2], "int64")), TypeError, "a floating dtype"),
        (
            lambda: L.solve(paddle.eye(2), paddle.ones([3, 1])),
            ValueError,
            "x has 2 rows, but y has 3",
        ),
        (lambda: L.cholesky(-paddle.eye(2)), ValueError, "not positive definite"),
        (lambda: L.svd(paddle.ones([2])), ValueError, "holds no matrices"),
        (lambda: L.lu(paddle.eye(2), pivot=False), ValueError, "pivot=False"),
        (lambda: L.qr(paddle.eye(2), "full"), ValueError, "'reduced', 'complete' or 'r'"),
        (lambda: L.eigh(paddle.eye(2), "X"), ValueError, "the triangle to read"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- einsum ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iii->i", [(3, 3, 3)]),
        ("iij->j", [(3, 3, 2)]),
        ("iijj->ij", [(2, 2, 3, 3)]),
        ("i,i->", [(3,), (3,)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ijk->ki", [(2, 3, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("a,b,c->cba", [(2,), (3,), (4,)]),
        ("abc,cd->", [(2, 3, 4), (4, 2)]),
        ("ij,j->i", [(2, 3), (1,)]),
        ("...ij->...ji", [(2, 3, 4)]),
        ("...ij,...jk->...ik", [(5, 1, 3, 4), (2, 4, 3)]),
        ("i...,i...->...", [(3, 2, 2), (3, 2, 2)]),
        ("...,...->...", [(2, 3), (3,)]),
        ("...->", [(2, 3)]),
        (" i j -> j i ", [(2, 3)]),
        ("->", [()]),
        ("ij,jk->ik", [(0, 3), (3, 2)]),
    ],
)
def test_einsum(equation, shapes):
    arrays = [rng.standard_normal(s) for s in shapes]
    check(lambda *x: paddle.einsum(equation, *x), lambda *x: torch.einsum(equation, *x), *arrays)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "names 2 operands"),
        ("ij->ij", [(2, 3, 4)], "operand of 3 axes"),
        ("ijk->i", [(2, 3)], "operand of 2 axes"),
        ("i1->i", [(2, 3)], "a letter for each axis"),
        ("ij->ik", [(2, 3)], "labels of the operands, each once"),
        ("ij->ii", [(2, 3)], "labels of the operands, each once"),
        ("ij,jk->ik", [(2, 3), (4, 2)], "label 'j' is both 3 and 4"),
    ],
)
def test_einsum_refuses(equation, shapes, message):
    with pytest.raises(ValueError, match=message):
        paddle.einsum(equation, *map(paddle.ones, map(list, shapes)))
