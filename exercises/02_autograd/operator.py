"""silu(x) = x · σ(x): an operator's formula and its derivative.

σ(x) = 1 / (1 + e⁻ˣ) is the logistic function; silu is the activation of many language models.
Write two functions, which become the operator `silu` of the engine:

- `silu(m, x)`: the formula. `m` is the array module (numpy, or cupy on a GPU), so it is `m.exp`,
  and `x` is an array of `m` of any shape. Return an array of the same shape.
- `silu_rule(g, x)`: the derivative rule. `g` says how much the loss changes with silu's *result*,
  `x` is what silu was given; return how much the loss changes with `x`. Both are tensors now, of
  one shape, and the rule is written in tensors, so that it can be differentiated once more.
  `F.sigmoid` is there.

By the product rule, and σ' = σ · (1 - σ):  silu'(x) = σ(x) + x · σ(x) · (1 - σ(x)).

    silu(numpy, 0.0) -> 0.0        silu_rule(g=2.0, x=0.0) -> 2 · 0.5 = 1.0

Source: Elfwing et al., "Sigmoid-Weighted Linear Units", 2017.
"""

import minipaddle.nn.functional as F


def silu(m, x):
    """x · σ(x), element by element, in the array module `m`."""
    raise NotImplementedError


def silu_rule(g, x):
    """The cotangent of silu's input, given that of its result."""
    raise NotImplementedError
