"""Activations: elementwise operators under `paddle.nn.functional`.

MiniPaddle has more of them, in `minipaddle/ops/activations.py`.
"""

from __future__ import annotations

import math

from ..core.op import elementwise
from .elementwise import exp, gate, square, where
from .special import erf, sigmoid, tanh


@elementwise
def relu(m, x):
    """max(x, 0); its derivative at 0 is 0.

    >>> paddle.nn.functional.relu(paddle.to_tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return m.maximum(x, 0)


relu.vjp(lambda g, out: gate(g, out))


@elementwise(result="float")
def silu(m, x):
    """x · sigmoid(x): Ramachandran et al., "Searching for Activation Functions".

    >>> paddle.nn.functional.silu(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return x / (1 + m.exp(-x))


@silu.vjp
def _(g, x):
    return g * (sigmoid(x) * (x * sigmoid(-x) + 1))  # σ(-x) = 1 - σ(x)


swish = silu


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
    if approximate in (True, "tanh"):
        c = math.sqrt(2 / math.pi)
        x2 = square(x)
        t = tanh(x * (c + (c * 0.044715) * x2))
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (c + (c * 0.134145) * x2))
    density = exp(square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * density)


@elementwise(result="float")
def softplus(m, x, *, beta=1, threshold=20):
    """log(1 + e^(beta·x)) / beta; x itself where beta · x > threshold.

    >>> round(paddle.nn.functional.softplus(paddle.to_tensor(0.0)).item(), 4)  # log 2
    0.6931
    """
    z = beta * x
    return m.where(z > threshold, x, m.logaddexp(z, 0) / beta)


softplus.vjp(lambda g, x, beta, threshold: g * where(beta * x > threshold, 1.0, sigmoid(beta * x)))


relu.exact = True
