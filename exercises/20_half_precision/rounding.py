"""Where bfloat16 stalls: round to it.

A bfloat16 is the upper half of the bits of a float32. A weight of 1.0 stays 1.0 under a step of
0.001 because the sum, on its way into a weight of bfloat16, is rounded. Write this rounding: the
body `cast(m, x, *, dtype)` of the engine's operator of that name.

- If `x` is an array of NumPy in float32 (`m` is the module `numpy` then) and `dtype` is
  `BFLOAT16`, return an array of *float32* that holds the bfloat16 nearest to each number. Of two
  that are equally near, take the one whose last bit is 0. The engine stores the upper halves.
- Anything else is returned as it is: an array of another dtype, one for another `dtype`, or the
  text that stands for a value where C is written.
- NaN stays NaN. What rounds to more than the largest bfloat16 is infinite. The signs of zeros stay.
- `x.view("uint32")` has the bits of x as whole numbers: the sign, 8 bits of the exponent, 23 of the
  mantissa. To add one in the last place of the upper half is to go to the next bfloat16, also where
  the exponent changes. `bits.view("float32")` goes back. Leave x as it is.

    1.0 + 1/256  ->  1.0         halfway to 1.0078125, whose last bit is 1
    1.0 + 3/256  ->  1.015625    halfway between 1.0078125 and 1.015625

Source: the format of Google's TPUs; Intel, "BFLOAT16 – Hardware Numerics Definition", 2018.
"""

import numpy as np

from minipaddle.engine.core import dtype as dt

BFLOAT16 = dt.bfloat16.numpy


def cast(m, x, *, dtype):
    """x as it is, but rounded if it is to be stored in bfloat16."""
    raise NotImplementedError
