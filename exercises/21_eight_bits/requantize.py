"""Requantize: floats into whole numbers of a few bits.

After a product of whole numbers, scale, bias and activation make a float of each sum. For the next
product it becomes a whole number again. Write `quantize(m, x, scale, zero, *, low, high)`, the body
of the engine's operator of that name. For each number of x:

- `scale` is the magnitude that the whole number `high` stands for. Divide x by the scale, multiply
  by `high`, and round to the nearest whole number. Halves go to the even
  neighbour, as `m.round` has it. Then add `zero`, the whole number that stands for 0.0.
- What is below `low` becomes `low`, what is above `high` becomes `high`. NaN becomes `low`.
- `scale` and `zero` are numbers, or arrays that broadcast to x. `low` and `high` are whole numbers
  of Python.
- The result are whole numbers, stored as floats in the dtype of x: the engine stores them in a
  byte.

This formula is the body for NumPy, and C is written from it too. So use arithmetic, comparisons,
`m.round`, `m.where(condition, a, b)`, `m.minimum` and `m.maximum`, and nothing of NumPy's own. To
which of two numbers a comparison with NaN leads is up to you.

    x = [0.5, -1.0, 9.0], scale = 1.0, zero = 0, 8 bits  ->  [64, -127, 127]

Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", 2018, section 2.
"""


def quantize(m, x, scale, zero, *, low, high):
    """x in whole numbers from `low` to `high`."""
    raise NotImplementedError
