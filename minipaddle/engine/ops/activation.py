"""Activations: elementwise operators under `paddle.nn.functional`.

MiniPaddle has more of them, in `minipaddle/ops/activations.py`.
"""

from __future__ import annotations

from ..core.op import elementwise
from .elementwise import gate
from .special import sigmoid


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


relu.exact = True
