"""Elementwise operators of analysis: the logistic function and the hyperbolic tangent.

MiniPaddle has more of them, in `minipaddle/ops/angles.py` and `gamma.py`.
"""

from __future__ import annotations

from ..core.op import elementwise


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
