"""More elementwise operators of analysis: logarithms, sine, cosine, angles, hyperbolic functions.

Formulas of derivatives: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

import math

from ..engine.core.op import elementwise
from ..engine.ops.elementwise import where
from .arithmetic import rsqrt


@elementwise(result="float")
def sin(m, x):
    """Sine.

    >>> paddle.sin(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.sin(x)


@elementwise(result="float")
def cos(m, x):
    """Cosine.

    >>> paddle.cos(paddle.to_tensor([0.0])).tolist()
    [1.0]
    """
    return m.cos(x)


sin.vjp(lambda g, x: g * cos(x))
cos.vjp(lambda g, x: -g * sin(x))


@elementwise(result="float")
def log2(m, x):
    """Logarithm to base 2.

    >>> paddle.log2(paddle.to_tensor([8.0])).tolist()
    [3.0]
    """
    return m.log2(x)


@elementwise(result="float")
def log10(m, x):
    """Logarithm to base 10.

    >>> paddle.log10(paddle.to_tensor([1.0])).tolist()
    [0.0]
    """
    return m.log10(x)


log2.vjp(lambda g, x: g / (x * math.log(2)))
log10.vjp(lambda g, x: g / (x * math.log(10)))


@elementwise(result="float")
def logit(m, x, *, eps=None):
    """log(x / (1 - x)), the inverse of sigmoid; `eps` keeps x inside [eps, 1 - eps] unless it is 0.

    >>> paddle.logit(paddle.to_tensor([0.5])).tolist()
    [0.0]
    """
    x = m.minimum(m.maximum(x, eps), 1 - eps) if eps else x
    return m.log(x / (1 - x))


@logit.vjp
def _(g, x, eps):
    slope = g / (x * (1 - x))
    low = eps or 0.0
    return where((x < low) | (x > 1 - low), 0.0 if eps else math.nan, slope)


@elementwise(result="float")
def stanh(m, x, *, scale_a=0.67, scale_b=1.7159):
    """scale_b · tanh(scale_a · x): LeCun, "Efficient BackProp".

    >>> paddle.stanh(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return scale_b * m.tanh(scale_a * x)


stanh.vjp(lambda g, out, scale_a, scale_b: g * (scale_a * scale_b - out * out * scale_a / scale_b))


@elementwise(result="float")
def tan(m, x):
    """Tangent.

    >>> paddle.tan(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.tan(x)


@elementwise(result="float")
def asin(m, x):
    """Inverse sine, in [-π/2, π/2]; nan outside [-1, 1].

    >>> paddle.asin(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.arcsin(x)


@elementwise(result="float")
def acos(m, x):
    """Inverse cosine, in [0, π]; nan outside [-1, 1].

    >>> paddle.acos(paddle.to_tensor([1.0])).tolist()
    [0.0]
    """
    return m.arccos(x)


@elementwise(result="float")
def atan(m, x):
    """Inverse tangent, in (-π/2, π/2).

    >>> paddle.atan(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.arctan(x)


@elementwise(result="float")
def atan2(m, x, y):
    """The angle of the point (y, x), in [-π, π]: x is the ordinate.

    >>> paddle.atan2(paddle.to_tensor([0.0]), paddle.to_tensor([1.0])).tolist()
    [0.0]
    """
    return m.arctan2(x, y)


tan.vjp(lambda g, out: g * (1 + out * out))
asin.vjp(lambda g, x: g * rsqrt(1 - x * x))
acos.vjp(lambda g, x: -g * rsqrt(1 - x * x))
atan.vjp(lambda g, x: g / (1 + x * x))


def divide_by_squared_radius(leg, x, y):
    """leg / (x² + y²), at the origin 0."""
    square = x * x + y * y
    return where(square == 0, 0.0, leg / square)


atan2.vjp(
    x=lambda g, x, y: g * divide_by_squared_radius(y, x, y),
    y=lambda g, x, y: -g * divide_by_squared_radius(x, x, y),
)


@elementwise(result="float")
def hypot(m, x, y):
    """√(x² + y²), without overflow.

    >>> paddle.hypot(paddle.to_tensor([3.0]), paddle.to_tensor([4.0])).tolist()
    [5.0]
    """
    return m.hypot(x, y)


hypot.vjp(x=lambda g, out, x: g * x / out, y=lambda g, out, y: g * y / out)


@elementwise(result="float")
def deg2rad(m, x):
    """Degrees as radians.

    >>> paddle.deg2rad(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return x * (math.pi / 180)


@elementwise(result="float")
def rad2deg(m, x):
    """Radians as degrees.

    >>> paddle.rad2deg(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return x * (180 / math.pi)


deg2rad.vjp(lambda g: g * (math.pi / 180))
rad2deg.vjp(lambda g: g * (180 / math.pi))


@elementwise(result="float")
def angle(m, x):
    """The angle of a real number in the complex plane: 0, or π where x is negative.

    >>> paddle.angle(paddle.to_tensor([2.0])).tolist()
    [0.0]
    """
    return m.where(x < 0, math.pi, m.minimum(m.abs(x), 0))


angle.vjp(lambda g: g * 0)


@elementwise(result="float")
def sinh(m, x):
    """Hyperbolic sine.

    >>> paddle.sinh(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.sinh(x)


@elementwise(result="float")
def cosh(m, x):
    """Hyperbolic cosine.

    >>> paddle.cosh(paddle.to_tensor([0.0])).tolist()
    [1.0]
    """
    return m.cosh(x)


@elementwise(result="float")
def asinh(m, x):
    """Inverse hyperbolic sine.

    >>> paddle.asinh(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.arcsinh(x)


@elementwise(result="float")
def acosh(m, x):
    """Inverse hyperbolic cosine; nan below 1.

    >>> paddle.acosh(paddle.to_tensor([1.0])).tolist()
    [0.0]
    """
    return m.arccosh(x)


@elementwise(result="float")
def atanh(m, x):
    """Inverse hyperbolic tangent; nan outside [-1, 1].

    >>> paddle.atanh(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.arctanh(x)


sinh.vjp(lambda g, x: g * cosh(x))
cosh.vjp(lambda g, x: g * sinh(x))
asinh.vjp(lambda g, x: g * rsqrt(x * x + 1))
acosh.vjp(lambda g, x: g * rsqrt(x * x - 1))
atanh.vjp(lambda g, x: g / (1 - x * x))
