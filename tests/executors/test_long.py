"""Programs as long as loops in Python make them: no recursion as deep, nothing looked at twice."""

import inspect
import sys

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler

pytestmark = pytest.mark.sweep(one_in=4)

FRAMES = 700
"""What Python has left, and not a thousand: programs are shorter that are longer than that."""
LONG = FRAMES + 20
BACKENDS = ["interpreter", *(["native"] if compiler() is not None else [])]


def losses_added_up(x, w):
    loss = x.sum()
    for k in range(LONG):
        loss = loss + x[k % 4].sum() * k
    return loss


def squared_again_and_again(x, w):
    """Each value is used three times: a walk that forgets where it was takes 3⁴⁰ steps."""
    total = x.sum(0, keepdim=True)
    y = x - total / 4
    for _ in range(40):
        y = y * y * 0.5 - 0.3 * y
    return y * total, y / y.sum(1, keepdim=True).exp()


def many_numbers_side_by_side(x, w):
    s = x.sum()
    return paddle.stack([s * k for k in range(300)]).reshape([15, 20]) * 2 + x[0, 0]


def many_arrays_one_after_the_other(x, w):
    return paddle.concat([x * k for k in range(150)]).tanh()


def weights_worked_out_at_length(x, w):
    for _ in range(LONG):
        w = w * 0.99 + 0.01
    return x @ w


@pytest.fixture
def shallow():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + FRAMES)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        losses_added_up, squared_again_and_again, many_numbers_side_by_side,
        many_arrays_one_after_the_other, weights_worked_out_at_length,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_long_programs(function, grad, backend, shallow):
    x = paddle.to_tensor(np.random.default_rng(0).random((4, 4)), "float32", stop_gradient=False)
    w = paddle.to_tensor(np.eye(4), "float32", stop_gradient=False)
    found = []
    for f in (function, paddle.jit.to_static(function, backend=backend)):
        with paddle.set_grad_enabled(grad):
            results = f(x, w)
            results = results if isinstance(results, tuple) else (results,)
            if grad:
                found.append(paddle.grad([y.sum() for y in results], x)[0].numpy())
        found.append(np.concatenate([y.numpy().ravel() for y in results]))
    half = len(found) // 2
    for a, b in zip(found[:half], found[half:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
