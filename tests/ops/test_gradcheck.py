"""The gradient checker must accept what is right and reject, by name, what is not."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import OPS
from minipaddle.testing import check_grad

X = np.array([[0.3, -1.2, 2.0], [0.7, 1.1, -0.4]])


def test_right_derivatives_pass():
    check_grad(lambda x: (x * x).sum(), X, order=3)
    check_grad(lambda x, y: x @ y, X, X.T, order=2)
    check_grad(lambda x, y: [x * y, (x + y).exp()], X, X[0], order=2)
    check_grad(paddle.tanh, paddle.to_tensor([0.5]), order=2)


def test_inputs_of_other_kinds():
    check_grad(lambda x, k: x[k], X, [1, 0, 1])
    check_grad(lambda x, c: paddle.where(c, x, x * x), X, X > 0, order=2)
    check_grad(lambda x, y: x * y, 3.0, 2.0)


def test_a_wrong_rule_is_found_at_the_smallest_cut():
    with (
        paddle.plugged("ops.matmul.vjp.y", lambda g, x, y_spec: 2 * (x.t() @ g)),
        pytest.raises(AssertionError) as caught,
    ):
        check_grad(OPS["matmul"], X, X.T)
    message = str(caught.value)
    assert "the derivative of matmul by input 1 at [0, 0] is 0.6; 0.3 is right" in message
    assert "for the inputs: [[0.3]], [[0.3]]" in message


def test_a_wrong_second_derivative_is_found():
    def rule(g, x):
        return g * paddle.cos(x).detach()  # the value is right, its past is lost

    with paddle.plugged("ops.sin.vjp", rule):
        check_grad(paddle.sin, X)
        with pytest.raises(AssertionError, match="the second derivative of sin by input 0"):
            check_grad(paddle.sin, X, order=2)


def test_a_missing_rule_is_found():
    with (
        paddle.plugged("ops.exp.vjp", None),
        pytest.raises(AssertionError, match=r"the derivative of exp by input 0 at .* is 0; 1\.3"),
    ):
        check_grad(paddle.exp, X)


def test_only_the_inputs_asked_for():
    with paddle.plugged("ops.multiply.vjp.y", lambda g, x: g):
        check_grad(OPS["multiply"], X, X, wrt=[0])
        with pytest.raises(AssertionError, match="by input 1"):
            check_grad(OPS["multiply"], X, X, wrt=[1])


def test_a_few_elements_only():
    def wrong_in_the_last(g, x):
        return g * paddle.where(x < 0.7, paddle.cos(x), x * 0)

    x = np.linspace(0, 0.8, 9)
    with paddle.plugged("ops.sin.vjp", wrong_in_the_last):
        check_grad(paddle.sin, x, elements=3)  # 0, 3 and 6
        with pytest.raises(AssertionError, match=r"at \[7\] is 0;"):
            check_grad(paddle.sin, x, elements=9)


def test_nan_is_a_mismatch():
    with pytest.raises(AssertionError, match="is nan"):
        check_grad(paddle.sqrt, [-1.0])


def test_nothing_to_differentiate():
    with pytest.raises(TypeError, match="no result is floating"):
        check_grad(lambda x: x > 0, X)
