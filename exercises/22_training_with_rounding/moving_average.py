"""The moving average: a scale that follows what it sees.

The inputs of a layer change while a network is trained, and so does the magnitude that their
largest whole number should stand for. One batch says little; the largest of all times never falls
again. A moving average lets older batches count less and less. Write
`moving_average(state, accum, top, rate)`, which returns the new (state, accum):

- `accum` is a weighted sum of magnitudes, `state` the sum of the weights: accum / state, their
  mean, is the scale. A new magnitude `top` comes in with weight 1; the weights of all earlier ones
  are multiplied by `rate`, a number from 0 to 1.
- `state`, `accum` and `top` are tensors of one shape and dtype; so is what you return, in new
  tensors. It runs in captured steps.

Because the weights are counted too, the mean is right from the first batch on.

    state 1.0, accum 2.0, top 4.0, rate 0.5  ->  1.5, 5.0        the scale: 2.0, then 3.33

Source: Paddle API `paddle.quantization.quanters.FakeQuanterWithAbsMaxObserver`.
"""


def moving_average(state, accum, top, rate):
    """(state, accum) after another magnitude."""
    raise NotImplementedError
