"""Shape rules: what a result will look like, before there is one.

Two operators need a rule. A `Spec` holds a shape (a tuple of sizes) and a dtype, and says how many
axes that is (`spec.ndim`). Given the specs of the inputs, return the Spec of the result:

`matmul_spec(x, y)`: the spec of x @ y. The last axis of x meets the second to last of y. Axes
before these broadcast. A vector is a row on the left and a column on the right, and its missing
axis is missing in the result too. (x and y have one dtype; the engine has seen to it.)

`concat_spec(*xs, axis)`: the spec of the xs, joined along `axis`, which counts from 0. All other
axes must be equal. Attributes come by name, as `axis` does here.

If the inputs do not fit together, raise a ValueError that names what differs. Neither operator
takes a 0-D tensor.

A size may be open: not a number, but a name such as `n`, known when the program runs. You can
compare it (`==`, `!=`; where an operator makes no sense unless two sizes are equal, `n == 3` is
true, and the program notes that it relies on it) and add it to others. You cannot ask which
number it is.

    matmul_spec(float32[2, 3], float32[3, 4])       ->  float32[2, 4]
    matmul_spec(float32[n, 3], float32[3])          ->  float32[n]
    concat_spec(float32[n, 3], float32[2, 3], axis=0)  ->  float32[n + 2, 3]

The engine asks these rules whenever it writes a record, and when it verifies a program.
"""

from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.spec import broadcast_shapes  # your rule of chapter 1


def matmul_spec(x, y):
    """The Spec of x @ y."""
    raise NotImplementedError


def concat_spec(*xs, axis):
    """The Spec of the xs joined along an axis."""
    raise NotImplementedError
