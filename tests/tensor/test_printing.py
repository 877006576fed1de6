"""Tensors as text. The expected texts are Paddle 3.3.1's own, written down from a run of it."""

import numpy as np
import pytest

import minipaddle as paddle


@pytest.fixture(autouse=True)
def default_options():
    yield
    paddle.set_printoptions(precision=8, threshold=1000, edgeitems=3, sci_mode=False, linewidth=80)


def body(x) -> str:
    """The text after the head line, without its indentation and the closing parenthesis."""
    return "\n".join(line[7:] for line in repr(x).splitlines()[1:])[:-1]


def test_the_head():
    x = paddle.to_tensor([[1.0, 2.0]], stop_gradient=False)
    assert repr(x) == (
        "Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=False,\n"
        "       [[1., 2.]])"
    )
    assert str(x) == repr(x) == f"{x}"


def test_a_parameter():
    p = paddle.nn.Linear(2, 2).bias
    assert repr(p) == (
        "Parameter containing:\n"
        "Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,\n"
        "       [0., 0.])"
    )


@pytest.mark.parametrize(
    ("data", "dtype", "text"),
    [
        (3, None, "3"),
        (3.5, None, "3.50000000"),
        (-2.0, None, "-2."),
        (True, None, "True"),
        ([True, False], None, "[True , False]"),
        ([1.5, 2.0], "bfloat16", "[1.50000000, 2.        ]"),
        ([1.5, 2.0], "float16", "[1.50000000, 2.        ]"),
        ([float("nan"), float("inf"), -1.0], None, "[ nan, inf., -1. ]"),
        ([float("nan"), -float("inf"), 1.5], None, "[ nan      , -inf.     , 1.50000000]"),
        ([0.0, -0.0], None, "[0. , -0.]"),
        ([0.1, 0.12345678], None, "[0.10000000, 0.12345678]"),
        ([-1, 2, 30], "int8", "[-1,  2, 30]"),
        ([1.9, -1.9], "int64", "[ 1, -1]"),
        ([], None, "[]"),
        (np.zeros((0, 3)), None, "[]"),
        (np.zeros((2, 0)), None, "[[],\n []]"),
        (np.zeros((2, 0, 3)), None, "[[],\n\n []]"),
        (np.ones((2, 2, 2)), None, "[[[1., 1.],\n  [1., 1.]],\n\n [[1., 1.],\n  [1., 1.]]]"),
        (np.ones((2, 1, 1, 1)), None, "[[[[1.]]],\n\n\n [[[1.]]]]"),
    ],
)
def test_values(data, dtype, text):
    assert body(paddle.to_tensor(data, dtype=dtype)) == text


def test_columns_leave_room_for_a_sign():
    x = paddle.to_tensor(
        [[0.12573022, -0.13210486, 0.64042264], [-0.53566939, 0.36159506, 1.30400002]]
    )
    assert body(x) == (
        "[[ 0.12573022, -0.13210486,  0.64042264],\n [-0.53566939,  0.36159506,  1.30400002]]"
    )


def test_large_and_small():
    assert body(paddle.to_tensor([1e-10, 1.0, 1e30])).splitlines() == [
        "[0.00000000                      , 1.                              ,",
        " 1000000015047466219876688855040.]",
    ]


def test_long_rows_are_broken_at_the_width():
    lines = body(paddle.ones([2, 13]) * 1.5).splitlines()
    row = ", ".join(["1.50000000"] * 6)
    assert lines == [
        f"[[{row},",
        f"  {row},",
        "  1.50000000],",
        f" [{row},",
        f"  {row},",
        "  1.50000000]]",
    ]


def test_more_than_the_threshold_is_summarised():
    assert body(paddle.arange(1001)) == "[0   , 1   , 2   , ..., 998 , 999 , 1000]"
    assert body(paddle.arange(1000)).startswith("[0  , 1  , 2  , 3  , ")
    assert body(paddle.arange(2000.0).reshape([40, 50])).splitlines() == [
        "[[0.   , 1.   , 2.   , ..., 47.  , 48.  , 49.  ],",
        " [50.  , 51.  , 52.  , ..., 97.  , 98.  , 99.  ],",
        " [100. , 101. , 102. , ..., 147. , 148. , 149. ],",
        " ...,",
        " [1850., 1851., 1852., ..., 1897., 1898., 1899.],",
        " [1900., 1901., 1902., ..., 1947., 1948., 1949.],",
        " [1950., 1951., 1952., ..., 1997., 1998., 1999.]]",
    ]


def test_options():
    paddle.set_printoptions(precision=2, threshold=5, edgeitems=1, linewidth=40)
    assert body(paddle.arange(20.0) * 1.23456) == "[0.   , ..., 23.46]"
    assert body(paddle.arange(1.0, 25.0).reshape([2, 3, 4]) * -1.23456).splitlines() == [
        "[[[-1.23 , ..., -4.94 ],",
        "  ...,",
        "  [-11.11, ..., -14.81]],",
        "",
        " [[-16.05, ..., -19.75],",
        "  ...,",
        "  [-25.93, ..., -29.63]]]",
    ]
    paddle.set_printoptions(sci_mode=True)
    assert body(paddle.to_tensor([1.0, 2.0])) == "[1.00e+00, 2.00e+00]"
    assert body(paddle.to_tensor([1, 2])) == "[1, 2]"


def test_a_narrow_line_holds_one_value_at_least():
    paddle.set_printoptions(linewidth=5)
    assert body(paddle.to_tensor([10.0, 20.0])) == "[10.,\n 20.]"
