"""Functions that are a few lines of others, against NumPy and torch: values and gradients."""

import itertools

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle.tensor.composed import SECOND_NAMES

X = np.array([[0.5, -2.0, 3.0], [4.0, -0.25, 6.0]])
INDEX = np.array([[0, 1, 1], [1, 0, 1]])
INTS = np.array([3, 1, 2, 1])


def both(name, *args, ours=None, **kwargs):
    """The function of that name in paddle and in torch, on the same arguments."""

    def convert(make, x):
        return make(x) if isinstance(x, np.ndarray) else x

    mine = [convert(paddle.to_tensor, x) for x in args]
    theirs = [convert(torch.tensor, x) for x in args]
    return (ours or getattr(paddle, name))(*mine, **kwargs), getattr(torch, name)(*theirs, **kwargs)


CASES = {
    "argwhere": lambda: both("argwhere", X > 0),
    "block_diag": lambda: (
        paddle.block_diag([paddle.to_tensor(X), paddle.to_tensor(X[0])]),
        torch.block_diag(torch.tensor(X), torch.tensor(X[0])),
    ),
    "broadcast_shapes": lambda: (
        paddle.to_tensor(paddle.broadcast_shapes([2, 1], (3,), [1, 1, 1])),
        np.broadcast_shapes((2, 1), (3,), (1, 1, 1)),
    ),
    "cartesian_prod": lambda: (
        paddle.cartesian_prod([paddle.to_tensor(v) for v in (INTS, INTS[:2], INTS[1:])]),
        np.array(list(itertools.product(INTS, INTS[:2], INTS[1:]))),
    ),
    "column_stack": lambda: (
        paddle.column_stack([paddle.to_tensor(X[:, 0]), paddle.to_tensor(X)]),
        np.column_stack([X[:, 0], X]),
    ),
    "combinations": lambda: both("combinations", INTS, 3),
    "combinations, repeated": lambda: both("combinations", INTS, 2, with_replacement=True),
    "cumulative_trapezoid": lambda: both(
        "cumulative_trapezoid", X, ours=lambda x: paddle.cumulative_trapezoid(x, axis=-1)
    ),
    "cumulative_trapezoid, places": lambda: both("cumulative_trapezoid", X, X**2),
    "diagonal_scatter": lambda: both("diagonal_scatter", X, X[0, :2], 1),
    "diagonal_scatter, below": lambda: both("diagonal_scatter", X.T, X[0, :2], -1),
    "isin": lambda: both("isin", INTS, INTS[:1]),
    "isin, inverted": lambda: both("isin", X, X[0] + np.array([0, 1, 0]), invert=True),
    "isin, of nothing": lambda: both("isin", INTS, INTS[:0]),
    "msort": lambda: both("msort", X),
    "narrow": lambda: both("narrow", X, 1, -2, 2),
    "positive": lambda: both("positive", X),
    "ravel": lambda: both("ravel", X),
    "reduce_as": lambda: (
        paddle.reduce_as(paddle.ones([4, 2, 3]), paddle.ones([2, 1])), np.full((2, 1), 12.0)
    ),
    "scatter_add": lambda: both("scatter_add", X, 0, INDEX, X),
    "select_scatter": lambda: both("select_scatter", X, X[:, 0], 1, -1),
    "slice_scatter": lambda: (
        paddle.slice_scatter(*map(paddle.to_tensor, (X, X[:, :2])), [1], [0], [3], [2]),
        torch.slice_scatter(torch.tensor(X), torch.tensor(X[:, :2]), 1, 0, 3, 2),
    ),
    "tril_indices": lambda: both("tril_indices", 3, 4, 1),
    "tril_indices, below": lambda: both("tril_indices", 4, 3, -2),
    "triu_indices": lambda: both("triu_indices", 3, 4, -1),
    "true_divide": lambda: both("true_divide", X, X + 9),
    **{
        f"scatter_reduce {how} {own}": lambda how=how, own=own: both(
            "scatter_reduce", X, 1, INDEX[:, :2], X[:, 1:], how, include_self=own
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    found, wanted = CASES[name]()
    np.testing.assert_allclose(found.numpy(), np.asarray(wanted), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_frexp(dtype):
    limits = np.finfo(dtype)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal]
    near = [x for k in range(-9, 9) for x in np.nextafter(2.0**k, [0, 9], dtype=dtype)]
    x = np.array([*edges, *near, *X.ravel(), 2.0**-140], dtype)
    mantissa, exponent = paddle.frexp(paddle.to_tensor(x))
    wanted, power = np.frexp(x)
    np.testing.assert_array_equal(mantissa.numpy(), wanted)
    np.testing.assert_array_equal(exponent.numpy(), np.where(np.isfinite(x), power, 0))
    assert mantissa.dtype.name == exponent.dtype.name == dtype


@pytest.mark.parametrize(
    "call",
    [
        lambda p, x: p.frexp(x)[0] if p is paddle else x * torch.exp2(-torch.frexp(x)[1]),
        lambda p, x: p.diagonal_scatter(x, x[0, :2] * 3, 1),
        lambda p, x: p.scatter_reduce(x, 1, as_index(p), x * x, "prod"),
        lambda p, x: p.scatter_reduce(x, 1, as_index(p), x * x, "mean", include_self=False),
        lambda p, x: p.block_diag([x, x * x]) if p is paddle else p.block_diag(x, x * x),
        lambda p, x: p.select_scatter(x, x[:, 0] ** 2, 1, 2),
        lambda p, x: p.combinations(x[0] * x[1]),
    ],
)
def test_gradients(call):
    ours, theirs = paddle.to_tensor(X, stop_gradient=False), torch.tensor(X, requires_grad=True)
    (call(paddle, ours) ** 3).sum().backward()
    (call(torch, theirs) ** 3).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-10)


def as_index(p):
    return paddle.to_tensor(INDEX) if p is paddle else torch.tensor(INDEX)


def test_second_names_are_the_first():
    for module, names in SECOND_NAMES.items():
        for first, seconds in names.items():
            for second in seconds.split():
                assert getattr(paddle, second) is getattr(module, first)
    x = paddle.to_tensor(X)
    assert (x.clamp(0.0, 1.0) == x.clip(0.0, 1.0)).all()
    assert x.clone().mul_(x).tolist() == (x * x).tolist()


def test_methods_whose_first_argument_has_another_name():
    x = paddle.to_tensor(X)
    assert x.trapezoid().tolist() == np.trapezoid(X).tolist()
    assert x.sum().atleast_1d().shape == [1]
    assert x.float64().dtype == paddle.double
    x.scatter_add_(1, paddle.to_tensor(INDEX), paddle.ones_like(x))
    assert (
        x.tolist()
        == torch.tensor(X)
        .scatter_add(1, torch.tensor(INDEX), torch.ones(2, 3, dtype=torch.double))
        .tolist()
    )


def test_made_like_another():
    x = paddle.to_tensor(X)
    assert paddle.rand_like(x).dtype == paddle.randn_like(x).dtype == paddle.float64
    assert paddle.randn_like(x, "float32").dtype == paddle.float32
    assert paddle.asarray(x) is x
    assert paddle.asarray(x, copy=True) is not x
    assert paddle.as_tensor([1]).tolist() == paddle.from_numpy(np.array([1])).tolist() == [1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: paddle.narrow(x, 1, 2, 2), "places of 0 to 3"),
        (lambda x: paddle.scatter_reduce(x, 0, x, x, "max"), "sum, prod, mean, amax, amin"),
        (lambda x: paddle.reduce_as(x, paddle.ones([2, 2, 3])), "part of it"),
        (lambda x: paddle.combinations(x), "a vector"),
        (lambda x: paddle.diagonal_scatter(x, x), "expected: shape"),
    ],
)
def test_mistakes_are_explained(call, says):
    with pytest.raises(ValueError, match=says):
        call(paddle.to_tensor(X))
