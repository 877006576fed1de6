"""Sorting, searching and distinct values against PyTorch and NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minipaddle as paddle

T = paddle.to_tensor
NAN = float("nan")
ARRAYS = hnp.arrays("int64", hnp.array_shapes(min_dims=1, max_dims=3), elements=st.integers(0, 4))
SETTINGS = settings(max_examples=60, derandomize=True, deadline=None)


@SETTINGS
@given(ARRAYS, st.booleans(), st.data())
def test_order(a, descending, data):
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    want = torch.tensor(a).sort(dim=axis, descending=descending, stable=True)
    assert paddle.sort(T(a), axis, descending).tolist() == want.values.tolist()
    assert paddle.argsort(T(a), axis, descending).tolist() == want.indices.tolist()


@SETTINGS
@given(ARRAYS, st.booleans(), st.data())
def test_topk_and_kthvalue(a, largest, data):
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    k = data.draw(st.integers(1, a.shape[axis]))
    values, places = paddle.topk(T(a), k, axis, largest)
    assert values.tolist() == torch.tensor(a).topk(k, axis, largest).values.tolist()
    assert np.take_along_axis(a, places.numpy(), axis).tolist() == values.tolist()
    value, place = paddle.kthvalue(T(a), k, axis, keepdim=True)
    assert value.tolist() == torch.tensor(a).kthvalue(k, axis, True).values.tolist()
    assert np.take_along_axis(a, place.numpy(), axis).tolist() == value.tolist()
    assert paddle.kthvalue(T(a), k, axis)[0].tolist() == value.squeeze(axis).tolist()


@SETTINGS
@given(ARRAYS, st.data())
def test_mode(a, data):
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    value, place = paddle.mode(T(a), axis, keepdim=True)
    want = torch.tensor(a).mode(axis, True)
    assert value.tolist() == want.values.tolist()
    assert np.take_along_axis(a, place.numpy(), axis).tolist() == value.tolist()
    assert paddle.mode(T(a), axis)[1].tolist() == place.squeeze(axis).tolist()


@SETTINGS
@given(ARRAYS, st.data())
def test_unique(a, data):
    axis = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    ours = paddle.unique(T(a), True, True, True, axis)
    y, first, which, counts = np.unique(a, True, True, True, axis=axis)
    for mine, want in zip(ours, (y, first, which.reshape(-1), counts), strict=True):
        assert mine.tolist() == want.tolist()
    assert paddle.unique(T(a), axis=axis).tolist() == y.tolist()


@SETTINGS
@given(ARRAYS, st.data())
def test_unique_consecutive(a, data):
    axis = data.draw(st.none() | st.integers(0, a.ndim - 1))
    values, which, counts = paddle.unique_consecutive(T(a), True, True, axis, "int32")
    want = torch.unique_consecutive(torch.tensor(a), True, True, axis)
    assert values.tolist() == want[0].tolist()
    assert which.tolist() == want[1].reshape(-1).tolist()
    assert counts.tolist() == want[2].tolist()
    assert which.dtype == counts.dtype == "int32"


@SETTINGS
@given(ARRAYS, st.booleans(), st.data())
def test_searchsorted(a, right, data):
    rows = np.sort(a, -1)
    values = data.draw(hnp.arrays("int64", (*a.shape[:-1], 3), elements=st.integers(-1, 5)))
    want = torch.searchsorted(torch.tensor(rows), torch.tensor(values), right=right)
    assert paddle.searchsorted(T(rows), T(values), right=right).tolist() == want.tolist()


@SETTINGS
@given(hnp.arrays(bool, hnp.array_shapes(min_dims=1, max_dims=3)))
def test_nonzero(a):
    want = torch.tensor(a).nonzero()
    assert paddle.nonzero(T(a)).tolist() == want.tolist()
    assert [p.tolist() for p in paddle.nonzero(T(a), as_tuple=True)] == want.T.tolist()
    assert [p.tolist() for p in paddle.where(T(a))] == want.T.tolist()


def test_nan_is_the_largest():
    x = T([3.0, NAN, 1.0])
    assert paddle.argsort(x).tolist() == [2, 0, 1]
    assert paddle.argsort(x, descending=True).tolist() == [1, 0, 2]
    assert paddle.sort(x, descending=True).tolist()[1:] == [3, 1]
    assert paddle.topk(x, 1)[1].tolist() == [1]


def test_numbers_have_an_order_too():
    x = T(3.0, stop_gradient=False)
    results = [paddle.sort(x), *paddle.topk(x, 1), *paddle.kthvalue(x, 1), *paddle.mode(x)]
    results += [paddle.argsort(x)]
    assert [y.shape for y in results] == [[]] * 8
    paddle.sort(x).backward()
    assert x.grad.item() == 1


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda x: paddle.sort(x, 0), lambda x: x.sort(0).values),
        (lambda x: paddle.sort(x, descending=True), lambda x: x.sort(descending=True).values),
        (lambda x: paddle.topk(x, 2)[0], lambda x: x.topk(2).values),
        (lambda x: paddle.topk(x, 2, 0, False)[0], lambda x: x.topk(2, 0, False).values),
        (lambda x: paddle.kthvalue(x, 2)[0], lambda x: x.kthvalue(2).values),
        (lambda x: paddle.mode(x, 0, True)[0], lambda x: x.mode(0, True).values),
        (
            lambda x: paddle.where(x > 0, x, 2.0),
            lambda x: torch.where(x > 0, x, torch.tensor(2.0)),
        ),
    ],
)
def test_gradients(ours, theirs):
    a = np.random.default_rng(1).standard_normal((3, 5))
    x, t = T(a, stop_gradient=False), torch.tensor(a, requires_grad=True)
    y, want = ours(x), theirs(t)
    (g,) = paddle.grad(y * y, x, create_graph=True)
    (hoped,) = torch.autograd.grad((want * want).sum(), t, create_graph=True)
    np.testing.assert_allclose(g.numpy(), hoped.detach().numpy(), rtol=1e-6)
    (second,) = paddle.grad(g * g, x)
    (hoped,) = torch.autograd.grad((hoped * hoped).sum(), t)
    np.testing.assert_allclose(second.numpy(), hoped.numpy(), rtol=1e-6)


def test_searchsorted_options():
    row, values = T([1.0, 3.0, 5.0]), T([[3.0]])
    assert paddle.searchsorted(row, values, out_int32=True).dtype == "int32"
    assert paddle.searchsorted(row, values, side="right").tolist() == [[2]]
    assert paddle.searchsorted(row, T(4.0)).item() == 2
    shuffled, sorter = T([5.0, 1.0, 3.0]), T([1, 2, 0])
    assert paddle.searchsorted(shuffled, values, sorter=sorter).tolist() == [[1]]
    assert paddle.bucketize(values, row, right=True).tolist() == [[2]]
    assert paddle.searchsorted(paddle.zeros([0, 3]), paddle.zeros([0, 2])).shape == [0, 2]


ERRORS = [
    (lambda: paddle.where(T([True]), T([1.0])), ValueError, "both of them"),
    (lambda: paddle.topk(T([1.0]), 2), ValueError, "k=2 elements of the 1"),
    (lambda: paddle.topk(T([1.0]), 0), ValueError, "k=0"),
    (lambda: paddle.kthvalue(T([1.0]), 2), ValueError, "k=2"),
    (lambda: paddle.sort(T([1.0]), 1), ValueError, "axis 1 is out of range"),
    (lambda: paddle.bucketize(T([1.0]), T([[1.0]])), ValueError, "a vector"),
    (lambda: paddle.searchsorted(T([[1.0]]), T([1.0])), ValueError, "serves values of shape"),
    (lambda: paddle.searchsorted(T([1.0]), T([1.0]), side="up"), ValueError, "side='up'"),
    (lambda: paddle.unique(T([1]), axis=2), ValueError, "axis 2"),
]


@pytest.mark.parametrize("k", range(len(ERRORS)))
def test_errors_teach(k):
    call, error, words = ERRORS[k]
    with pytest.raises(error, match=words):
        call()
