"""Public mathematics: arguments as in Paddle, values and gradients as in torch."""

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle.testing import check_grad

X = np.random.default_rng(0).standard_normal((3, 4))
NAN = float("nan")


def t(x, dtype="float64"):
    return paddle.to_tensor(x, dtype)


def agree(ours, theirs, *arrays, order=2):
    """Values against torch, gradients to second order against central differences."""
    y = ours(*map(t, arrays))
    z = theirs(*map(torch.tensor, arrays))
    np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-10, atol=1e-12)
    if order:
        check_grad(ours, *arrays, order=order, atol=1e-6)


def test_faces_take_arguments_by_name_and_place():
    x, y = t(X), t(X + 1)
    np.testing.assert_array_equal(paddle.multiply(x=x, y=y, name="p").numpy(), X * (X + 1))
    np.testing.assert_array_equal(paddle.round(x, 1).numpy(), np.round(X, 1))
    np.testing.assert_array_equal(x.round(decimals=1).numpy(), np.round(X, 1))
    np.testing.assert_allclose(paddle.stanh(x, 0.5, scale_b=2.0).numpy(), 2 * np.tanh(X / 2))
    assert paddle.trunc(input=t([1.5])).tolist() == [1.0]


def test_aliases_are_the_same_function():
    assert paddle.mod is paddle.remainder is paddle.floor_mod
    assert paddle.gammaln is paddle.lgamma
    assert paddle.less is paddle.less_than
    assert paddle.bitwise_invert is paddle.bitwise_not


def test_parts_of_rules_and_activations_are_not_public():
    for name in ("gate", "winner", "relu", "leaky_relu"):
        assert not hasattr(paddle, name)


def test_add_subtract_divide_with_their_options():
    x, y = t([7.0, -7.0]), t([2.0, 2.0])
    assert paddle.add(x, y, alpha=3).tolist() == [13.0, -1.0]
    assert paddle.subtract(x, y, alpha=3).tolist() == [1.0, -13.0]
    for numbers in (x, y), (x.astype("int64"), y.astype("int64")):
        assert paddle.divide(*numbers).tolist() == [3.5, -3.5]
        assert paddle.divide(*numbers, rounding_mode="floor").tolist() == [3, -4]
        assert paddle.divide(*numbers, rounding_mode="trunc").tolist() == [3, -3]
    with pytest.raises(ValueError, match=r"rounding_mode='up'.*\n.*floor"):
        paddle.divide(x, y, rounding_mode="up")


def test_cast():
    x = t([1.7, -1.7])
    assert paddle.cast(x, "int64").tolist() == [1, -1]
    assert x.cast(paddle.bool).tolist() == [True, True]
    with pytest.raises(TypeError, match="complex numbers are not supported"):
        paddle.cast(x, "complex64")


def test_scale():
    agree(lambda x: paddle.scale(x, 2.5, 1.0), lambda x: 2.5 * x + 1, X)
    agree(lambda x: paddle.scale(x, 2.5, 1.0, False), lambda x: 2.5 * (x + 1), X)
    agree(lambda x, s: paddle.scale(x, s, 1.0), lambda x, s: s * x + 1, X, np.array(2.5))
    agree(lambda x, s: paddle.scale(x, s, 1.0, False), lambda x, s: s * (x + 1), X, np.array(2.5))
    assert paddle.scale(t([1.0, -1.0]), 2.0, act="relu").tolist() == [2.0, 0.0]
    whole = paddle.to_tensor([1, 2, -3])
    assert paddle.scale(whole, 2.5, 1).tolist() == [3, 5, -5]  # as Paddle
    with pytest.raises(ValueError, match=r"act='add'"):
        paddle.scale(whole, act="add")
    with pytest.raises(ValueError, match=r"act='nothing'"):
        paddle.scale(whole, act="nothing")


def test_clip():
    agree(lambda x: paddle.clip(x, -0.5, 0.5), lambda x: x.clamp(-0.5, 0.5), X)
    agree(lambda x: x.clip(max=0.5), lambda x: x.clamp(max=0.5), X)
    agree(lambda x: x.clip(0.1), lambda x: x.clamp(0.1), X)
    low, high = t(-0.5), t(0.5)
    for bounds in (
        {"min": low},
        {"max": high},
        {"min": low, "max": high},
        {"min": low, "max": 0.5},
    ):
        limits = {k: float(v) for k, v in bounds.items()}
        np.testing.assert_array_equal(
            paddle.clip(t(X), **bounds).numpy(), torch.tensor(X).clamp(**limits).numpy()
        )
    whole = paddle.to_tensor([1, 2, -3])
    assert paddle.clip(whole, 0, 1).dtype == "int64"
    assert paddle.clip(whole, 0, 1.5).tolist() == [1.0, 1.5, 0.0]
    with pytest.raises(ValueError, match=r"clip to min=2, max=1"):
        paddle.clip(whole, 2, 1)


def test_add_n():
    agree(lambda *xs: paddle.add_n(list(xs)), lambda *xs: sum(xs), X, X * 2, X * 3)
    one = t(X)
    alone = paddle.add_n(one)
    np.testing.assert_array_equal(alone.numpy(), X)
    assert alone is not one
    with pytest.raises(ValueError, match="add_n of an empty list"):
        paddle.add_n([])


def test_ldexp():
    agree(paddle.ldexp, torch.ldexp, X, np.array([1.0, 2.0, -1.0, 0.5]))
    assert paddle.ldexp(paddle.to_tensor([1, 2]), paddle.to_tensor([1, -3])).tolist() == [2.0, 0.25]
    assert paddle.ldexp(t([1.5], "float32"), paddle.to_tensor([2])).tolist() == [6.0]


def test_lerp():
    agree(lambda x, y: paddle.lerp(x, y, 0.3), lambda x, y: torch.lerp(x, y, 0.3), X, X + 1)
    agree(paddle.lerp, torch.lerp, X, X + 1, np.array(0.3))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_multigammaln(p):
    x = np.array([1.5, 2.5, 4.0])
    agree(lambda x: x.multigammaln(p), lambda x: torch.special.multigammaln(x, p), x)


def test_multigammaln_of_no_dimension():
    with pytest.raises(ValueError, match="dimension p=0"):
        paddle.multigammaln(t(X), 0)


def test_multiplex():
    index = [[2], [0], [1]]
    choose = lambda *xs: paddle.multiplex(list(xs), paddle.to_tensor(index))
    agree(choose, lambda a, b, c: torch.stack([c[0], a[1], b[2]]), X, X * 2, X * 3)
    with pytest.raises(ValueError, match=r"multiplex of float64\[3, 4\] by an index of int64\[3\]"):
        paddle.multiplex([t(X)], paddle.to_tensor([0, 0, 0]))


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3, 2)), ((3,), (2, 2)), ((2, 1, 3), (2,)), ((), (2,))]
)
def test_kron(shapes):
    rng = np.random.default_rng(1)
    agree(paddle.kron, torch.kron, *(rng.standard_normal(s) for s in shapes))


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 3])
def test_trace(offset):
    agree(
        lambda x: paddle.trace(x, offset),
        lambda x: torch.diagonal(x, offset).sum(-1),
        X,
    )


def test_trace_of_other_planes():
    x = np.arange(24.0).reshape(2, 3, 4)
    agree(
        lambda x: x.trace(1, 2, 0),
        lambda x: torch.diagonal(x, 1, 2, 0).sum(-1),
        x,
    )
    with pytest.raises(ValueError, match=r"trace of float64\[3\]"):
        paddle.trace(t([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, -1])
def test_diff(n, axis):
    agree(lambda x: x.diff(n, axis), lambda x: torch.diff(x, n, axis), X)
    agree(
        lambda x, y: paddle.diff(x, n, axis, y, y),
        lambda x, y: torch.diff(x, n, axis, y, y),
        X,
        X[:1] if axis == 0 else X[:, :1],
    )


def test_diff_of_booleans_and_of_nothing():
    assert paddle.diff(paddle.to_tensor([True, False, False])).tolist() == [True, False]
    with pytest.raises(ValueError, match="diff with n=0"):
        paddle.diff(t(X), 0)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("axis", [0, -1])
def test_renorm(p, axis):
    if p != 1.0:  # a kink where an element is 0 otherwise
        check_grad(lambda x: paddle.renorm(x, p, axis, 1.0), X, order=2, atol=1e-6)
    np.testing.assert_allclose(
        paddle.renorm(t(X), p, axis, 1.0).numpy(),
        torch.renorm(torch.tensor(X), p, axis % 2, 1.0).numpy(),
        rtol=1e-6,  # torch adds 1e-7 to the norm
    )


def test_renorm_of_zeros_has_a_gradient():
    x = paddle.zeros([2, 2])
    x.stop_gradient = False
    paddle.renorm(x, 2.0, 0, 1.0).sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_trapezoid(axis):
    places = np.array([0.0, 0.5, 2.0, 2.5])[: X.shape[axis]]
    agree(
        lambda y: paddle.trapezoid(y, dx=0.5, axis=axis),
        lambda y: torch.trapezoid(y, dx=0.5, dim=axis),
        X,
    )
    agree(
        lambda y, x: paddle.trapezoid(y, x, axis=axis),
        lambda y, x: torch.trapezoid(y, x, dim=axis),
        X,
        places,
    )
    agree(
        lambda y, x: paddle.trapezoid(y, x, axis=axis),
        lambda y, x: torch.trapezoid(y, x, dim=axis),
        X,
        np.cumsum(np.abs(X), axis),
    )
    with pytest.raises(ValueError, match=r"x=.* and dx=1"):
        paddle.trapezoid(t(X), t(places), dx=1.0)


def test_logic():
    x = t([1.0, 2.0, NAN])
    assert paddle.allclose(x, x + 1e-9, equal_nan=True).item() is True
    assert paddle.allclose(x, x).item() is False
    assert x.allclose(x + 1, rtol=0.0, atol=1.5, equal_nan=True).item() is True
    assert paddle.equal_all(t([1.0, 2.0]), t([1.0, 2.0])).item() is True
    assert paddle.equal_all(t([1.0, 2.0]), t([1.0, 3.0])).item() is False
    assert paddle.equal_all(t([1.0, 2.0]), t([1.0, 2.0, 3.0])).item() is False
    assert x.isreal().tolist() == [True] * 3
    assert paddle.isclose(paddle.to_tensor([1, 5]), paddle.to_tensor([1, 6])).tolist() == [
        True,
        False,
    ]
