"""More activations, elementwise, under `paddle.nn.functional`.

Where a formula has a kink, its derivative there is the one Paddle takes.
"""

import math

from ..engine.core.dtype import HALVES, float32
from ..engine.core.op import elementwise
from ..engine.ops.elementwise import exp, gate, minimum, square, where
from ..engine.ops.special import sigmoid, tanh
from .gamma import erf


@elementwise(result="float")
def gelu(m, x, *, approximate=False):
    """x · Φ(x), Φ the normal distribution: Hendrycks and Gimpel, "Gaussian Error Linear Units".

    `approximate` (True or "tanh"; False or "none" for exact) takes a tanh for Φ.

    >>> paddle.nn.functional.gelu(paddle.to_tensor([0.0, 9.0])).tolist()
    [0.0, 9.0]
    """
    if approximate in (True, "tanh"):
        return 0.5 * x * (1 + m.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + m.erf(x * math.sqrt(0.5)))


@gelu.vjp
def _(g, x, approximate):
    if x.spec.dtype in HALVES:  # the steps of the formula are not rounded
        wide = multiply_by_slope(g.astype(float32.numpy), x.astype(float32.numpy), approximate)
        return wide.astype(x.spec.dtype)
    return multiply_by_slope(g, x, approximate)


def multiply_by_slope(g, x, approximate):
    """g times the derivative of gelu."""
    if approximate in (True, "tanh"):
        c = math.sqrt(2 / math.pi)
        x2 = square(x)
        t = tanh(x * (c + (c * 0.044715) * x2))
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (c + (c * 0.134145) * x2))
    density = exp(square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * density)


@elementwise(result="float")
def gated(m, x, y):
    """x · σ(y): Dauphin et al., "Language Modeling with Gated Convolutional Networks"."""
    return x / (1 + m.exp(-y))


gated.vjp(x=lambda g, y: g * sigmoid(y), y=lambda g, out, y: g * out * sigmoid(-y))


@elementwise(result="float")
def softplus(m, x, *, beta=1, threshold=20):
    """log(1 + e^(beta·x)) / beta; x itself where beta · x > threshold.

    >>> round(paddle.nn.functional.softplus(paddle.to_tensor(0.0)).item(), 4)  # log 2
    0.6931
    """
    z = beta * x
    return m.where(z > threshold, x, m.logaddexp(z, 0) / beta)


softplus.vjp(lambda g, x, beta, threshold: g * where(beta * x > threshold, 1.0, sigmoid(beta * x)))


@elementwise
def relu6(m, x):
    """min(max(x, 0), 6): Krizhevsky, "Convolutional Deep Belief Networks on CIFAR-10".

    >>> paddle.nn.functional.relu6(paddle.to_tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """
    return m.minimum(m.maximum(0, x), 6)


relu6.vjp(lambda g, out: gate(g, out, high=6.0))


@elementwise(result="float")
def leaky_relu(m, x, *, negative_slope=0.01):
    """x where x >= 0, else negative_slope · x.

    >>> paddle.nn.functional.leaky_relu(paddle.to_tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return m.where(x > 0, x, negative_slope * x)


leaky_relu.vjp(lambda g, x, negative_slope: where(x >= 0, g, g * negative_slope))


@elementwise(result="float")
def thresholded_relu(m, x, *, threshold=1.0, value=0.0):
    """x where x > threshold, else `value`.

    >>> paddle.nn.functional.thresholded_relu(paddle.to_tensor([0.5, 2.0])).tolist()
    [0.0, 2.0]
    """
    return m.where(x <= threshold, value, x)  # NaN stays


thresholded_relu.vjp(lambda g, x, threshold: gate(g, x, low=threshold))


@elementwise(result="float")
def hardtanh(m, x, *, min=-1.0, max=1.0):
    """x moved into [min, max]; at the bounds the derivative is 0.

    >>> paddle.nn.functional.hardtanh(paddle.to_tensor([-4.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    return m.minimum(m.maximum(x, min), max)


hardtanh.vjp(lambda g, x, min, max: gate(g, x, low=min, high=max))


@elementwise(result="float")
def hardsigmoid(m, x, *, slope=0.1666667, offset=0.5):
    """slope · x + offset, moved into [0, 1].

    >>> paddle.nn.functional.hardsigmoid(paddle.to_tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return m.minimum(m.maximum(slope * x + offset, 0), 1)


hardsigmoid.vjp(lambda g, out, slope: gate(g * slope, out, high=1.0))


@elementwise(result="float")
def hardswish(m, x):
    """x · min(max(x + 3, 0), 6) / 6: Howard et al., "Searching for MobileNetV3".

    >>> paddle.nn.functional.hardswish(paddle.to_tensor([-4.0, 4.0])).tolist()
    [-0.0, 4.0]
    """
    return x * m.minimum(m.maximum(x + 3, 0), 6) / 6


hardswish.vjp(lambda g, x: g * where(x >= 3, 1.0, where(x <= -3, 0.0, x / 3 + 0.5)))


@elementwise(result="float")
def elu(m, x, *, alpha=1.0):
    """x where x > 0, else alpha · (eˣ - 1): Clevert et al., "Exponential Linear Units".

    >>> paddle.nn.functional.elu(paddle.to_tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return m.where(x > 0, x, alpha * m.expm1(m.minimum(0, x)))


elu.vjp(lambda g, x, alpha: g * where(x > 0, 1.0, alpha * exp(minimum(x, 0.0))))


@elementwise(result="float")
def celu(m, x, *, alpha=1.0):
    """x where x > 0, else alpha · (e^(x/alpha) - 1): Barron, "Continuously Differentiable ELU".

    >>> paddle.nn.functional.celu(paddle.to_tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return m.where(x > 0, x, alpha * m.expm1(m.minimum(0, x) / alpha))


celu.vjp(lambda g, x, alpha: g * where(x > 0, 1.0, exp(minimum(x, 0.0) / alpha)))


@elementwise(result="float")
def selu(m, x, *, scale=1.0507009873554805, alpha=1.6732632423543772):
    """scale · elu(x, alpha): Klambauer et al., "Self-Normalizing Neural Networks".

    >>> paddle.nn.functional.selu(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return scale * m.where(x > 0, x, alpha * m.expm1(m.minimum(0, x)))


selu.vjp(lambda g, x, scale, alpha: g * where(x > 0, scale, (scale * alpha) * exp(minimum(x, 0.0))))


@elementwise(result="float")
def mish(m, x):
    """x · tanh(softplus(x)): Misra, "Mish: A Self Regularized Activation Function".

    >>> paddle.nn.functional.mish(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return x * m.tanh(m.logaddexp(x, 0))


@mish.vjp
def _(g, x):
    t = tanh(softplus(x))
    return g * (t + x * (1 - t * t) * sigmoid(x))


@elementwise(result="float")
def log_sigmoid(m, x):
    """log(sigmoid(x)), exact for very negative x too.

    >>> round(paddle.nn.functional.log_sigmoid(paddle.to_tensor(0.0)).item(), 4)  # -log 2
    -0.6931
    """
    return m.minimum(x, 0) - m.log1p(m.exp(-m.abs(x)))


log_sigmoid.vjp(lambda g, x: g * sigmoid(-x))


@elementwise(result="float")
def softsign(m, x):
    """x / (1 + |x|).

    >>> paddle.nn.functional.softsign(paddle.to_tensor([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """
    return x / (1 + m.abs(x))


softsign.vjp(lambda g, x: g / square(1 + abs(x)))


@elementwise(result="float")
def softshrink(m, x, *, threshold=0.5):
    """x moved towards 0 by `threshold`, and 0 where it is nearer.

    >>> paddle.nn.functional.softshrink(paddle.to_tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """
    return m.where(m.abs(x) <= threshold, 0, x - m.copysign(threshold, x))


softshrink.vjp(lambda g, x, threshold: where(abs(x) > threshold, g, 0.0))


@elementwise
def hardshrink(m, x, *, threshold=0.5):
    """0 where |x| < threshold, else x.

    >>> paddle.nn.functional.hardshrink(paddle.to_tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """
    return m.where(m.abs(x) < threshold, 0, x)


hardshrink.vjp(lambda g, x, threshold: where(abs(x) >= threshold, g, 0.0))


@elementwise(result="float")
def tanhshrink(m, x):
    """x - tanh(x).

    >>> paddle.nn.functional.tanhshrink(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return x - m.tanh(x)


tanhshrink.vjp(lambda g, x: g * square(tanh(x)))
