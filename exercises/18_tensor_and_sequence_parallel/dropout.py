"""Dropout: one mask, whatever the mesh.

Ranks that hold pieces of a tensor must drop what one process would drop. That works if a random
number is a function of its place: of a key for the draw, and of the place in the *whole* tensor.
Then any rank can compute the numbers of its own piece. Write two functions.

`bits(m, index, base)`: 64 random bits for each place, by SplitMix64.

- `m` is the array module, `index` an array of places (whole numbers), `base` a whole number (an
  array without axes) that names the draw. Both have a signed dtype. Write operators alone, and no
  loops: C is made of this function, too.
- z = index · GAMMA + (base + GAMMA) in unsigned whole numbers of 64 bits (`.astype(m.uint64)`),
  which wrap around; the result is `scramble(z)`, unsigned as well. Leave `index` as it is.

`drop(x, p, axis, mode)`: dropout with 0 ≤ p ≤ 1. x may lie in pieces.

- `draw_mask(shape, p)` is a mask that is True with probability 1 - p; its places count in the shape
  that you give it. `x.spec.shape` is the shape of the *whole* tensor, whatever a rank has of it.
- Where the mask is False the result is 0. Where it is True it is x in the mode
  "downscale_in_infer", and x / (1 - p) in the mode "upscale_in_train".
- `axis` is None, an axis or a list of axes: the mask has the size of x there and 1 elsewhere, so
  that whole slices are dropped. `normalize_axes(axis, ndim)` gives a tuple of axes ≥ 0.
- p = 1 draws nothing: the result is x · 0. The dtype is that of x: `.astype(x.spec.dtype)`.

    x [2, 6] in pieces [2, 3], [2, 3]: the second rank has the places 3 4 5 and 9 10 11

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014; Salmon et
al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from minipaddle.nn.functional.common import draw_mask, normalize_axes
from minipaddle.ops.random import GAMMA, scramble


def bits(m, index, base):
    """64 random bits (uint64) for each index of a stream."""
    raise NotImplementedError


def drop(x, p, axis, mode):
    """Dropout as training applies it."""
    raise NotImplementedError
