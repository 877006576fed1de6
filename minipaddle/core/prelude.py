"""The names that Paddle's functions, layers and optimizers are written with, in one place.

- `creation`, `elementwise` (or `e`), `indexing`, `movement`, `reduction`: the engine's operators.
- `Tensor` and `Parameter` hold values, `wrap` makes a tensor of an array; `Var` is what both eager
  tensors and symbolic ones are; `Record` an operation, `Spec` a dtype and a shape.
- `dt` dtypes; `Dim` a size that only the program knows, `same`, `same_shape`, `larger` for sizes.
- `current` the interpreter on top of the stack; `Recording` switches the tape; `is_static` tells a
  tensor of a program from one with values.
- `axis_of`, `normalize_axes`, `whole`, `whole_numbers`: what users write for an axis or a shape.
- `value_error`, `type_error`, `runtime_error`, `not_supported`, `teach`: errors of what was given
  and expected; `require_one_of`, `require_floats`, `require_ndim`, `refuse_unsupported` raise them.
- `opaque` makes an operator of a body.
- `as_operator` marks a function that is one operator of Paddle's, for mixed precision.
- `slot` a place for a reader's own code; `NUMPY` the array module of the CPU.
"""

from ..engine.core import dtype as dt
from ..engine.core.dim import Dim, as_guarded, larger, same, same_shape
from ..engine.core.dispatch import Recording, current, describe, note_refusal
from ..engine.core.dtype import FLOATS, int32, int64
from ..engine.core.errors import not_supported, runtime_error, teach, type_error, value_error
from ..engine.core.op import OPS, opaque
from ..engine.core.rank import per_rank
from ..engine.core.record import Record, Spec
from ..engine.core.slots import slot
from ..engine.core.spec import broadcast_shapes, normalize_axes, normalize_axis
from ..engine.eager.control_flow import is_static
from ..engine.eager.device import NUMPY
from ..engine.eager.tensor import Parameter, Tensor, wrap
from ..engine.ops import creation, elementwise, linalg, logic, movement, reduction
from ..engine.ops import elementwise as e
from ..engine.ops import gather as indexing
from ..engine.ops.elementwise import abs, maximum, sign, sqrt, where
from ..engine.ops.movement import reshape, transpose
from ..engine.ops.special import sigmoid
from ..engine.ops.var import Var
from .axes import axis_of, no_out, number, tensors, whole, whole_numbers
from .casting import as_operator
from .checks import refuse_unsupported, require_floats, require_ndim, require_one_of
