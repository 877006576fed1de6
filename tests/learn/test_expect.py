"""What counts as the same, and what a Disagreement tells."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.learn import Disagreement, expect, expect_gradients, expect_that
from minipaddle.learn.verdict import format_value


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (1.0, 1.0 + 1e-9),
        ([1.0, 2.0], (1, 2.0)),
        (paddle.to_tensor([[1.0]]), np.array([[1.0]])),
        (float("nan"), np.nan),
        ({"a": [1.0], "b": "x"}, {"a": (1.0,), "b": "x"}),
        ("text", "text"),
        (None, None),
        ([], []),
        (True, True),
        ((paddle.ones([2]), "x"), [np.ones(2), "x"]),
        (paddle.ones([1], "bfloat16"), [1.0]),
    ],
)
def test_the_same(got, expected):
    expect(got, expected)


@pytest.mark.parametrize(
    ("got", "expected", "why"),
    [
        (1.0, 1.1, "the values differ"),
        ([1.0], [1.0, 2.0], r"shape \[1\] instead of \[2\]"),
        (np.ones((2, 1)), np.ones(2), r"shape \[2, 1\] instead of \[2\]"),
        (np.ones(2, "int64"), np.ones(2), "dtype int64 instead of float64"),
        (None, 1.0, "it differs"),
        (1, True, "it differs"),
        ("a", "b", "it differs"),
        ({"a": 1}, {"b": 1}, "the keys differ"),
        (["a"], ["a", "b"], "there are not as many"),
        (3, ["a"], "there are not as many"),
        (lambda: 1, 1.0, "it differs"),
    ],
)
def test_not_the_same(got, expected, why):
    with pytest.raises(Disagreement, match=why):
        expect(got, expected)


def test_a_disagreement_holds_what_the_reader_should_see():
    with pytest.raises(Disagreement, match="twice") as caught:
        expect(3, 4, given={"x": 2}, why="it should be twice x")
    assert (caught.value.given, caught.value.expected, caught.value.got) == ({"x": 2}, 4, 3)


def test_a_condition():
    expect_that(True, "it holds")
    with pytest.raises(Disagreement, match="it holds"):
        expect_that(False, "it holds")


def test_right_gradients_pass():
    expect_gradients(lambda x, y: (x * y).sum(), [np.ones(2), np.array(3.0)], order=2)


def test_wrong_gradients_name_the_smallest_inputs():
    wrong = paddle.plugged("ops.tanh.vjp", lambda g, out: g * (1 - out))
    with wrong, pytest.raises(Disagreement, match=r"derivative by x\[0, 0\] is not") as caught:
        expect_gradients(paddle.tanh, [np.full((2, 3), 0.5)])
    assert caught.value.given["x"].tolist() == [[0.5]]
    assert caught.value.expected == pytest.approx(1 - np.tanh(0.5) ** 2)
    assert caught.value.got == pytest.approx(1 - np.tanh(0.5))


def test_a_wrong_second_derivative_is_called_so():
    cut = paddle.plugged("ops.tanh.vjp", lambda g, out: g * (1 - out.detach() * out.detach()))
    with cut, pytest.raises(Disagreement, match="the second derivative"):
        expect_gradients(paddle.tanh, [np.array([0.5])], order=2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0 / 3, "0.666667"),
        (np.float32(0.5), "0.5"),
        (np.array(2.0), "2"),
        (np.array(2), "2"),
        ("it's", "it's"),
        ([1, "a", 0.5], "[1, a, 0.5]"),
        ((1, None), "(1, None)"),
        ((3,), "(3,)"),
        ({"k": 1.0}, "k: 1"),
        (np.array([1.5, 2.0]), "[1.5, 2. ]  (float64[2])"),
        (paddle.ones([2, 1]), "float32[2, 1]\n[[1.],\n [1.]]"),
        (paddle.ones([2], "bfloat16"), "[1., 1.]  (bfloat16[2])"),
    ],
)
def test_values_are_shown_for_people(value, text):
    assert format_value(value) == text


def test_a_long_value_is_cut():
    assert len(format_value("x" * 5000)) <= 600
    assert len(format_value(np.zeros((100, 100)))) < 400
