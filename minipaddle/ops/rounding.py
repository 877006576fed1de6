"""Elementwise operators on whole parts and signs: rounding, signs, whole numbers."""

from ..engine.core.op import elementwise
from ..engine.ops.elementwise import where

# ---- rounding: flat almost everywhere, so the derivative is 0 --------------------------------


@elementwise
def floor(m, x):
    """The largest whole number not above x.

    >>> paddle.floor(paddle.to_tensor([1.7, -1.2])).tolist()
    [1.0, -2.0]
    """
    return m.floor(x)


@elementwise
def ceil(m, x):
    """The smallest whole number not below x.

    >>> paddle.ceil(paddle.to_tensor([1.2, -1.7])).tolist()
    [2.0, -1.0]
    """
    return m.ceil(x)


@elementwise
def trunc(m, input):
    """The whole part: x rounded towards 0.

    >>> paddle.trunc(paddle.to_tensor([1.7, -1.7])).tolist()
    [1.0, -1.0]
    """
    return m.trunc(input)


@elementwise
def round(m, x, *, decimals=0):
    """x rounded to `decimals` places; halves go to the even neighbour.

    >>> paddle.round(paddle.to_tensor([0.5, 1.5, 2.6])).tolist()
    [0.0, 2.0, 3.0]
    """
    return m.round(x, decimals)


for op in (floor, ceil, trunc, round):
    op.vjp(lambda g: g * 0)


@elementwise
def frac(m, x):
    """The fraction of x, with the sign of x.

    >>> paddle.frac(paddle.to_tensor([1.25, -1.25])).tolist()
    [0.25, -0.25]
    """
    return x - m.trunc(x)


frac.vjp(lambda g: g)

# ---- signs -----------------------------------------------------------------------------------


@elementwise
def copysign(m, x, y):
    """|x| with the sign of y.

    >>> paddle.copysign(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([-1.0, 3.0])).tolist()
    [-1.0, 2.0]
    """
    return m.copysign(x, y)


copysign.vjp(x=lambda g, out, x: g * where(x == 0, 0.0, out / x), y=lambda g: g * 0)


@elementwise
def heaviside(m, x, y):
    """0 where x < 0 (or is nan), y where x = 0, 1 where x > 0.

    >>> paddle.heaviside(paddle.to_tensor([-1.0, 0.0, 2.0]), paddle.to_tensor([0.5])).tolist()
    [0.0, 0.5, 1.0]
    """
    return m.where(x == 0, y, x > 0)


heaviside.vjp(x=lambda g: g * 0, y=lambda g, x: where(x == 0, g, 0.0))


@elementwise
def nan_to_num(m, x, *, nan=0.0, posinf=None, neginf=None):
    """x with nan and the infinities replaced; by the dtype's ends, where the value is None.

    >>> paddle.nan_to_num(paddle.to_tensor([float("nan"), float("inf")]), posinf=9.0).tolist()
    [0.0, 9.0]
    """
    return m.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


nan_to_num.vjp(lambda g, x: where(x - x == 0, g, 0.0))

# ---- whole numbers ---------------------------------------------------------------------------


@elementwise
def gcd(m, x, y):
    """Greatest common divisor of whole numbers.

    >>> paddle.gcd(paddle.to_tensor([12]), paddle.to_tensor([18])).tolist()
    [6]
    """
    return m.gcd(x, y)


@elementwise
def lcm(m, x, y):
    """Least common multiple of whole numbers.

    >>> paddle.lcm(paddle.to_tensor([12]), paddle.to_tensor([18])).tolist()
    [36]
    """
    return m.lcm(x, y)
