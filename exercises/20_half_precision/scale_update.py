"""Update the scale: what a scaler learns from a step.

A scale should be as large as gradients allow. It grows after some good steps in a row, and falls
when gradients became infinite. Write `update_scale(scale, found, good, bad, *, incr_every,
decr_every, incr_ratio, decr_ratio)`, which returns the new (scale, good, bad):

- `found`: this step was bad, a gradient was infinite or NaN. `good` and `bad` count the steps in a
  row, before this one, that were good, or bad. A good step makes `bad` 0, a bad one makes `good` 0.
- After `incr_every` good steps in a row the scale is multiplied by `incr_ratio`, and `good` begins
  again at 0. If the product is infinite the scale stays (and the count begins again all the same).
- After `decr_every` bad steps in a row it is multiplied by `decr_ratio`, but never falls below 1,
  and `bad` begins again at 0.
- `scale`, `found`, `good` and `bad` are 0-D tensors (float32, bool, int32, int32), and so is what
  you return. The others are numbers of Python. It runs inside a captured program, so choose with
  `paddle.where(condition, x, y)`, not with `if`.

    scale = 8, incr_every = 2, incr_ratio = 2, good = 1, found = False  ->  16, 0, 0
    scale = 8, decr_every = 1, decr_ratio = 0.5, good = 1, found = True  ->  4, 0, 0

Source: Paddle's kernel `update_loss_scaling`; Micikevicius et al., "Mixed Precision Training",
2018, section 3.2.
"""

import minipaddle as paddle


def update_scale(scale, found, good, bad, *, incr_every, decr_every, incr_ratio, decr_ratio):
    """(scale, good, bad) after a step."""
    raise NotImplementedError
