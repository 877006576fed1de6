"""Jacobians, Hessians and Hessian-vector products against formulas."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.autograd import hessian, hessian_vector, jacobian

A = np.array([0.3, -1.2, 2.0])
B = np.array([[0.7, 1.1, -0.4], [0.2, -0.5, 0.9]])


def leaf(data):
    return paddle.to_tensor(data, dtype="float64", stop_gradient=False)


def f(x, w):
    """One number of both."""
    return (((w @ x).tanh() ** 2).sum() * x.exp().sum()) * (w * w).sum()


def slopes(x, w):
    """The derivatives of `f` by x and w, as one row."""
    y = np.tanh(w @ x)
    squares, exponents, weights = (y * y).sum(), np.exp(x).sum(), (w * w).sum()
    inner = 2 * y * (1 - y * y) * exponents * weights
    by_x = w.T @ inner + squares * np.exp(x) * weights
    by_w = np.outer(inner, x) + 2 * w * squares * exponents
    return np.concatenate([by_x, by_w.ravel()])


def second(by_x, by_w):
    """The derivative of `slopes` in a direction, to the last bit: by an imaginary step."""
    tiny = 1e-30
    return slopes(A + 1j * tiny * by_x, B + 1j * tiny * by_w).imag / tiny


def test_hessian():
    x, w = leaf(A), leaf(B)
    found = hessian(f(x, w), (x, w))
    shapes = [[tuple(block.shape) for block in row] for row in found]
    assert shapes == [[(3, 3), (3, 2, 3)], [(2, 3, 3), (2, 3, 2, 3)]]
    sizes = A.size, B.size
    blocks = [[b.numpy().reshape(n, -1) for b in row] for n, row in zip(sizes, found, strict=True)]
    expected = [second(unit[:3], unit[3:].reshape(2, 3)) for unit in np.eye(9)]
    np.testing.assert_allclose(np.block(blocks), expected, rtol=1e-10)


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
    ours = np.concatenate([part.numpy().ravel() for part in found])
    np.testing.assert_allclose(ours, second(*vectors), rtol=1e-10)


def test_jacobian():
    x, w = leaf(A), leaf(B)
    found = jacobian([w @ x, x * x], (x, w))
    by_w = np.eye(2)[:, :, None] * A
    expected = [[B, by_w], [np.diag(2 * A), np.zeros((3, 2, 3))]]
    for row, right in zip(found, expected, strict=True):
        for block, other in zip(row, right, strict=True):
            np.testing.assert_allclose(block.numpy(), other, strict=True)
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
