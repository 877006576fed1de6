"""The dtype of x + y.

Write `promote(name, inputs)`: the dtype (a NumPy dtype) in which the operator called `name`
computes on `inputs`. An input is a Python number (bool, int or float) or a tensor: anything with a
`.shape` and a `.dtype`. A tensor of shape () is called 0-D. This is Paddle's rule:

1. There are three categories: boolean < whole < floating. The highest among all inputs is that of
   the result.
2. Tensors with axes decide first: if one of them is of that category, only they count. Otherwise
   the 0-D tensors of that category count, and if there is none, the Python numbers. So 0-D tensors
   and numbers lift others to their own category, and never to a wider dtype within it.
3. Those that count meet in the `wider` of their dtypes (given: float16 and bfloat16 meet in
   float32).
4. Tensors with axes that differ in dtype must all be floating: int64 with float32 is a TypeError,
   and so is int64 with int32. The message has `name` and the names of the dtypes in it.

A Python bool counts as bool, an int as int64, a float as float32; where there are numbers alone a
float counts as `default()`, what the user has set.

    promote("add", [float16 [2], float32 [2]])  ->  float32
    promote("add", [float16 [2], 2.5])          ->  float16
    promote("add", [int64 [2], 2.5])            ->  float32
    promote("add", [int64 [2], float32 [2]])    ->  TypeError: add ... int64 ... float32

Source: Paddle's guide "Type promotion".
"""

from functools import reduce

from minipaddle.engine.core.dtype import FLOATS, bool_, default, float32, int64, wider

BOOLEAN, WHOLE, FLOATING = 0, 1, 2
NUMBERS = {bool: bool_.numpy, int: int64.numpy, float: float32.numpy}


def category(dtype) -> int:
    """BOOLEAN, WHOLE or FLOATING. `FLOATS` holds the floating dtypes; see also `dtype.kind`."""
    if dtype in FLOATS:  # NumPy does not know bfloat16: its kind is "V"
        return FLOATING
    return BOOLEAN if dtype.kind == "b" else WHOLE


def promote(name: str, inputs):
    """The dtype in which `name` computes on tensors and Python numbers."""
    tensors = [x for x in inputs if hasattr(x, "dtype")]
    with_axes = {x.dtype for x in tensors if x.shape}
    if len(with_axes) > 1 and not with_axes <= FLOATS:
        raise TypeError(f"{name} does not mix {' and '.join(d.name for d in with_axes)}: cast one")
    without_axes = {x.dtype for x in tensors if not x.shape}
    numbers = {NUMBERS[type(x)] for x in inputs if not hasattr(x, "dtype")}
    if not tensors:
        numbers = {default() if dtype in FLOATS else dtype for dtype in numbers}
    tiers = [with_axes, without_axes, numbers]
    highest = max(category(dtype) for tier in tiers for dtype in tier)
    for tier in tiers:  # the first that reaches the highest category decides alone
        leading = [dtype for dtype in tier if category(dtype) == highest]
        if leading:
            return reduce(wider, leading)
