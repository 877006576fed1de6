"""More elementwise arithmetic: linear maps, extremes that skip nan, bounds, exponentials near 0."""

import math

from ..engine.core.op import elementwise
from ..engine.ops.elementwise import gate, where
from ..engine.ops.special import sigmoid


@elementwise
def scale_(m, x, *, scale=1.0, bias=0.0, bias_after_scale=True):
    """scale · x + bias, or scale · (x + bias)."""
    return x * scale + bias if bias_after_scale else (x + bias) * scale


scale_.vjp(lambda g, scale: g * scale)


@elementwise
def lerp(m, x, y, weight):
    """x + weight · (y - x): linear interpolation from x to y.

    >>> paddle.lerp(paddle.to_tensor([0.0]), paddle.to_tensor([10.0]), 0.25).tolist()
    [2.5]
    """
    return x + weight * (y - x)


lerp.vjp(
    x=lambda g, weight: g * (1 - weight),
    y=lambda g, weight: g * weight,
    weight=lambda g, x, y: g * (y - x),
)


@elementwise(result="float")
def rsqrt(m, x):
    """1 / √x.

    >>> paddle.rsqrt(paddle.to_tensor([4.0])).tolist()
    [0.5]
    """
    return 1 / m.sqrt(x)


rsqrt.vjp(lambda g, out: g * (-0.5 * out * (out * out)))


@elementwise
def fmax(m, x, y):
    """The larger of x and y; a nan only if both are.

    >>> paddle.fmax(paddle.to_tensor([1.0, float("nan")]), paddle.to_tensor([3.0, 2.0])).tolist()
    [3.0, 2.0]
    """
    return m.where((x >= y) | (y != y), x, y)


@elementwise
def fmin(m, x, y):
    """The smaller of x and y; a nan only if both are.

    >>> paddle.fmin(paddle.to_tensor([1.0, float("nan")]), paddle.to_tensor([3.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return m.where((x <= y) | (y != y), x, y)


fmax.vjp(
    x=lambda g, x, y: where((x >= y) | (y != y), g, 0.0),
    y=lambda g, x, y: where((x >= y) | (y != y), 0.0, g),
)
fmin.vjp(
    x=lambda g, x, y: where((x <= y) | (y != y), g, 0.0),
    y=lambda g, x, y: where((x <= y) | (y != y), 0.0, g),
)


@elementwise(result="float")
def expm1(m, x):
    """eˣ - 1, exact for small x too.

    >>> paddle.expm1(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.expm1(x)


@elementwise(result="float")
def log1p(m, x):
    """log(1 + x), exact for small x too.

    >>> paddle.log1p(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.log1p(x)


expm1.vjp(lambda g, out: g * (out + 1))
log1p.vjp(lambda g, x: g / (x + 1))


@elementwise(result="float")
def logaddexp(m, x, y):
    """log(eˣ + eʸ), without overflow.

    >>> paddle.logaddexp(paddle.to_tensor([1000.0]), paddle.to_tensor([-1000.0])).tolist()
    [1000.0]
    """
    return m.logaddexp(x, y)


logaddexp.vjp(x=lambda g, x, y: g * sigmoid(x - y), y=lambda g, x, y: g * sigmoid(y - x))


@elementwise
def clip(m, x, *, min=None, max=None):
    """x moved into [min, max], where either may be None. At the bounds the derivative is 1.

    >>> paddle.clip(paddle.to_tensor([-2.0, 0.5, 3.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    x = x if min is None else m.maximum(x, min)
    return x if max is None else m.minimum(x, max)


@clip.vjp
def _(g, x, min, max):
    low, high = -math.inf if min is None else min, math.inf if max is None else max
    return gate(g, x, low=low, high=high, closed=True)
