"""The derivative of relu.

relu(x) is max(x, 0): where x is positive it passes x on, elsewhere it gives 0. Write
`relu(g, out)`, the rule by which a derivative comes back through it. Both arguments are tensors of
one shape:

- `out` is what relu gave: out = max(x, 0);
- `g` says how much the loss changes with each element of `out`.

Return how much the loss changes with each element of x: a tensor of that shape. Where x was
positive, out moves as x moves, so all of g passes. Elsewhere out stays 0 whatever x does, so
nothing passes. At x = 0 itself there is a kink and no derivative; everybody agrees that nothing
passes.

Write it in tensors, not in a loop: `out > 0` is a tensor of True and False, and
`paddle.where(condition, a, b)` takes from a where the condition holds, from b elsewhere.

    g   = [5.0, 5.0, -2.0]
    out = [0.0, 3.0,  1.0]
    relu(g, out) = [0.0, 5.0, -2.0]

Source: Nair and Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines" (2010).
"""

import minipaddle as paddle


def relu(g, out):
    """How much the loss changes with relu's input; `g` says how much it does with the output."""
    # out > 0 just where x > 0, so x itself need not be kept.
    return paddle.where(out > 0, g, 0.0)
