"""Elementwise operators on truth and bits: comparisons, logic, tests of numbers, bits."""

from __future__ import annotations

from ..core.op import elementwise

# ---- comparisons -----------------------------------------------------------------------------


@elementwise(result="bool")
def equal(m, x, y):
    """x == y.

    >>> paddle.equal(paddle.to_tensor([1, 2]), paddle.to_tensor([1, 3])).tolist()
    [True, False]
    """
    return x == y


@elementwise(result="bool")
def not_equal(m, x, y):
    """x != y.

    >>> paddle.not_equal(paddle.to_tensor([1, 2]), paddle.to_tensor([1, 3])).tolist()
    [False, True]
    """
    return x != y


@elementwise(result="bool")
def less_than(m, x, y):
    """x < y.

    >>> paddle.less_than(paddle.to_tensor([1, 2]), paddle.to_tensor([2, 2])).tolist()
    [True, False]
    """
    return x < y


@elementwise(result="bool")
def less_equal(m, x, y):
    """x <= y.

    >>> paddle.less_equal(paddle.to_tensor([1, 3]), paddle.to_tensor([2, 2])).tolist()
    [True, False]
    """
    return x <= y


@elementwise(result="bool")
def greater_than(m, x, y):
    """x > y.

    >>> paddle.greater_than(paddle.to_tensor([1, 3]), paddle.to_tensor([2, 2])).tolist()
    [False, True]
    """
    return x > y


@elementwise(result="bool")
def greater_equal(m, x, y):
    """x >= y.

    >>> paddle.greater_equal(paddle.to_tensor([1, 2]), paddle.to_tensor([2, 2])).tolist()
    [False, True]
    """
    return x >= y


# ---- logic -----------------------------------------------------------------------------------


@elementwise(result="bool")
def logical_or(m, x, y):
    """Whether at least one is true. Numbers are true unless they are 0.

    >>> paddle.logical_or(paddle.to_tensor([0, 0]), paddle.to_tensor([1, 0])).tolist()
    [True, False]
    """
    return m.logical_or(x, y)


@elementwise(result="bool")
def logical_not(m, x):
    """Whether x is false, or 0.

    >>> paddle.logical_not(paddle.to_tensor([0.0, 2.0])).tolist()
    [True, False]
    """
    return m.logical_not(x)


# ---- tests of numbers ------------------------------------------------------------------------


# ---- bits ------------------------------------------------------------------------------------


@elementwise
def bitwise_and(m, x, y):
    """Bits set in both.

    >>> paddle.bitwise_and(paddle.to_tensor([6]), paddle.to_tensor([3])).tolist()
    [2]
    """
    return x & y


@elementwise
def bitwise_or(m, x, y):
    """Bits set in either.

    >>> paddle.bitwise_or(paddle.to_tensor([6]), paddle.to_tensor([3])).tolist()
    [7]
    """
    return x | y


@elementwise
def bitwise_xor(m, x, y):
    """Bits set in exactly one.

    >>> paddle.bitwise_xor(paddle.to_tensor([6]), paddle.to_tensor([3])).tolist()
    [5]
    """
    return x ^ y


@elementwise
def bitwise_not(m, x):
    """Every bit flipped.

    >>> paddle.bitwise_not(paddle.to_tensor([0, 5])).tolist()
    [-1, -6]
    """
    return ~x


equal.compares = not_equal.compares = True
