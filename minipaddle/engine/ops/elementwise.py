"""Elementwise operators: a scalar formula, then its derivative.

`m` is the array module. A formula uses Python's operators, comparisons, `m.where`, and the
functions of mathematics that numpy, scipy.special and C share. This file has arithmetic,
powers, maximum and minimum, choice and casts; `logic`, `special` and `activation` have
more, and so has `minipaddle/ops`.
The examples in docstrings call the public functions, after `import minipaddle as paddle`.
"""

from __future__ import annotations

import math

from ..core.op import SCALARS, elementwise

# ---- arithmetic ------------------------------------------------------------------------------


@elementwise
def add(m, x, y):
    """x + y.

    >>> paddle.add(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor(3.0)).tolist()
    [4.0, 5.0]
    """
    return x + y


add.vjp(x=lambda g: g, y=lambda g: g)
add.shards(linear="x,y")


@elementwise
def subtract(m, x, y):
    """x - y.

    >>> paddle.subtract(paddle.to_tensor([1, 2]), paddle.to_tensor([3, 3])).tolist()
    [-2, -1]
    """
    return x - y


subtract.vjp(x=lambda g: g, y=lambda g: -g)
subtract.shards(linear="x,y")


@elementwise
def multiply(m, x, y):
    """x * y.

    >>> paddle.multiply(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0])).tolist()
    [3.0, 8.0]
    """
    return x * y


multiply.vjp(x=lambda g, y: g * y, y=lambda g, x: g * x)
multiply.shards(multilinear="x,y")


@elementwise(result="float")
def divide(m, x, y):
    """x / y, in floating point for whole numbers too.

    >>> paddle.divide(paddle.to_tensor([1, 2]), paddle.to_tensor([2, 2])).tolist()
    [0.5, 1.0]
    """
    return x / y


divide.vjp(x=lambda g, y: g / y, y=lambda g, out, y: -g * out / y)
divide.shards(linear="x")


@elementwise
def floor_divide(m, x, y):
    """The largest whole number not above x / y; whole numbers divided by 0 give 0.

    >>> paddle.floor_divide(paddle.to_tensor([7, -7]), paddle.to_tensor([2, 2])).tolist()
    [3, -4]
    """
    return m.floor_divide(x, y)


@elementwise
def remainder(m, x, y):
    """x - y * floor(x / y): it has the sign of y; 0 has that of x.

    >>> paddle.remainder(paddle.to_tensor([7, -7]), paddle.to_tensor([3, 3])).tolist()
    [1, 2]
    """
    r = m.remainder(x, y)
    return m.where(r == 0, x * 0, r)


remainder.vjp(x=lambda g: g, y=lambda g, x, y: -g * floor_divide(x, y))


@elementwise
def neg(m, x):
    """-x.

    >>> paddle.neg(paddle.to_tensor([1.0, -2.0])).tolist()
    [-1.0, 2.0]
    """
    return -x


neg.vjp(lambda g: -g)
neg.shards(linear="x")


@elementwise
def abs(m, x):
    """|x|; its derivative at 0 is 0.

    >>> paddle.abs(paddle.to_tensor([1.0, -2.0])).tolist()
    [1.0, 2.0]
    """
    return m.abs(x)


abs.vjp(lambda g, x: g * sign(x))


@elementwise
def sign(m, x):
    """-1, 0 or 1.

    >>> paddle.sign(paddle.to_tensor([-3.0, 0.0, 2.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    return m.sign(x)


sign.vjp(lambda g: g * 0)


# ---- powers ----------------------------------------------------------------------------------


@elementwise
def pow(m, x, y):
    """x to the power y.

    >>> paddle.pow(paddle.to_tensor([2.0, 3.0]), 2).tolist()
    [4.0, 9.0]
    """
    return m.power(x, y)


@pow.vjp("x")
def _(g, x, y):
    if not isinstance(y, SCALARS):
        return g * where(y == 0, 0.0, y * x ** (y - 1))  # where: 0 · 0⁻¹ is not a number
    return g * (y * x ** (y - 1)) if y else g * 0.0


@pow.vjp("y")
def _(g, out, x, y):
    if x == 0 if isinstance(x, SCALARS) else False:
        return where(y >= 0, 0.0, g * out * -math.inf)
    if isinstance(x, SCALARS):
        return g * out * (math.log(x) if x > 0 else math.nan)
    if isinstance(y, SCALARS):
        return g * out * log(x)
    return g * out * log(where((x == 0) & (y >= 0), 1.0, x))  # 0 to a power stays 0


@elementwise
def square(m, x):
    """x².

    >>> paddle.square(paddle.to_tensor([3.0])).tolist()
    [9.0]
    """
    return x * x


square.vjp(lambda g, x: g * (2 * x))


@elementwise(result="float")
def sqrt(m, x):
    """√x.

    >>> paddle.sqrt(paddle.to_tensor([9.0])).tolist()
    [3.0]
    """
    return m.sqrt(x)


sqrt.vjp(lambda g, out: g * 0.5 / out)


@elementwise(result="float")
def reciprocal(m, x):
    """1 / x.

    >>> paddle.reciprocal(paddle.to_tensor([4.0])).tolist()
    [0.25]
    """
    return 1 / x


reciprocal.vjp(lambda g, out: -g * out * out)


@elementwise(result="float")
def exp(m, x):
    """e to the power x.

    >>> paddle.exp(paddle.to_tensor([0.0])).tolist()
    [1.0]
    """
    return m.exp(x)


exp.vjp(lambda g, out: g * out)


@elementwise(result="float")
def log(m, x):
    """Natural logarithm.

    >>> paddle.log(paddle.to_tensor([1.0])).tolist()
    [0.0]
    """
    return m.log(x)


log.vjp(lambda g, x: g / x)

# ---- the larger and the smaller --------------------------------------------------------------


@elementwise
def maximum(m, x, y):
    """The larger of x and y; nan if either is nan. Equal values share the gradient evenly.

    >>> paddle.maximum(paddle.to_tensor([1.0, 5.0]), paddle.to_tensor([3.0, 2.0])).tolist()
    [3.0, 5.0]
    """
    return m.maximum(x, y)


@elementwise
def minimum(m, x, y):
    """The smaller of x and y; nan if either is nan. Equal values share the gradient evenly.

    >>> paddle.minimum(paddle.to_tensor([1.0, 5.0]), paddle.to_tensor([3.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return m.minimum(x, y)


@elementwise
def winner(m, g, x, y):
    """g where x > y, half of it where they are equal, else 0: the derivative of a maximum."""
    return m.where(x > y, g, m.where(x == y, 0.5 * g, 0))


winner.vjp(g=lambda g, x, y: winner(g, x, y))
maximum.vjp(x=lambda g, x, y: winner(g, x, y), y=lambda g, x, y: winner(g, y, x))
minimum.vjp(x=lambda g, x, y: winner(g, y, x), y=lambda g, x, y: winner(g, x, y))


@elementwise
def gate(m, g, x, *, low=0.0, high=math.inf, closed=False):
    """g where low < x < high (`closed`: also at the bounds), else 0."""
    if closed:
        return m.keep(g, (x >= low) & (x <= high))
    return m.keep(g, (x > low) & (x < high) if high < math.inf else x > low)


gate.vjp(g=lambda g, x, low, high, closed: gate(g, x, low=low, high=high, closed=closed))


# ---- choice and casts ------------------------------------------------------------------------


@elementwise(free=("condition",))
def where(m, condition, x, y):
    """x where the condition holds, otherwise y.

    >>> paddle.where(paddle.to_tensor([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    return m.where(condition, x, y)


where.vjp(
    x=lambda g, condition: where(condition, g, 0.0), y=lambda g, condition: where(condition, 0.0, g)
)


@elementwise(result=lambda _, attrs: attrs["dtype"])
def cast(m, x, *, dtype):
    """The same value in another data type."""
    return x


cast.vjp(lambda g, x_spec: cast(g, dtype=x_spec.dtype))

maximum.exact = minimum.exact = gate.exact = True
