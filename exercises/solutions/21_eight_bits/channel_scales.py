"""Per-channel scales: each output of a weight has its own.

The weights of one output may be ten times as large as those of another. With one scale for both,
the smaller ones have few whole numbers left. Write `channel_scales(x, axis)`: the largest magnitude
at each index along an axis.

- `x` is a tensor of one axis or more, of floats, and `axis` one of them, from 0 on. The result is a
  tensor with one axis, as long as that one, in the dtype of x.
- Where all numbers are zero nothing can be divided by the largest: a scale is at least `LEAST`.
- It is traced in training with rounded weights: write it in tensor functions.

    x = [[3.0, 30.0], [1.2, -9.0]], axis = 1  ->  [3.0, 30.0]

Source: Krishnamoorthi, "Quantizing deep convolutional networks for efficient inference: A
whitepaper", 2018, section 2.
"""

import minipaddle as paddle

LEAST = 1e-7


def channel_scales(x, axis):
    """The largest magnitude at each index along an axis, at least LEAST."""
    others = [d for d in range(x.ndim) if d != axis]
    top = paddle.abs(x)
    if others:
        top = top.max(axis=others)
    return paddle.clip(top, min=LEAST)
