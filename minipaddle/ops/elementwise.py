"""Elementwise operators: a scalar formula, then its derivative.

`m` is the array module. A formula uses Python's operators, comparisons, `m.where`, and the
functions of mathematics that numpy, scipy.special and C share.
"""

from __future__ import annotations

import math

from ..core.op import elementwise

# ---- arithmetic ------------------------------------------------------------------------------


@elementwise
def add(m, x, y):
    """x + y."""
    return x + y


add.vjp(x=lambda g: g, y=lambda g: g)


@elementwise
def subtract(m, x, y):
    """x - y."""
    return x - y


subtract.vjp(x=lambda g: g, y=lambda g: -g)


@elementwise
def multiply(m, x, y):
    """x * y."""
    return x * y


multiply.vjp(x=lambda g, y: g * y, y=lambda g, x: g * x)


@elementwise(result="float")
def divide(m, x, y):
    """x / y, always in floating point."""
    return x / y


divide.vjp(x=lambda g, y: g / y, y=lambda g, out, y: -g * out / y)


@elementwise
def floor_divide(m, x, y):
    """The largest whole number not above x / y."""
    return m.floor_divide(x, y)


@elementwise
def remainder(m, x, y):
    """x - y * floor(x / y): it has the sign of y."""
    return m.remainder(x, y)


remainder.vjp(x=lambda g: g, y=lambda g, x, y: -g * floor_divide(x, y))


@elementwise
def pow(m, x, y):
    """x to the power y."""
    return x**y


pow.vjp(
    x=lambda g, x, y: g * y * x ** (y - 1),
    y=lambda g, out, x: g * out * where(x > 0, log(where(x > 0, x, 1.0)), 0.0),
)


@elementwise
def neg(m, x):
    """-x."""
    return -x


neg.vjp(lambda g: -g)


@elementwise
def abs(m, x):
    """|x|; its derivative at 0 is 0."""
    return m.abs(x)


abs.vjp(lambda g, x: g * sign(x))


@elementwise
def sign(m, x):
    """-1, 0 or 1."""
    return m.sign(x)


sign.vjp(lambda g: g * 0)


@elementwise
def square(m, x):
    """x²."""
    return x * x


square.vjp(lambda g, x: g * (2 * x))


@elementwise(result="float")
def sqrt(m, x):
    """√x."""
    return m.sqrt(x)


sqrt.vjp(lambda g, out: g * 0.5 / out)


@elementwise(result="float")
def rsqrt(m, x):
    """1 / √x."""
    return 1 / m.sqrt(x)


rsqrt.vjp(lambda g, out, x: g * -0.5 * out / x)


@elementwise(result="float")
def reciprocal(m, x):
    """1 / x."""
    return 1 / x


reciprocal.vjp(lambda g, out: -g * out * out)


@elementwise
def maximum(m, x, y):
    """The larger of x and y; nan if either is nan."""
    return m.maximum(x, y)


@elementwise
def minimum(m, x, y):
    """The smaller of x and y; nan if either is nan."""
    return m.minimum(x, y)


maximum.vjp(x=lambda g, x, y: where(x > y, g, 0.0), y=lambda g, x, y: where(x > y, 0.0, g))
minimum.vjp(x=lambda g, x, y: where(x < y, g, 0.0), y=lambda g, x, y: where(x < y, 0.0, g))


# ---- exponentials and their relatives --------------------------------------------------------


@elementwise(result="float")
def exp(m, x):
    """e to the power x."""
    return m.exp(x)


exp.vjp(lambda g, out: g * out)


@elementwise(result="float")
def log(m, x):
    """Natural logarithm."""
    return m.log(x)


log.vjp(lambda g, x: g / x)


@elementwise(result="float")
def tanh(m, x):
    """Hyperbolic tangent."""
    return m.tanh(x)


tanh.vjp(lambda g, out: g * (1 - out * out))


@elementwise(result="float")
def sigmoid(m, x):
    """Logistic function, 1 / (1 + e^-x)."""
    return 1 / (1 + m.exp(-x))


sigmoid.vjp(lambda g, out: g * out * (1 - out))


@elementwise(result="float")
def erf(m, x):
    """Error function, 2/√π ∫₀ˣ e^(-t²) dt."""
    return m.erf(x)


erf.vjp(lambda g, x: g * (2 / math.sqrt(math.pi)) * exp(-x * x))


@elementwise(result="float")
def sin(m, x):
    """Sine of an angle in radians."""
    return m.sin(x)


@elementwise(result="float")
def cos(m, x):
    """Cosine of an angle in radians."""
    return m.cos(x)


sin.vjp(lambda g, x: g * cos(x))
cos.vjp(lambda g, x: -g * sin(x))

# ---- activations -----------------------------------------------------------------------------


@elementwise
def relu(m, x):
    """max(x, 0); its derivative at 0 is 0."""
    return m.maximum(x, 0)


relu.vjp(lambda g, out: where(out > 0, g, 0.0))

# ---- comparisons, logic, bits ----------------------------------------------------------------


@elementwise(result="bool")
def equal(m, x, y):
    """x == y."""
    return x == y


@elementwise(result="bool")
def not_equal(m, x, y):
    """x != y."""
    return x != y


@elementwise(result="bool")
def less_than(m, x, y):
    """x < y."""
    return x < y


@elementwise(result="bool")
def less_equal(m, x, y):
    """x <= y."""
    return x <= y


@elementwise(result="bool")
def greater_than(m, x, y):
    """x > y."""
    return x > y


@elementwise(result="bool")
def greater_equal(m, x, y):
    """x >= y."""
    return x >= y


@elementwise
def bitwise_and(m, x, y):
    """Bits set in both."""
    return x & y


@elementwise
def bitwise_or(m, x, y):
    """Bits set in either."""
    return x | y


@elementwise
def bitwise_xor(m, x, y):
    """Bits set in exactly one."""
    return x ^ y


@elementwise
def bitwise_not(m, x):
    """Every bit flipped."""
    return ~x


@elementwise
def bitwise_left_shift(m, x, y):
    """x · 2^y."""
    return x << y


@elementwise
def bitwise_right_shift(m, x, y):
    """⌊x / 2^y⌋."""
    return x >> y


@elementwise(free=("condition",))
def where(m, condition, x, y):
    """x where the condition holds, otherwise y."""
    return m.where(condition, x, y)


where.vjp(
    x=lambda g, condition: where(condition, g, 0.0),
    y=lambda g, condition: where(condition, 0.0, g),
)


@elementwise(result=lambda _, attrs: attrs["dtype"])
def cast(m, x, *, dtype):
    """The same value in another data type."""
    return x


cast.vjp(lambda g, x_spec: cast(g, dtype=x_spec.dtype))
