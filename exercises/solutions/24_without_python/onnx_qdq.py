"""Q and DQ: whole numbers of few bits as a pair of nodes.

ONNX has no layers on whole numbers (chapter 21). A file says instead where a value is rounded: a
node "QuantizeLinear", which makes whole numbers of floats, and at once a "DequantizeLinear", which
makes floats of them. A program that can compute with bytes finds the pairs, and joins them with
what stands between. Write two functions that say the engine's rounding so.

`step_of(g, scale, high, x)`: the engine's `scale` says which magnitude the whole number `high`
stands for. ONNX wants to know which magnitude *one step* stands for, in float32. Return (the step
as a value of the graph, the axis of x along which it varies).

- `g.fold(scale)` is the scale as an array, or None if it depends on the input. A file can only
  hold numbers: then `raise NoForm(why)`, and the engine writes the formula.
- The scale broadcasts to x. If it has one element, the step is a constant without axes, and the
  axis is None. If one of its axes has another size than 1, the step is a vector; say which axis of
  *x* it belongs to, counted from the front (the scale may have fewer axes than x). More such axes:
  NoForm.
- `g.constant(array)` puts an array into the file, and returns its value.

`write_quantize(g, x, scale, zero, low, high)`: x as whole numbers of int8 from `low` to `high`, by
a node "QuantizeLinear" with the inputs x, step and zero point, the attribute `axis` and
`dtype=np.int8`. Return (the whole numbers, step, zero point, axis).

- `zero_of(g, zero, step, np.int8)` is the zero point, a value.
- An int8 holds -128 to 127. If `low` or `high` lies outside: NoForm.
- The node clips to -128 … 127. If `low` and `high` are other numbers, a node "Clip" has to follow;
  its inputs are the whole numbers and two constants of int8 without axes.

Source: ONNX's QuantizeLinear; Jacob et al., 2018.
"""

import numpy as np

from minipaddle.onnx.forms.bits import zero_of
from minipaddle.onnx.graph import NoForm


def step_of(g, scale, high, x):
    """(the step, the axis of x along which it varies)."""
    known = g.fold(scale)
    if known is None:
        raise NoForm("its scale depends on the input")
    step = (known / high).astype("float32")
    wide = [d for d, n in enumerate(step.shape) if n != 1]
    if len(wide) > 1:
        raise NoForm("its scale varies along several axes")
    if not wide:
        return g.constant(step.reshape(())), None
    return g.constant(step.ravel()), wide[0] + len(x.shape) - step.ndim


def write_quantize(g, x, scale, zero, low, high):
    """(whole numbers of int8, step, zero point, axis)."""
    if low < -128 or high > 127:
        raise NoForm("an int8 does not hold its whole numbers")
    step, axis = step_of(g, scale, high, x)
    point = zero_of(g, zero, step, np.int8)
    q = g("QuantizeLinear", x, step, point, axis=axis, dtype=np.int8)
    if low > -128 or high < 127:
        q = g("Clip", q, np.array(low, "int8"), np.array(high, "int8"))
    return q, step, point, axis
