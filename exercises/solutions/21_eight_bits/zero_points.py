"""Zero points: whole numbers for a range that is not symmetric, and what they add to a product.

After a ReLU no number is negative: half of the whole numbers would stand for nothing. So let the
least whole number stand for the least value, `low`, and the largest for the largest, `high`. Then
another number than 0 stands for 0.0, the *zero point*. Write three functions.

`zero_point(low, high, bits)` gives (scale, zero), 0-D tensors of float32, as `low` and `high` are.

- There are 2^bits whole numbers, from -2^(bits-1) to 2^(bits-1) - 1. The distance of two neighbours
  is the step: (high - low) shared among the steps between them, but at least `LEAST`.
- `scale` is what the largest whole number stands for without a zero point: so many steps.
- `zero` is the whole number that stands for 0.0: as many steps above the least one as 0.0 is above
  `low`. It is rounded, so that 0.0 itself is exact. low <= 0 <= high.

`zero_correction(zero, sums)`: a whole number q stands for (q - zero) steps, so a dot product of
q and w has zero · Σw too much. `zero` is a 0-D tensor of float32, a whole number; `sums` is a
tensor of int32 with the sum of weights for each output. Return what is too much, in int32, exactly.

`unit(scale, w_scale, w_high)`: what a sum of products has to be multiplied by. With weights w that
stand for w · w_scale / w_high, return scale · w_scale / w_high; the sum is divided by the `high` of
the left side elsewhere. `scale` is a tensor or a number, `w_scale` a tensor, 0-D or one number for
each output, `w_high` a whole number. Multiply first, then divide.

    zero_point(0.0, 25.5, 8)           ->  12.7, -128        steps of 0.1
    zero_correction(3.0, [10, -20])    ->  [30, -60]

Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", 2018, sections 2.1 and 2.3.
"""

import minipaddle as paddle

LEAST = 1e-7


def zero_point(low, high, bits):
    """(scale, zero) for the range from `low` to `high`."""
    least, largest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    step = paddle.clip((high - low) / (largest - least), min=LEAST)
    return step * largest, least - paddle.round(low / step)


def zero_correction(zero, sums):
    """What the sums of products have too much, in int32."""
    return zero.astype("int32") * sums


def unit(scale, w_scale, w_high):
    """The scale of the sums of products."""
    return w_scale * scale / w_high
