"""Matrices: products, decompositions, Einstein's sums."""

import numpy as np

from tests.programs.common import wave


def products(paddle):
    """Ways to multiply."""
    a, b = paddle.to_tensor(wave(2, 3)), paddle.to_tensor(wave(3, 4, phase=1.0))
    x, y = paddle.to_tensor(wave(3)), paddle.to_tensor(wave(3, phase=2.0))
    batch = paddle.to_tensor(wave(2, 2, 3))
    return {
        "matmul": paddle.matmul(a, b),
        "transposed": paddle.matmul(b, a, transpose_x=True, transpose_y=True),
        "method": a.matmul(b),
        "mm": paddle.mm(a, b),
        "bmm": paddle.bmm(batch, paddle.transpose(batch, [0, 2, 1])),
        "mv": paddle.mv(a, x),
        "dot": paddle.dot(x, y),
        "inner": paddle.inner(a, x),
        "outer": paddle.outer(x, y),
        "cross": paddle.cross(x, y),
        "kron": paddle.kron(a[:, :2], paddle.eye(2)),
        "addmm": paddle.addmm(paddle.ones([2, 4]), a, b, beta=0.5, alpha=2.0),
        "broadcast": paddle.matmul(batch, b).shape,
    }


def einstein(paddle):
    """`einsum` in the shapes people use it for."""
    a, b = paddle.to_tensor(wave(2, 3)), paddle.to_tensor(wave(3, 4, phase=1.0))
    q, k = paddle.to_tensor(wave(2, 5, 3, 4)), paddle.to_tensor(wave(2, 6, 3, 4, phase=1.0))
    s = paddle.to_tensor(wave(3, 3), stop_gradient=False)
    paddle.einsum("ij,ji->", s, s).backward()
    return {
        "matmul": paddle.einsum("ij,jk->ik", a, b),
        "implicit": paddle.einsum("ij,jk", a, b),
        "trace": paddle.einsum("ii->i", s.detach()),
        "outer": paddle.einsum("i,j->ij", a[0], b[0]),
        "attention": paddle.einsum("bqhd,bkhd->bhqk", q, k).sum(axis=-1),
        "bilinear": paddle.einsum("bi,ij,bj->b", a, s.detach(), a),
        "batch": paddle.einsum("...ij->...ji", q).shape,
        "grad": s.grad,
    }


def decompositions(paddle):
    """Factors put together again."""
    a = paddle.to_tensor(wave(3, 3, dtype="float64") + 2 * np.eye(3))
    spd = a @ a.T + paddle.eye(3, dtype="float64")
    lower = paddle.linalg.cholesky(spd)
    lu, pivots = paddle.linalg.lu(a)
    right = paddle.to_tensor(wave(3, 2, dtype="float64"))
    q, r = paddle.linalg.qr(a)
    return {
        "cholesky": lower,
        "back": paddle.allclose(lower @ lower.T, spd),
        "lu": [lu, pivots],
        "cholesky_solve": paddle.linalg.cholesky_solve(right, lower, upper=False),
        "qr": paddle.allclose(q @ r, a),
        "solve": paddle.linalg.solve(a, right),
        "inverse": paddle.inverse(a),
        "det": paddle.linalg.det(a),
        "power": paddle.linalg.matrix_power(a, 3),
        "triangle": paddle.linalg.triangular_solve(lower, right, upper=False),
    }


def triangles_and_diagonals(paddle):
    """Parts of a matrix."""
    x = paddle.to_tensor(np.arange(1.0, 13, dtype="float32").reshape(3, 4))
    return {
        "tril": paddle.tril(x),
        "triu": paddle.triu(x, diagonal=1),
        "diagonal": paddle.diagonal(x, offset=1),
        "trace": paddle.trace(x),
        "diag": paddle.diag(x[:, :3]),
        "flip": paddle.flip(x, axis=[0]),
        "t": paddle.t(x),
        "vandermonde": paddle.to_tensor([1.0, 2.0, 3.0]).unsqueeze(1) ** paddle.arange(3.0),
    }


def power_iteration(paddle):
    """The largest eigenvalue of a symmetric matrix, then of what remains without it."""
    base = paddle.to_tensor(wave(4, 4, dtype="float64"))
    matrix = paddle.matmul(base, base, transpose_y=True) + paddle.diag(
        paddle.to_tensor([4.0, 3.0, 2.0, 1.0], dtype="float64")
    )
    found = []
    for _ in range(2):
        v = paddle.ones([4], dtype="float64")
        for _ in range(300):
            v = paddle.mv(matrix, v)
            v = v / paddle.norm(v)
        eigenvalue = paddle.dot(v, paddle.mv(matrix, v))
        found.append(eigenvalue)
        matrix = matrix - eigenvalue * paddle.outer(v, v)
    return found


def least_squares(paddle):
    """A parabola through noisy points: normal equations, and ridge."""
    t = paddle.linspace(-1, 1, 9, dtype="float64")
    y = 1 + 2 * t - 3 * t**2 + 0.1 * paddle.to_tensor(wave(9, dtype="float64"))
    design = paddle.stack([paddle.ones_like(t), t, t**2], axis=1)
    gram, rhs = design.T @ design, design.T @ y.unsqueeze(-1)
    factor = paddle.linalg.cholesky(gram)
    plain = paddle.linalg.cholesky_solve(rhs, factor)
    ridge = paddle.linalg.solve(gram + 0.5 * paddle.eye(3, dtype="float64"), rhs)
    residual = y - (design @ plain).squeeze(-1)
    return plain.flatten(), ridge.flatten(), residual.norm()


def page_rank(paddle):
    """Who is linked to by whom, until it settles."""
    links = paddle.to_tensor(
        [[0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0, 0, 1, 0]], dtype="float32"
    )
    follow = links / links.sum(axis=1, keepdim=True)
    rank = paddle.full([4], 0.25)
    for _ in range(40):
        rank = 0.15 / 4 + 0.85 * paddle.matmul(follow, rank, transpose_x=True)
    return rank, paddle.argsort(rank, descending=True)
