"""Straight-through: the derivative of rounding, as training needs it.

A network is trained while its weights are rounded. The rounding is a staircase: its true derivative
is 0 on every step, and no weight would ever move. So training pretends that it is the identity.
Write `rounded(g, x_spec)`, the derivative rule of the engine's `fake_quantize` for its input x.

- `g` is a tensor, the cotangent of the result: how much the loss changes with each rounded number.
- Return what arrives at x: g as it is, for numbers that were clipped, too. (The engine follows
  Paddle here. Others let nothing pass where x was clipped.)
- x may have been broadcast: with a scale for each of four groups an x of one row becomes four. Then
  what arrives is a sum: `g.sum_to(shape)` adds up the axes along which a shape was stretched.
  `x_spec.shape` is the shape of x; the result has it.
- It may be differentiated again: write it in tensor functions.

    g = [5.0, -2.0], x of shape [2]      ->  [5.0, -2.0]
    g = [[1.0], [2.0]], x of shape [1]   ->  [3.0]

Source: Bengio, Léonard and Courville, "Estimating or Propagating Gradients Through Stochastic
Neurons for Conditional Computation", 2013.
"""


def rounded(g, x_spec):
    """What arrives at x of the cotangent of its rounded numbers."""
    return g.sum_to(x_spec.shape)
