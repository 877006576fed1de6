"""Reductions and scans as users call them: axes, dtypes, nothing to reduce, nan and inf."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.testing import check_grad

NAN, INF = math.nan, math.inf
X = np.random.default_rng(0).standard_normal((2, 3, 4))
words = str.split

REDUCE = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "amax": np.max,
    "amin": np.min,
    "mean": np.mean,
    "logsumexp": lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis, keepdims=keepdims)),
    "nansum": np.nansum,
    "count_nonzero": lambda x, axis, keepdims: np.sum(x != 0, axis, keepdims=keepdims),
}
AXES = [None, 0, -1, [0, 2], (1,), [], [-1, 0]]


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_axes(name, axis, keepdim):
    plain = axis if isinstance(axis, int) else tuple(axis) if axis else None
    expected = REDUCE[name](X, axis=plain, keepdims=keepdim)
    for ours in (
        getattr(paddle, name)(paddle.to_tensor(X), axis, keepdim=keepdim),
        getattr(paddle.to_tensor(X), name)(axis=axis, keepdim=keepdim),
    ):
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)


shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@settings(derandomize=True, max_examples=150)
@given(shapes, st.data())
def test_any_shape_any_axes(shape, data):
    axes = data.draw(st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True))
    axes = [a for a in axes if a < len(shape)]
    keepdim = data.draw(st.booleans())
    x = np.random.default_rng(1).integers(-3, 4, shape).astype(float)
    plain = tuple(axes) or None
    for name in ("sum", "prod", "all", "any"):
        ours = getattr(paddle, name)(paddle.to_tensor(x), axes, keepdim=keepdim)
        np.testing.assert_array_equal(
            ours.numpy(), getattr(np, name)(x, axis=plain, keepdims=keepdim)
        )


# Paddle 3.3.1, input dtype -> result dtype
DTYPES = {
    "sum": {"bool": "int64", "int32": "int64", "int8": "int8", "int64": "int64"},
    "mean": {"int32": "int32", "int64": "int64"},
    "prod": {"int32": "int32", "int64": "int64"},
    "max": {"int32": "int32"},
    "cumsum": {"uint8": "int64", "int32": "int64", "bool": "int64"},
    "cumprod": {"int32": "int32"},
    "logsumexp": {"int32": "float32"},
    "logcumsumexp": {"int64": "float32"},
    "nansum": {"int32": "int64"},
    "count_nonzero": {"float32": "int64", "bool": "int64"},
    "argmax": {"float32": "int64"},
    "all": {"float32": "bool", "int32": "bool"},
    "any": {"float32": "bool", "int32": "bool"},
    "var": {"int64": "float32"},
    "std": {"int64": "float32"},
    "median": {"int64": "float32", "float16": "float32"},
}


@pytest.mark.parametrize(
    ("name", "given", "result"), [(n, a, b) for n, row in DTYPES.items() for a, b in row.items()]
)
def test_dtypes_are_paddles(name, given, result):
    assert getattr(paddle.to_tensor([1, 0, 1], dtype=given), name)().dtype == result


@pytest.mark.parametrize("name", words("sum prod mean max min cumsum cumprod logsumexp"))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floating_dtypes_stay(name, dtype):
    assert getattr(paddle.to_tensor([1.0, 2.0], dtype=dtype), name)(0).dtype == dtype


def test_dtype_argument():
    x = paddle.to_tensor([1.7, 1.7])
    assert paddle.sum(x, dtype="int64").item() == 2
    assert paddle.prod(x, dtype="float64").dtype == "float64"
    assert paddle.mean(paddle.to_tensor([1, 2]), dtype="float32").item() == 1.5
    assert paddle.cumsum(x, dtype="int64").tolist() == [1, 2]
    assert x.cumprod(0, dtype="float64").dtype == "float64"
    assert paddle.nansum(x, dtype="float64").dtype == "float64"


def test_mean_of_halves_does_not_overflow():
    x = paddle.full([1000, 1000], 1.0, dtype="float16")
    assert paddle.mean(x).item() == 1.0


def test_mean_of_whole_numbers_rounds_to_zero():
    assert paddle.mean(paddle.to_tensor([-1, -2])).item() == -1
    assert paddle.mean(paddle.to_tensor([1, 2])).item() == 1


# ---- nothing to reduce -----------------------------------------------------------------------


def test_over_nothing():
    empty = paddle.zeros([0, 3])
    assert empty.sum(0).tolist() == [0.0] * 3
    assert empty.prod(0).tolist() == [1.0] * 3
    assert empty.all().item() is True
    assert empty.any().item() is False
    assert math.isnan(empty.mean().item())
    assert empty.max(1).shape == [0]
    assert empty.logsumexp(0).tolist() == [-math.inf] * 3
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(
            ValueError, match=rf"{name}\(.*float32\[0, 3\] has nothing along an axis"
        ):
            getattr(empty, name)(0)


def test_gradients_over_nothing():
    x = paddle.zeros([0, 3])
    x.stop_gradient = False
    (x.sum() + x.mean(1).sum() + x.prod(0).sum() + x.cumsum(0).sum()).backward()
    assert x.grad.shape == [0, 3]


def test_of_no_dimensions():
    x = paddle.to_tensor(3.0, stop_gradient=False)
    for name in words("sum prod mean max min logsumexp"):
        for axis in (None, 0, -1):
            assert getattr(x, name)(axis).item() == pytest.approx(3.0)
    assert x.cumsum().tolist() == [3.0]
    assert x.cumprod(0).shape == []
    assert paddle.argmax(x).item() == 0
    assert paddle.argmax(x, 0).item() == 0
    x.cumprod(0).backward()
    assert x.grad.item() == 1.0


# ---- errors ----------------------------------------------------------------------------------


def test_wrong_axes():
    x = paddle.ones([2, 3])
    with pytest.raises(ValueError, match=r"axis 2 is out of range for 2 dimensions: \[-2, 1\]"):
        x.sum(2)
    with pytest.raises(ValueError, match="names a dimension twice"):
        x.max([0, -2])
    with pytest.raises(TypeError):
        x.sum(0.5)
    with pytest.raises(ValueError, match="dtype='float32' for places"):
        x.argmax(dtype="float32")
    with pytest.raises(ValueError, match="dtype=None for places"):
        x.argmin(dtype=None)
    assert x.sum(paddle.to_tensor(1)).tolist() == [3.0, 3.0]
    assert x.sum(paddle.to_tensor([0, 1])).item() == 6.0


# ---- nan and inf -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "logsumexp"])
def test_nan_comes_through(name):
    x = paddle.to_tensor([1.0, NAN, 3.0], stop_gradient=False)
    y = getattr(x, name)()
    y.backward()
    assert math.isnan(y.item())
    assert math.isnan(x.grad[1].item()) == (name != "sum")


def test_nansum_passes_over_nan():
    x = paddle.to_tensor([1.0, NAN, 3.0], stop_gradient=False)
    x.nansum().backward()
    assert x.nansum().item() == 4.0
    assert x.grad.tolist() == [1.0, 0.0, 1.0]


def test_logsumexp_of_infinities():
    x = paddle.to_tensor([[-INF, -INF], [INF, 1.0], [-INF, 2.0]], stop_gradient=False)
    y = x.logsumexp(1)
    assert y.tolist() == [-INF, INF, 2.0]
    y[2].backward()
    assert x.grad[2].tolist() == [0.0, 1.0]
    x.clear_grad()
    x.logsumexp(1)[0].backward()
    assert x.grad[0].tolist() == [0.0, 0.0]


def test_equal_extrema_share_the_gradient():
    x = paddle.to_tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], stop_gradient=False)
    (x.max(1) * paddle.to_tensor([1.0, 3.0])).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0.5, 0.5], [1, 1, 1]])


# ---- products with zeros ---------------------------------------------------------------------


@pytest.mark.parametrize("row", [[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0] * 3])
def test_products_with_zeros_are_exact_to_second_order(row):
    check_grad(lambda x: x.prod(), row, order=2)
    check_grad(lambda x: x.cumprod(0), row, order=2)
    check_grad(lambda x: x.reshape([1, 3, 1]).prod([1, 2]), row, order=2)


# ---- scans -----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_scans(axis):
    x = paddle.to_tensor(X)
    flat = X.ravel() if axis is None else X
    at = 0 if axis is None else axis
    np.testing.assert_allclose(x.cumsum(axis).numpy(), flat.cumsum(at), rtol=1e-12)
    np.testing.assert_allclose(x.cumprod(axis).numpy(), flat.cumprod(at), rtol=1e-12)
    torch_flat = torch.tensor(flat)
    np.testing.assert_allclose(
        x.logcumsumexp(axis).numpy(), torch.logcumsumexp(torch_flat, at).numpy(), rtol=1e-12
    )
    for name in ("cummax", "cummin"):
        values, places = getattr(x, name)(axis)
        expected = getattr(torch, name)(torch_flat, at)
        np.testing.assert_array_equal(values.numpy(), expected.values.numpy())
        np.testing.assert_array_equal(places.numpy(), expected.indices.numpy())
        check_grad(lambda x, name=name: getattr(x, name)(axis)[0], X)


def test_running_extrema_as_paddle():
    values, places = paddle.cummax(paddle.to_tensor([1.0, 3.0, 3.0, 2.0]), dtype="int32")
    assert (values.tolist(), places.tolist()) == ([1.0, 3.0, 3.0, 3.0], [0, 1, 2, 2])
    assert places.dtype == "int32"
    values, places = paddle.cummin(paddle.to_tensor([1.0, NAN, 3.0, 0.0]))
    np.testing.assert_array_equal(values.numpy(), np.array([1, NAN, NAN, NAN], "float32"))
    assert places.tolist() == [0, 1, 1, 1]


def test_logcumsumexp_far_from_zero():
    x = np.array([-INF, -1000.0, -1001.0, 1000.0, 900.0])
    y = paddle.logcumsumexp(paddle.to_tensor(x))
    np.testing.assert_allclose(y.numpy(), torch.logcumsumexp(torch.tensor(x), 0).numpy())
    check_grad(paddle.logcumsumexp, [1000.0, -1000.0, 999.0], order=2)
    z = paddle.to_tensor([-INF, 1.0, 2.0], "float64", stop_gradient=False)
    paddle.logcumsumexp(z).sum().backward()
    assert np.isfinite(z.grad.numpy()).all()
    assert z.grad[0].item() == 0.0


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9])
def test_scans_of_any_length(n):
    x = np.random.default_rng(n).standard_normal(n)
    t = torch.tensor(x)
    y = paddle.to_tensor(x)
    np.testing.assert_allclose(y.logcumsumexp(0).numpy(), torch.logcumsumexp(t, 0).numpy())
    np.testing.assert_array_equal(y.cummax(0)[0].numpy(), np.maximum.accumulate(x))
    if n:
        check_grad(lambda x: x.cumprod(0), x, order=2)


# ---- places ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name):
    x = paddle.to_tensor(X)
    assert getattr(x, name)().item() == getattr(np, name)(X)
    for axis in (0, 1, -1):
        for keepdim in (False, True):
            ours = getattr(paddle, name)(x, axis, keepdim, "int32")
            expected = getattr(np, name)(X, axis, keepdims=keepdim)
            np.testing.assert_array_equal(ours.numpy(), expected)
            assert ours.dtype == "int32"
    assert getattr(x, name)(keepdim=True).shape == [1, 1, 1]
    assert paddle.argmax(paddle.to_tensor([1.0, 3.0, 3.0])).item() == 1
