"""Check and unscale: the gradients of a scaled loss, before a step.

The loss was multiplied by a scale, and so were all gradients. Before the step they are divided by
it; and if one of them is infinite or NaN, the scale was too large and no step must be made. Write
`check_and_unscale(gradients, scale)`, which returns a pair:

- first a list of the gradients divided by the scale: tensors of the same shapes and dtypes, in the
  same order. `gradients` is a list of at least one tensor, in float16, bfloat16, float32 or
  float64, perhaps mixed; they stay as they are. `scale` is a 0-D tensor in float32.
- then a 0-D tensor of bool: whether any number of any gradient is infinite or NaN. It looks at what
  it was given: a quotient that is too large for its dtype is another matter. (The scale is at least
  1, so there is none.)

It runs in captured programs: write it in tensor functions, without asking for a number in Python
(no `if` and no `.item()`: a program would wait for it). Beware of sums: of two finite numbers of
float16 the sum may be infinite. A gradient may be 0-D, too; divided by the scale it is float32.

    [[8.0, inf], [4.0]], scale = 4.0  ->  [[2.0, inf], [1.0]], True

Source: Paddle's kernel `check_finite_and_unscale`.
"""

import minipaddle as paddle


def check_and_unscale(gradients, scale):
    """(the gradients divided by the scale, whether one of them is infinite or NaN)."""
    raise NotImplementedError
