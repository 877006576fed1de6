"""Operators compiled as C beside the interpreter (NumPy) and PyTorch: a part of `kernels`.

Each row is a program of one public function, on one thread, and where it can be differentiated, a
second row the function with its derivatives. All run in turn; the medians of the thread's processor
time are compared, which other work on the machine disturbs least. The floor is the time in which a
copy moves as many bytes as all inputs and results have.

Singular values and eigenvalues (lstsq, pinv, svd, eigh, eig) are computed in double, as NumPy
does; PyTorch's float32 is faster, and its errors are more than twice the interpreter's.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

import minipaddle as paddle
from minipaddle.nn import functional as F


class Row(NamedTuple):
    """A function of MiniPaddle, the same in PyTorch, and the arrays it is called on."""

    ours: object
    torch: object
    arrays: tuple


def rows(torch) -> dict[str, Row]:
    """The operators that are compared, by name."""
    rng, T = np.random.default_rng(0), torch.nn.functional
    normal = lambda *shape: rng.standard_normal(shape).astype("float32")
    whole = lambda high, *shape: rng.integers(0, high, shape)
    wide, image = normal(512, 1024), normal(8, 32, 56, 56)
    index, spots = whole(1024, 512, 256), whole(512, 20_000, 1)
    grid = np.clip(normal(8, 56, 56, 2), -1, 1)
    columns = normal(8, 32 * 9, 56 * 56)
    spd = (a := normal(64, 32, 32)) @ a.swapaxes(1, 2) + 32 * np.eye(32, dtype="float32")
    b, tall, few = normal(64, 32, 8), normal(64, 48, 32), normal(64, 48, 4)
    sizes = {"size": (112, 112), "mode": "bilinear", "align_corners": False}
    same = lambda name, *given, **how: Row(
        lambda *x: getattr(paddle, name)(*x, **how),
        lambda *x: getattr(torch, name)(
            *x, **{k.replace("axis", "dim"): v for k, v in how.items()}
        ),
        given,
    )
    cumulated = lambda name: Row(
        lambda x: getattr(paddle, name)(x, axis=-1)[1], lambda x: getattr(torch, name)(x, -1)[1],
        (wide,),
    )  # fmt: skip
    return {
        "argmax, last axis": same("argmax", wide, axis=-1),
        "argmax, first axis": same("argmax", wide, axis=0),
        "argmax, one row of 50,000": same("argmax", normal(1, 50_000), axis=-1),
        "cumsum, last axis": same("cumsum", wide, axis=-1),
        "cumsum, first axis": same("cumsum", wide, axis=0),
        "cumprod": Row(
            lambda x: paddle.cumprod(x, dim=-1), lambda x: torch.cumprod(x, -1), (wide,)
        ),
        "cummax": cumulated("cummax"),
        "logcumsumexp": same("logcumsumexp", wide, axis=-1),
        "topk, 5 of 1,024": Row(lambda x: paddle.topk(x, 5), lambda x: torch.topk(x, 5), (wide,)),
        "topk, 50 of 50,000": Row(
            lambda x: paddle.topk(x, 50), lambda x: torch.topk(x, 50), (normal(8, 50_000),)
        ),
        "sort": Row(lambda x: paddle.sort(x), lambda x: torch.sort(x)[0], (wide,)),
        "argsort": Row(
            lambda x: paddle.argsort(x), lambda x: torch.argsort(x, stable=True), (wide,)
        ),
        "sort, rows of 50,000": Row(
            lambda x: paddle.sort(x), lambda x: torch.sort(x)[0], (normal(8, 50_000),)
        ),
        "take_along_axis": Row(
            lambda x, i: paddle.take_along_axis(x, i, 1), lambda x, i: torch.gather(x, 1, i),
            (wide, index),
        ),
        "put_along_axis": Row(
            lambda x, i, v: paddle.put_along_axis(x, i, v, 1),
            lambda x, i, v: torch.scatter(x, 1, i, v), (wide, index, normal(512, 256)),
        ),
        "gather_nd": Row(
            lambda x, i: paddle.gather_nd(x, i), lambda x, i: x[i[:, 0]], (normal(512, 64), spots)
        ),
        "scatter_nd": Row(
            lambda i, v: paddle.scatter_nd(i, v, [512, 64]),
            lambda i, v: torch.zeros(512, 64).index_add_(0, i[:, 0], v),
            (spots, normal(20_000, 64)),
        ),
        "searchsorted": same("searchsorted", np.sort(normal(4096)), normal(200_000)),
        "histogram": Row(
            lambda x: paddle.histogram(x, 100, -3.0, 3.0), lambda x: torch.histc(x, 100, -3.0, 3.0),
            (normal(500_000),),
        ),
        "unfold": Row(
            lambda x: F.unfold(x, 3, paddings=1), lambda x: T.unfold(x, 3, padding=1), (image,)
        ),
        "fold": Row(
            lambda x: F.fold(x, [56, 56], 3, paddings=1),
            lambda x: T.fold(x, (56, 56), 3, padding=1), (columns,),
        ),
        "bilinear, twice as large": Row(
            lambda x: F.interpolate(x, **sizes), lambda x: T.interpolate(x, **sizes), (image,)
        ),
        "bicubic, twice as large": Row(
            lambda x: F.interpolate(x, **sizes | {"mode": "bicubic"}),
            lambda x: T.interpolate(x, **sizes | {"mode": "bicubic"}), (image,),
        ),
        "nearest, twice as large": Row(
            lambda x: F.interpolate(x, (112, 112)), lambda x: T.interpolate(x, (112, 112)),
            (image,),
        ),
        "grid_sample": Row(
            lambda x, g: F.grid_sample(x, g), lambda x, g: T.grid_sample(x, g, align_corners=True),
            (image, grid),
        ),
        "adaptive_avg_pool2d, 5": Row(
            lambda x: F.adaptive_avg_pool2d(x, 5), lambda x: T.adaptive_avg_pool2d(x, 5), (image,)
        ),
        "adaptive_avg_pool2d, 7": Row(
            lambda x: F.adaptive_avg_pool2d(x, 7), lambda x: T.adaptive_avg_pool2d(x, 7), (image,)
        ),
        "max_pool2d": Row(
            lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: T.max_pool2d(x, 3, 2, 1), (image,)
        ),
        "avg_pool2d": Row(
            lambda x: F.avg_pool2d(x, 3, 2, 1, exclusive=False),
            lambda x: T.avg_pool2d(x, 3, 2, 1), (image,),
        ),
        "adaptive_max_pool2d, 5": Row(
            lambda x: F.adaptive_max_pool2d(x, 5), lambda x: T.adaptive_max_pool2d(x, 5), (image,)
        ),
        "cholesky": Row(paddle.linalg.cholesky, torch.linalg.cholesky, (spd,)),
        "solve": Row(paddle.linalg.solve, torch.linalg.solve, (spd, b)),
        "inverse": Row(paddle.linalg.inv, torch.linalg.inv, (spd,)),
        "det": Row(paddle.linalg.det, torch.linalg.det, (spd,)),
        "slogdet": Row(
            paddle.linalg.slogdet, lambda x: torch.stack([*torch.linalg.slogdet(x)]), (spd,)
        ),
        "lstsq": Row(
            lambda x, y: paddle.linalg.lstsq(x, y)[0],
            lambda x, y: torch.linalg.lstsq(x, y, driver="gelsd").solution, (tall, few),
        ),
        "triangular_solve": Row(
            lambda x, y: paddle.linalg.triangular_solve(x, y, upper=False),
            lambda x, y: torch.linalg.solve_triangular(x, y, upper=False), (spd, b),
        ),
        "pinv": Row(paddle.linalg.pinv, torch.linalg.pinv, (tall,)),
        "lu": Row(lambda x: paddle.linalg.lu(x)[0], lambda x: torch.linalg.lu_factor(x)[0], (spd,)),
        "matrix_exp": Row(paddle.linalg.matrix_exp, torch.linalg.matrix_exp, (spd / 64,)),
        "eig": Row(paddle.linalg.eig, torch.linalg.eig, (spd,)),
        "qr": Row(paddle.linalg.qr, torch.linalg.qr, (spd,)),
        "svd": Row(
            lambda x: paddle.linalg.svd(x), lambda x: torch.linalg.svd(x, full_matrices=False),
            (spd,),
        ),
        "eigh": Row(paddle.linalg.eigh, torch.linalg.eigh, (spd,)),
    }  # fmt: skip


def medians(functions, seconds: float = 0.3) -> list[float]:
    """The median time of each function, run in turn."""
    times, end = [[] for _ in functions], time.thread_time() + seconds * len(functions)
    for f in functions:
        f()
    while len(times[0]) < 5 or time.thread_time() < end:
        for f, own in zip(functions, times, strict=True):
            start = time.thread_time()
            f()
            own.append(time.thread_time() - start)
    return [float(np.median(own)) for own in times]


def compiled(function, backend: str, tensors):
    """A call of the function as a program on an executor."""
    program = paddle.jit.to_static(function, backend=backend)
    return lambda: program(*tensors)


def leaves(x) -> list:
    """The tensors of a result."""
    return [y for part in x for y in leaves(part)] if isinstance(x, list | tuple) else [x]


NOT_DIFFERENTIATED = {"eig"}
"""Rows without derivatives: PyTorch wants those of eigenvectors to be free of their phase."""


def derivatives(row: Row, cotangents: list) -> Row:
    """A function with the derivatives of all its results of floats, by its inputs of floats."""

    def both(function, grad, is_float):
        def results(*given):
            n = len(given) - len(cotangents)
            ys = leaves(function(*given[:n]))
            moving = [x for x in given[:n] if is_float(x)]
            return [*ys, *grad([y for y in ys if is_float(y)], moving, [*given[n:]])]

        return results

    import torch

    ours = both(row.ours, paddle.grad, lambda x: x.is_floating_point())
    theirs = both(row.torch, torch.autograd.grad, lambda x: x.is_floating_point())
    return Row(ours, theirs, (*row.arrays, *cotangents))


def compare(only=()) -> None:
    """Print a line for each operator: times in microseconds, and ratios to PyTorch."""
    try:
        import torch
    except ImportError:
        print("\noperators: no PyTorch to compare with")
        return
    torch.set_num_threads(1)
    print(
        f"\n{'operator, µs':>34}{'NumPy':>10}{'C':>10}{'PyTorch':>10}{'copy':>8}{'C/PyTorch':>11}"
    )
    rng = np.random.default_rng(1)
    for name, row in rows(torch).items():
        if only and not any(part in name for part in only):
            continue
        found = line(name, row)
        cotangents = [
            rng.standard_normal(y.shape).astype(y.dtype) for y in found if y.dtype.kind == "f"
        ]
        if cotangents and name not in NOT_DIFFERENTIATED:
            line("and derivative", derivatives(row, cotangents), moving=len(row.arrays))


def line(name: str, row: Row, moving: int = 0) -> list:
    """Print the line of a row, and return the results. The first `moving` arrays, those of floats,
    are differentiated by.
    """
    import torch

    peers = [torch.from_numpy(a) for a in row.arrays]
    for x in peers[:moving]:
        x.requires_grad_(x.is_floating_point())
    still = [not x.requires_grad for x in peers]
    tensors = [paddle.to_tensor(a, stop_gradient=k) for a, k in zip(row.arrays, still, strict=True)]
    ours = [compiled(row.ours, backend, tensors) for backend in ("interpreter", "native")]
    found = [y.numpy() for y in leaves(ours[0]())]
    source = np.zeros(sum(a.nbytes for a in (*row.arrays, *found)), "uint8")
    target = np.zeros_like(source)
    calls = *ours, lambda: row.torch(*peers), lambda: np.copyto(target, source)
    with torch.set_grad_enabled(moving > 0):
        old, new, peer, floor = (1e6 * t for t in medians(calls))
    text = f"{name:>34}{old:10.0f}{new:10.0f}{peer:10.0f}{floor / 2:10.0f}{new / peer:10.2f}"
    print(text, flush=True)
    return found
