"""Values at the edges of functions, as Paddle 3.3.1 computes them, where its documentation is
silent: single numbers, NaN, mixed dtypes, older signatures.
"""

from math import inf, nan

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F


def tensor(values, dtype="float32"):
    return paddle.to_tensor(np.array(values, dtype))


def gradient(function, values):
    x = paddle.to_tensor(np.array(values, "float32"), stop_gradient=False)
    function(x).sum().backward()
    return x.grad


CUBE, TURNED = np.arange(24).reshape(2, 3, 4), np.arange(24).reshape(3, 2, 4)
DIAGONALS = [np.diag([3.0, 1.0, 0.01]), np.eye(3)]
STRANGE, LOG_P = [[nan, 1.0], [inf, 2.0]], [[-1.0, -2.0], [-3.0, -1.0], [-0.5, -0.6]]
BIT, COLUMN = np.frombuffer(b"\x00\x01\x02\xff", bool), np.array([[0], [1], [1]])


def dotted(axes):
    return paddle.tensordot(tensor(CUBE), tensor(TURNED), axes).sum()


def ranks(**how):
    return paddle.linalg.matrix_rank(tensor(DIAGONALS), **how)


def middle(mode):
    return lambda x: paddle.median(x, axis=-1, mode=mode)[0] if mode == "min" else paddle.median(x)


def nll(**how):
    return lambda x: F.nll_loss(x, paddle.to_tensor(COLUMN), **how)


def soft(x):
    label = tensor([[0.5, 0.0, 0.5]])
    return F.cross_entropy(x, label, soft_label=True, reduction="none")


def some_ignored(x):
    return F.cross_entropy(x, paddle.to_tensor([0, -100]), reduction="sum")


@pytest.mark.parametrize(
    ("run", "dtype", "expected"),
    [
        (lambda: paddle.range(1, 5), "float32", [1.0, 2, 3, 4, 5]),
        (lambda: paddle.range(0, 1, 0.25), "float32", [0, 0.25, 0.5, 0.75, 1]),
        (lambda: paddle.range(1, 5, 1, "int64"), "int64", [1, 2, 3, 4, 5]),
        (lambda: dotted([[0, 1], [1, 0], [2]]), "float32", 15896.0),
        (lambda: dotted([[0], [1], [5]]), "float32", 41544.0),
        (lambda: ranks(tol=tensor([0.5, 2.0])), "int64", [2, 0]),
        (lambda: ranks(tol=tensor([[0.5], [2.0]])), "int64", [[2, 3], [1, 0]]),
        (lambda: ranks(tol=tensor([0.5, 2.0]), hermitian=True), "int64", [2, 0]),
        (lambda: ranks(rtol=tensor([0.5, 2.0])), "int64", [1, 0]),
        (lambda: paddle.linalg.matrix_rank(tensor(DIAGONALS[0]), tol=tensor([0.5, 2.0])),
         "int64", [2, 1]),
        (lambda: paddle.median(tensor([1.0, nan, 3, 2]), axis=-1, mode="min")[1], "int64", 1),
        (lambda: gradient(middle("min"), [1.0, nan, nan, 2]), "float32", [0.0, 1, 0, 0]),
        (lambda: gradient(middle("avg"), [nan, nan, 1.0]), "float32", [0.5, 0.5, 0]),
        (lambda: paddle.ldexp(tensor(1.5, "float64"), tensor([3], "int32")), "float64", [12.0]),
        (lambda: paddle.cumsum(tensor(2.5), axis=0), "float32", 2.5),
        (lambda: paddle.cumsum(tensor(2.5)), "float32", [2.5]),
        (lambda: paddle.cummax(tensor(2.5), axis=-1)[1], "int64", 0),
        (lambda: paddle.logcumsumexp(tensor(2.5), axis=0), "float32", 2.5),
        (lambda: F.thresholded_relu(tensor([nan, inf, 2.0, 0.0])), "float32", [nan, inf, 2, 0]),
        (lambda: paddle.addmm(tensor(STRANGE), *[paddle.eye(2)] * 2, beta=0), "float32",
         [[1.0, 0], [0, 1]]),
        (lambda: paddle.addmm(paddle.eye(2), tensor(STRANGE), paddle.eye(2), alpha=0),
         "float32", [[1.0, 0], [0, 1]]),
        (lambda: gradient(lambda x: paddle.addmm(x, *[paddle.eye(2)] * 2, beta=0), STRANGE),
         "float32", [[0.0, 0], [0, 0]]),
        (lambda: paddle.logit(tensor([0.0, 0.5, 1.5, -0.5]), eps=0.0), "float32",
         [-inf, 0, nan, nan]),
        (lambda: gradient(paddle.logit, [0.5, 1.5, -0.5]), "float32", [4.0, nan, nan]),
        (lambda: gradient(lambda x: paddle.logit(x, eps=0.1), [0.0, 0.5, nan]), "float32",
         [0.0, 4, nan]),
        (lambda: gradient(nll(reduction="none"), LOG_P), "float32", [[-1.0, 0], [0, -1], [0, -1]]),
        (lambda: gradient(nll(weight=tensor([1.0, 2.0]), reduction="sum"), LOG_P), "float32",
         [[-1.0, 0], [0, -2], [0, -2]]),
        (lambda: nll(reduction="none")(tensor(LOG_P)), "float32", [1.0, 1, 0.6]),
        (lambda: F.soft_margin_loss(tensor([1, 2]), tensor([1, 1], "int64")), "float32",
         0.2200948),
        (lambda: F.soft_margin_loss(tensor([1, 2], "int64"), tensor([1, 1])), "float32",
         0.2200948),
        (lambda: soft(tensor([[0.0, -inf, 1.0]])), "float32", [[0.8132616]]),
        (lambda: gradient(soft, [[0.0, -inf, 1.0]]), "float32", [[-0.23105857, 0, 0.23105857]]),
        (lambda: gradient(some_ignored, [[0.0, 0.0], [nan, 1.0]]), "float32",
         [[-0.5, 0.5], [0, 0]]),
        (lambda: paddle.to_tensor(BIT).astype("int32").sum(), "int64", 3),
        (lambda: paddle.from_dlpack(BIT).sum(), "int64", 3),
        (lambda: tensor([0, 2, 255], "uint8").view("bool").astype("int32"), "int32", [0, 1, 1]),
    ],
)  # fmt: skip
def test_values(run, dtype, expected):
    y = run()
    assert (y.dtype.name, y.shape) == (dtype, list(np.shape(expected)))
    np.testing.assert_allclose(y.numpy(), expected, 1e-5, equal_nan=True)


def test_there_is_nothing_to_select_along_in_a_single_number():
    with pytest.raises(ValueError, match="an axis to select along"):
        paddle.index_select(tensor(2.5), paddle.to_tensor([0]))


@pytest.mark.parametrize(
    ("mode", "corners", "align_mode", "count"),
    [("bilinear", False, 0, 25), ("bilinear", True, 0, 25), ("bilinear", False, 1, 16),
     ("bicubic", False, 0, 49), ("bicubic", True, 0, 49)],
)  # fmt: skip
def test_one_nan_stays_in_its_corner_of_an_image(mode, corners, align_mode, count):
    x = np.ones([1, 1, 4, 4], "float32")
    x[0, 0, 1, 1] = nan
    how = {"mode": mode, "align_corners": corners, "align_mode": align_mode}
    y = F.interpolate(paddle.to_tensor(x), scale_factor=2, **how)
    assert np.isnan(y.numpy()).sum() == count


def test_windows_that_share_an_axis_unevenly_keep_a_nan_apart():
    x = np.ones([1, 1, 7, 7], "float32")
    x[0, 0, 1, 3] = nan
    assert np.isnan(F.adaptive_avg_pool2d(paddle.to_tensor(x), 3).numpy()).sum() == 1
