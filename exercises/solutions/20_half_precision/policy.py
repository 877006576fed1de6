"""The cast policy: in which dtype does an operator compute?

Within `paddle.amp.auto_cast` the interpreter in charge asks this before each operator, and casts
the inputs to what it is told. Write `computing_dtype(kind, given, low, promote)`:

- `kind` says in which list the operator stands: "white" (products: fast in few bits, and safe),
  "black" (long sums, steep functions: not safe), or "other".
- `given` is a list of the dtypes of its tensors, in any order, perhaps empty. There may be dtypes
  that mixed precision does not touch, float64 or int64, among them: they decide nothing.
- `low` is the dtype of few bits. `SINGLE` is float32. Return one of the two.
- A white operator computes in `low`, a black one in float32.
- Any other one should not lose what is there already: if `promote` is true and one of its tensors
  is in float32, it computes in float32. If all are in fewer bits, or without `promote`, in `low`.

    "other", [bfloat16, float32], low = bfloat16, promote  ->  float32
    "other", [bfloat16], low = bfloat16, promote           ->  bfloat16

Source: Micikevicius et al., "Mixed Precision Training", 2018, section 3.3; Paddle API
`paddle.amp.auto_cast`.
"""

from minipaddle.engine.core import dtype as dt

SINGLE = dt.float32.numpy


def computing_dtype(kind, given, low, promote):
    """`low` or float32: the dtype in which an operator computes."""
    if kind == "white":
        return low
    if kind == "black":
        return SINGLE
    return SINGLE if promote and SINGLE in given else low
