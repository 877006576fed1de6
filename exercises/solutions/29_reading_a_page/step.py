"""A step with a slope: a threshold that can be learned.

A finder gives each pixel a probability that there is text, and a threshold cuts: text above, none
below. But a cut is flat on both sides, so its derivative is 0, and neither the probability nor the
threshold learns anything from it. A finder of the kind DB is trained with a step that is steep, but
not flat:

    step = 1 / (1 + exp(-k (probability - threshold)))

It is 1/2 at the threshold, nearly 1 a little above and nearly 0 a little below. Write two
functions:

- `binarize(probability, threshold, k=50.0)`: the step. `probability` is a tensor, `threshold` a
  tensor that broadcasts with it, or a number. Use tensor functions, so that the engine derives it
  by both, as often as you like. Far from the threshold exp overflows to infinity, and a derivative
  of infinity over infinity is no number: use a function that knows that;
- `slope(step, k=50.0)`: how much the step changes with the probability. `step` is a tensor, the
  *result* of `binarize`, and the slope can be computed from it alone, without another exp. (With
  the threshold the step changes by as much, with the other sign.)

At the threshold the slope is k/4: with k = 50 a pixel that is wrong by a little is pushed twelve
times as hard as without the step.

    binarize([0.25, 0.5, 0.75], 0.5, k=8.0)  ->  [0.1192, 0.5, 0.8808]
    slope([0.5, 0.75], k=8.0)                ->  [2.0, 1.5]

Source: Liao et al., "Real-time scene text detection with differentiable binarization" (2020),
equations 2 to 5.
"""

import minipaddle.nn.functional as F


def binarize(probability, threshold, k=50.0):
    """A step at the threshold that is steep and not flat."""
    return F.sigmoid(k * (probability - threshold))


def slope(step, k=50.0):
    """How much the step changes with the probability."""
    return k * step * (1.0 - step)
