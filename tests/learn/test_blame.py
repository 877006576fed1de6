"""The bad node of a tape: whichever operator or sum first makes the gradient wrong."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.learn import blame
from minipaddle.testing.gradcheck import leaf

X = [[1.0, 2.0], [3.0, 4.0]]


def overwrite(cotangents, record, g):
    cotangents[record] = g


def first_row(x, shape):
    return x[0].reshape(shape)


def bad(plugs, program, *inputs, order=1):
    """The red lines of the picture."""
    with paddle.plugged(plugs):
        picture = blame.draw_blame(program, [leaf(x) for x in inputs], order)
    return [line for line in picture.text.splitlines() if "✗" in line]


@pytest.mark.parametrize(
    ("plugs", "program", "inputs", "line"),
    [
        (
            {"ops.tanh.vjp": lambda g, out: g},
            lambda x: paddle.exp(paddle.tanh(x) * x),
            [0.5],
            "v2 = tanh(v1) : float64[]  ✗ its rule",
        ),
        (
            {"ops.matmul.vjp.y": lambda g, x: paddle.matmul(x, g)},
            lambda x, y: paddle.matmul(x, y).sum(),
            [X, X],
            "v3 = matmul(v1, v2) : float64[2, 2]  ✗ its rule",
        ),
        (
            {"autograd.accumulate": overwrite},
            lambda x: x * x,
            [3.0],
            "v1 = input : float64[]  ✗ the sum of what arrives",
        ),
        (
            {"autograd.accumulate": overwrite},
            lambda x: paddle.tanh(paddle.exp(x) * paddle.exp(x) + x),
            [0.1],
            "v1 = input : float64[]  ✗ the sum of what arrives",
        ),
        (
            {"autograd.sum_to": first_row},
            lambda x, y: (x * y).sum(),
            [X, [5.0, 6.0]],
            "v3 = multiply(v1, v2) : float64[2, 2]  ✗ its rule",
        ),
    ],
)
def test_the_culprit_is_red(plugs, program, inputs, line):
    assert bad(plugs, program, *map(np.array, inputs)) == [line]


def test_nobody_is_blamed_for_a_right_gradient():
    assert bad({}, lambda x: paddle.tanh(x) * x, np.array([0.5])) == []


def test_a_walk_that_breaks_leaves_the_tape():
    def broken(cotangents, record, g):
        raise KeyError(record)

    assert bad({"autograd.accumulate": broken}, paddle.tanh, np.array([0.5])) == []


def test_who_is_slow_is_not_searched_to_the_end(monkeypatch):
    monkeypatch.setattr(blame, "PATIENCE", -1.0)
    assert bad({"ops.tanh.vjp": lambda g: g}, paddle.tanh, np.array([0.5])) == []


def test_of_a_second_derivative_there_is_the_tape_alone():
    rule = {"ops.tanh.vjp": lambda g, out: g * (1 - out.detach() * out.detach())}
    assert bad(rule, lambda x: paddle.tanh(x) * x, np.array([0.5]), order=2) == []


def test_operators_with_several_results_and_no_rule_are_passed():
    rule = {"ops.tanh.vjp": lambda g: g * 0}
    program = lambda x: paddle.tanh(paddle.split(x, 2)[0]).floor() + paddle.tanh(x[:1])
    (line,) = bad(rule, program, np.array([0.4, 0.7]))
    assert "tanh" in line
