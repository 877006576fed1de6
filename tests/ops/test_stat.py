"""Statistics: spreads, quantiles, histograms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.testing import check_grad

NAN, INF = math.nan, math.inf
X = np.random.default_rng(0).standard_normal((3, 4, 2))


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 2]], ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("unbiased", [False, True])
def test_spread(name, axis, keepdim, unbiased):
    plain = tuple(axis) if isinstance(axis, list) else axis
    expected = getattr(np, name)(X, axis=plain, ddof=int(unbiased), keepdims=keepdim)
    ours = getattr(paddle, name)(paddle.to_tensor(X), axis, unbiased, keepdim)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)
    check_grad(lambda x: getattr(x, name)(axis, unbiased), X, order=2, atol=1e-6)


def test_spread_of_one_and_its_older_arguments():
    assert math.isnan(paddle.var(paddle.to_tensor([1.0])).item())
    x = paddle.to_tensor([1.0, 2.0, 4.0])
    assert paddle.var(x).item() == pytest.approx(7 / 3)
    assert paddle.var(x, correction=0).item() == pytest.approx(14 / 9)
    assert paddle.var(x, unbiased=False, correction=1).item() == pytest.approx(14 / 9)
    assert paddle.var(x, correction=2).item() == pytest.approx(14 / 3)


def test_nanmean():
    x = paddle.to_tensor([[NAN, 1.0, 3.0], [2.0, 4.0, 6.0]], stop_gradient=False)
    assert paddle.nanmean(x, 1).tolist() == [2.0, 4.0]
    assert paddle.nanmean(x, keepdim=True).shape == [1, 1]
    paddle.nanmean(x, 1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0.5, 0.5], [1 / 3] * 3], rtol=1e-6)
    assert math.isnan(paddle.nanmean(paddle.to_tensor([NAN])).item())
    assert paddle.nanmean(paddle.to_tensor([1, 2])).item() == 1.5


# ---- by order --------------------------------------------------------------------------------

shapes = st.sampled_from([(5,), (4,), (1,), (3, 4), (2, 3, 2), ()])
HOW = ["linear", "lower", "higher", "midpoint", "nearest"]


@settings(derandomize=True, max_examples=100)
@given(shapes, st.floats(0, 1), st.sampled_from(HOW), st.booleans(), st.data())
def test_quantile_is_numpys(shape, q, how, keepdim, data):
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    x = np.random.default_rng(1).standard_normal(shape)
    ours = paddle.quantile(paddle.to_tensor(x), q, axis, keepdim, how)
    expected = np.quantile(x, q, axis=axis, keepdims=keepdim, method=how)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)


@settings(derandomize=True, max_examples=50)
@given(st.floats(0, 1), st.sampled_from([None, 0, 1]), st.integers(0, 100))
def test_nanquantile_is_numpys(q, axis, seed):
    x = np.random.default_rng(seed).standard_normal((3, 4))
    x.flat[np.random.default_rng(seed).choice(12, 3, replace=False)] = NAN
    ours = paddle.nanquantile(paddle.to_tensor(x), q, axis)
    np.testing.assert_allclose(ours.numpy(), np.nanquantile(x, q, axis=axis), rtol=1e-12)


def test_several_shares_and_several_axes():
    x = paddle.to_tensor(X)
    ours = paddle.quantile(x, [0.25, 0.5, 1.0], [0, 2], keepdim=True)
    expected = np.quantile(X, [0.25, 0.5, 1.0], axis=(0, 2), keepdims=True)
    np.testing.assert_allclose(ours.numpy(), expected)
    by_tensor = paddle.quantile(x, paddle.to_tensor([0.25, 0.5]), 1)
    np.testing.assert_allclose(by_tensor.numpy(), np.quantile(X, [0.25, 0.5], axis=1), rtol=1e-6)
    assert paddle.quantile(x, paddle.to_tensor(0.5)).shape == []
    assert paddle.quantile(x, [0.5]).shape == [1]


def test_derivatives_of_quantiles():
    for how in ("linear", "lower", "midpoint"):
        check_grad(lambda x, how=how: x.quantile(0.3, 1, interpolation=how), X)
    check_grad(lambda x: paddle.median(x), X)
    check_grad(lambda x: paddle.median(x, 0, mode="min")[0], X)


def test_quantiles_of_strange_numbers():
    x = paddle.to_tensor([1.0, NAN, 3.0])
    assert math.isnan(x.quantile(0.5).item())
    assert math.isnan(x.median().item())
    assert paddle.nanquantile(x, 0.5).item() == 2.0
    assert paddle.nanmedian(x).item() == 2.0
    assert math.isnan(paddle.nanmedian(paddle.to_tensor([NAN, NAN])).item())
    assert paddle.to_tensor([INF, INF, 1.0]).median().item() == INF
    assert paddle.to_tensor([1, 2, 4]).quantile(0.25).item() == 1.5


def test_wrong_quantiles():
    x = paddle.to_tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"interpolation='cubic'\n.*linear, midpoint"):
        x.quantile(0.5, interpolation="cubic")
    for q in (1.5, [], [0.5, -1.0]):
        with pytest.raises(ValueError, match="shares between 0 and 1"):
            x.quantile(q)
    with pytest.raises(ValueError, match=r"float32\[0\] has nothing"):
        paddle.zeros([0]).quantile(0.5)
    assert math.isnan(paddle.zeros([0]).median().item())
    with pytest.raises(ValueError, match="mode='max'"):
        x.median(mode="max")


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_median(axis, keepdim):
    x = paddle.to_tensor(X)
    np.testing.assert_allclose(
        x.median(axis, keepdim).numpy(), np.median(X, axis=axis, keepdims=keepdim), rtol=1e-12
    )
    if axis is None:
        assert x.median(mode="min").item() == torch.tensor(X).median().item()
        return
    values, places = x.median(axis, keepdim, mode="min")
    expected = torch.tensor(X).median(axis, keepdim)
    np.testing.assert_array_equal(values.numpy(), expected.values.numpy())
    np.testing.assert_array_equal(places.numpy(), expected.indices.numpy())


def test_a_row_of_nan_has_no_place():
    """As Paddle 3.3.1 gives them."""
    rows = paddle.to_tensor([[NAN, NAN, NAN], [1, NAN, 2]])
    assert paddle.nanmedian(rows, 1, mode="min")[1].tolist() == [-1, 0]
    assert paddle.nanmedian(rows[0], 0, mode="min")[1].item() == 0
    assert paddle.nanmedian(rows, [0, 1], mode="min").item() == 1


def test_nanmedian_with_places():
    x = paddle.to_tensor([[NAN, 1.0, 2.0, 9.0], [3.0, 4.0, 5.0, 6.0]])
    values, places = paddle.nanmedian(x, 1, mode="min")
    assert (values.tolist(), places.tolist()) == ([2.0, 4.0], [2, 1])
    whole = paddle.to_tensor([3, 1, 2, 4])
    assert paddle.median(whole, mode="min").dtype == "int64"
    assert paddle.median(whole).item() == 2.5


# ---- counting --------------------------------------------------------------------------------


def test_bincount():
    x = paddle.to_tensor([1, 1, 3])
    assert paddle.bincount(x).tolist() == [0, 2, 0, 1]
    weighted = paddle.bincount(x, paddle.to_tensor([0.5, 1.0, 2.0]), minlength=6)
    assert weighted.tolist() == [0.0, 1.5, 0.0, 2.0, 0.0, 0.0]
    assert weighted.dtype == "float32"
    assert paddle.bincount(paddle.zeros([0], "int64"), minlength=2).tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"bincount of float32\[2\]"):
        paddle.bincount(paddle.ones([2]))
    with pytest.raises(ValueError, match="bincount"):
        paddle.bincount(paddle.to_tensor([-1, 2]))


def test_histogram():
    x = paddle.to_tensor([1.0, 2.0, 1.0])
    assert x.histogram(4, 0, 3).tolist() == [0, 2, 1, 0]
    assert x.histogram(4, 0, 3).dtype == "int64"
    assert x.histogram(4, 0, 3, weight=paddle.to_tensor([1.0, 2.0, 3.0])).tolist() == [0, 4, 2, 0]
    dense = paddle.histogram(x.astype("int64"), 4, 0, 3, density=True)
    np.testing.assert_allclose(dense.numpy(), [0, 8 / 9, 4 / 9, 0], rtol=1e-6)
    assert paddle.ones([3]).histogram(4).tolist() == [0, 0, 3, 0]
    assert paddle.to_tensor([5.0, 1.0]).histogram(2, 2, 3).tolist() == [0, 0]
    assert paddle.zeros([0]).histogram(2).tolist() == [0, 0]
    assert x.histogram(4, 7, 7).tolist() == x.histogram(4).tolist()  # equal ends stand for the data
    assert paddle.to_tensor(X).histogram(5).tolist() == np.histogram(X, 5)[0].tolist()
    with pytest.raises(ValueError, match="a histogram from 3 to 1"):
        x.histogram(4, 3, 1)


def test_histograms_of_a_program_span_its_data():
    def f(x):
        counts, ends = paddle.histogramdd(x, 2)
        return x.histogram(4), paddle.histogram_bin_edges(x, 4), counts, *ends

    static = paddle.jit.to_static(f)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(9, 2)).astype("float32")
        counts, ends = np.histogram(x, 4)
        grid, grid_ends = np.histogramdd(x, 2)
        for ours, expected in zip(static(paddle.to_tensor(x)), (counts, ends, grid, *grid_ends)):
            np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6)


def test_histogram_bin_edges():
    x = paddle.to_tensor([1.0, 3.0])
    assert paddle.histogram_bin_edges(x, 4).tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]
    assert paddle.histogram_bin_edges(paddle.to_tensor([1, 3]), 2, 0, 1).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("bins", [3, [2, 4]])
@pytest.mark.parametrize("density", [False, True])
def test_histogramdd(bins, density):
    points = X.reshape(-1, 2)
    ours, ends = paddle.histogramdd(paddle.to_tensor(points), bins, density=density)
    expected, expected_ends = np.histogramdd(points, bins, density=density)
    np.testing.assert_allclose(ours.numpy(), expected)
    for a, b in zip(ends, expected_ends, strict=True):
        np.testing.assert_allclose(a.numpy(), b)


def test_histogramdd_with_ranges_and_weights():
    points, weights = X.reshape(-1, 2), np.arange(12.0)
    ranges = [-1.0, 1.0, -2.0, 2.0]
    ours, ends = paddle.histogramdd(
        paddle.to_tensor(points), 2, ranges, weights=paddle.to_tensor(weights)
    )
    expected, _ = np.histogramdd(points, 2, [(-1, 1), (-2, 2)], weights=weights)
    np.testing.assert_allclose(ours.numpy(), expected)
    assert ends[1].tolist() == [-2.0, 0.0, 2.0]
    with pytest.raises(TypeError, match="histogramdd with tensors of ends"):
        paddle.histogramdd(paddle.to_tensor(points), paddle.to_tensor([0.0, 1.0]))
