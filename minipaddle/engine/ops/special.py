"""Elementwise operators of analysis: exponentials, sine and cosine, the error function.

MiniPaddle has more of them, in `minipaddle/ops/angles.py` and `gamma.py`.

Formulas of derivatives: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

from __future__ import annotations

import math

from ..core.op import elementwise
from .elementwise import exp


@elementwise(result="float")
def sigmoid(m, x):
    """Logistic function, 1 / (1 + e⁻ˣ).

    >>> paddle.sigmoid(paddle.to_tensor([0.0])).tolist()
    [0.5]
    """
    return 1 / (1 + m.exp(-x))


sigmoid.vjp(lambda g, out: g * out * (1 - out))


@elementwise(result="float")
def tanh(m, x):
    """Hyperbolic tangent.

    >>> paddle.tanh(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.tanh(x)


tanh.vjp(lambda g, out: g * (1 - out * out))


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
def erf(m, x):
    """Error function, 2/√π ∫₀ˣ e^(-t²) dt.

    >>> paddle.erf(paddle.to_tensor([0.0])).tolist()
    [0.0]
    """
    return m.erf(x)


erf.vjp(lambda g, x: g * (2 / math.sqrt(math.pi)) * exp(-x * x))
