"""Jacobians, Hessians and Hessian-vector products against PyTorch's."""

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle.autograd import hessian, hessian_vector, jacobian

A = np.array([0.3, -1.2, 2.0])
B = np.array([[0.7, 1.1, -0.4], [0.2, -0.5, 0.9]])


def leaf(data):
    return paddle.to_tensor(data, dtype="float64", stop_gradient=False)


def f(x, w):
    """One number of both, in either framework."""
    return (((w @ x).tanh() ** 2).sum() * x.exp().sum()) * (w * w).sum()


def test_hessian_is_pytorchs():
    x, w = leaf(A), leaf(B)
    ours = hessian(f(x, w), (x, w))
    theirs = torch.autograd.functional.hessian(f, (torch.tensor(A), torch.tensor(B)))
    for row, right in zip(ours, theirs, strict=True):
        for block, expected in zip(row, right, strict=True):
            assert tuple(block.shape) == tuple(expected.shape)
            np.testing.assert_allclose(block.numpy(), expected.numpy(), rtol=1e-10)


def test_hessian_of_one_input_is_one_tensor():
    x = leaf(A)
    np.testing.assert_allclose(hessian((x**3).sum(), x).numpy(), np.diag(6 * A))
    s = leaf(2.0)
    assert hessian(s**3, s).tolist() == 12.0
    assert hessian((x**2).sum().reshape([1]), x).shape == [3, 3]


def test_hessian_vector_is_the_product():
    x, w = leaf(A), leaf(B)
    vectors = [np.cos(A), np.sin(B)]
    found = hessian_vector(f(x, w), [x, w], [leaf(v) for v in vectors])
    _, expected = torch.autograd.functional.hvp(
        f, (torch.tensor(A), torch.tensor(B)), tuple(map(torch.tensor, vectors))
    )
    for ours, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), right.numpy(), rtol=1e-10)


def test_jacobian_is_pytorchs():
    x, w = leaf(A), leaf(B)
    ours = jacobian([w @ x, x * x], (x, w))
    theirs = torch.autograd.functional.jacobian(
        lambda x, w: (w @ x, x * x), (torch.tensor(A), torch.tensor(B))
    )
    for row, right in zip(ours, theirs, strict=True):
        for block, expected in zip(row, right, strict=True):
            np.testing.assert_allclose(block.numpy(), expected.numpy())
    assert jacobian(x.sum(), x).tolist() == [1.0] * 3
    assert [block.tolist() for block in jacobian(x.sum(), [x])] == [[1.0] * 3]


def test_what_nothing_leads_to_is_zero():
    x, other = leaf(A), leaf([1.0, 2.0])
    assert jacobian(x * x, other).tolist() == [[0.0, 0.0]] * 3
    (_, mixed), (_, own) = hessian((x**2).sum(), (x, other))
    assert mixed.tolist() == [[0.0, 0.0]] * 3
    assert own.tolist() == [[0.0, 0.0]] * 2
    assert hessian(x.sum(), x).tolist() == [[0.0] * 3] * 3  # the slope is constant
    assert jacobian(x[:0], x).shape == [0, 3]


def test_they_can_be_differentiated_again():
    x = leaf(A)
    (third,) = paddle.grad(hessian((x**4).sum(), x).sum(), x)
    np.testing.assert_allclose(third.numpy(), 24 * A)
    (slope,) = paddle.grad(jacobian(x**2, x).sum(), x)
    assert slope.tolist() == [2.0] * 3


def test_dtypes_stay():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    assert hessian((x * x).sum(), x).dtype == paddle.float32


def test_a_hessian_runs_on_what_is_plugged_in():
    x = leaf(A)
    with paddle.plugged("autograd.hessian_vector", lambda y, xs, vectors: vectors):
        assert hessian((x**3).sum(), x).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("function", [hessian, jacobian])
def test_batches_are_refused_by_name(function):
    x = leaf(A)
    with pytest.raises(NotImplementedError, match="batch_axis=0"):
        function((x * x).sum(), x, batch_axis=0)


def test_the_hessian_of_many_numbers_is_refused():
    x = leaf(A)
    with pytest.raises(ValueError, match="one number"):
        hessian(x * x, x)
