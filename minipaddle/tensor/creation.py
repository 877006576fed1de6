"""Making tensors: from data, from a value, from a progression.

A shape is a number, a list or tuple of numbers (0-D tensors among them), or a 1-D tensor.
"""

import math

from ..core.axes import drop_fraction, whole, whole_numbers
from ..core.prelude import Dim, Var, current, dt, elementwise, larger, reshape, value_error
from ..engine.core.dim import same_shape
from ..engine.core.spec import leaves
from ..engine.ops import creation as ops
from ..ops import arrangement


def to_tensor(data, dtype=None, place=None, stop_gradient=True):
    """A tensor with a copy of `data`: a number, nested lists, a NumPy array or another tensor.

    Whole numbers become int64, Python floats the default dtype; an array keeps its own. Raises
    TypeError for values that no dtype can hold (strings, complex numbers), ValueError for ragged
    lists.

    >>> paddle.to_tensor([[1, 2], [3, 4]])
    Tensor(shape=[2, 2], dtype=int64, place=Place(cpu), stop_gradient=True,
           [[1, 2],
            [3, 4]])
    """
    out = current.top.constant(data, dtype, place)
    out.stop_gradient = stop_gradient
    return out


def dims(shape) -> tuple:
    """A shape as a tuple of whole numbers; raises TypeError or ValueError that shows it."""
    sizes = whole_numbers(shape)
    if any(n < 0 for n in sizes):
        raise value_error(f"shape={list(sizes)} has a negative size", "sizes of 0 or more")
    return sizes


def floating(dtype):
    """`dtype`, or the default floating dtype."""
    return dt.default() if dtype is None else dt.resolve(dtype)


def number(x):
    """A Python number from a number, a NumPy number or a tensor of one element; or a size."""
    if isinstance(x, Var) and current.top.tracing and x.spec.dtype.kind == "f":
        size = current.top.sizes(x)
        return size if isinstance(size, float) else whole(size)
    if isinstance(x, Var) and x.spec.dtype.kind in "iu":
        return whole(x)
    return x.item() if hasattr(x, "item") else x


def full(shape, fill_value, dtype=None, name=None):
    """A tensor of `shape` with `fill_value` in every place.

    Without a dtype it is the default one; bool for True and False.

    >>> paddle.full([2, 2], 7, "int64").tolist()
    [[7, 7], [7, 7]]
    """
    if dtype is None and isinstance(fill_value, bool):
        dtype = "bool"
    if isinstance(fill_value, complex):
        raise TypeError(f"fill_value={fill_value!r}: complex numbers are not supported")
    if isinstance(fill_value, Var):
        return zeros(shape, dtype) + fill_value.astype(floating(dtype))
    value = float(fill_value) if isinstance(fill_value, str) else number(fill_value)
    return ops.full(shape=dims(shape), value=value, dtype=floating(dtype))


def zeros(shape, dtype=None, name=None):
    """A tensor of zeros.

    >>> paddle.zeros([3]).tolist()
    [0.0, 0.0, 0.0]
    """
    return ops.full(shape=dims(shape), value=0, dtype=floating(dtype))


def ones(shape, dtype=None, name=None):
    """A tensor of ones.

    >>> paddle.ones([2], dtype="int32").tolist()
    [1, 1]
    """
    return ops.full(shape=dims(shape), value=1, dtype=floating(dtype))


def empty(shape, dtype=None, name=None):
    """A tensor whose values do not matter: here they are zeros, the same in every run.

    >>> paddle.empty([2, 3]).shape
    [2, 3]
    """
    return zeros(shape, dtype)


def full_like(x, fill_value, dtype=None, name=None):
    """A tensor of x's shape, and dtype if none is given.

    >>> paddle.full_like(paddle.ones([2]), 0.5).tolist()
    [0.5, 0.5]
    """
    return full(x.spec.shape, fill_value, x.spec.dtype if dtype is None else dtype)


def zeros_like(x, dtype=None, name=None):
    """Zeros in x's shape, and dtype if none is given.

    >>> paddle.zeros_like(paddle.ones([2])).tolist()
    [0.0, 0.0]
    """
    return full_like(x, 0, dtype)


def ones_like(x, dtype=None, name=None):
    """Ones in x's shape, and dtype if none is given.

    >>> paddle.ones_like(paddle.zeros([2]), "int64").tolist()
    [1, 1]
    """
    return full_like(x, 1, dtype)


def empty_like(x, dtype=None, name=None):
    """`empty` in x's shape, and dtype if none is given.

    >>> paddle.empty_like(paddle.ones([2, 3])).shape
    [2, 3]
    """
    return full_like(x, 0, dtype)


def eye(num_rows, num_columns=None, dtype=None, name=None):
    """Ones on the diagonal, zeros elsewhere; square without `num_columns`.

    >>> paddle.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = dims([num_rows, num_rows if num_columns is None else num_columns])
    return arrangement.eye(rows=rows, columns=columns, dtype=floating(dtype))


def arange(start=0, end=None, step=1, dtype=None, *, name=None):
    """start, start + step, … as long as it stays before `end`; `arange(n)` starts at 0.

    Without a dtype: int64 for whole numbers, else the default. Raises ValueError for step 0.

    >>> paddle.arange(1, 2, 0.25).tolist()
    [1.0, 1.25, 1.5, 1.75]
    """
    start, end = (0, start) if end is None else (start, end)
    if dtype is None:
        tensors = [x for x in (start, end, step) if hasattr(x, "spec")]
        dtype = tensors[0].spec.dtype if tensors else None
    start, end, step = map(number, (start, end, step))
    if step == 0:
        raise value_error("arange with step=0 never ends", "a step other than 0")
    if dtype is None:
        counted = all(isinstance(x, int | Dim) for x in (start, end, step))
        dtype = "int64" if counted else dt.default()
    if any(isinstance(x, Dim) for x in (start, end, step)):
        start, end, step = map(drop_fraction, (start, end, step))
    counted = isinstance(end - start, int | Dim) and isinstance(step, int | Dim)
    size = -((start - end) // step) if counted else math.ceil((end - start) / step)
    return ops.arange(size=larger(size, 0), dtype=dt.resolve(dtype), start=start, step=step)


def range(start=0, end=None, step=1, dtype=None, *, name=None):
    """Numbers from `start` to `end`, which is among them, in the default dtype.

    Source: Paddle API `paddle.range`, an older function than `arange`.

    >>> paddle.range(1, 3).tolist()
    [1.0, 2.0, 3.0]
    """
    start, end, step = map(number, (*((0, start) if end is None else (start, end)), step))
    if step == 0:
        raise value_error("range with step=0 never ends", "a step other than 0")
    size = larger(math.floor((end - start) / step) + 1, 0)
    return ops.arange(size=size, dtype=floating(dtype), start=start, step=step)


def linspace(start, stop, num, dtype=None, name=None):
    """`num` numbers from `start` to `stop`, both included, in equal steps.

    Whole dtypes cut the fraction off.

    >>> paddle.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    num = whole(num)
    if num < 1:
        raise value_error(f"linspace of num={num} numbers", "num of 1 or more")
    start, stop = (x.astype("float64") if isinstance(x, Var) else x for x in (start, stop))
    i = ops.arange(size=num, dtype=dt.float64.numpy)
    steps = larger(num - 1, 1)
    below = start + i * ((stop - start) / steps)
    above = stop - (num - 1 - i) * ((stop - start) / steps)
    exact = elementwise.where(i < (num + 1) // 2, below, above)  # both ends come out exact
    return exact.astype(floating(dtype))


def logspace(start, stop, num, base=10.0, dtype=None, name=None):
    """base to the powers that `linspace(start, stop, num)` gives.

    >>> paddle.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    return (base ** linspace(start, stop, num, "float64")).astype(floating(dtype))


def assign(x, output=None):
    """A copy of `x` (a tensor, an array, numbers), through which gradients flow.

    With `output` the values go there, and that tensor, which takes their shape and dtype, is
    returned. Numbers outside of tensors become float64, int64 or bool, a single one of shape [1].

    >>> paddle.assign(paddle.ones([2])).tolist()
    [1.0, 1.0]
    """
    if not isinstance(x, Var):
        wide = "float64" if any(isinstance(v, float) for v in leaves(x)) else None
        x = current.top.constant(
            x if isinstance(x, list | tuple) or hasattr(x, "shape") else [x], wide
        )
    copy = ops.assign(x)
    if output is None:
        return copy
    return output.become(copy, reshaped=not same_shape(output.spec.shape, copy.spec.shape))


def clone(x, name=None):
    """A copy of `x` through which gradients flow.

    >>> x = paddle.ones([2])
    >>> y = x.clone()
    >>> y[0] = 5.0
    >>> x.tolist()
    [1.0, 1.0]
    """
    return ops.assign(x)


def vander(x, n=None, increasing=False, name=None):
    """The powers of a vector as columns, the highest first unless `increasing`; `n` of them.

    >>> paddle.vander(paddle.to_tensor([1, 2, 3]), 2).tolist()
    [[1, 1], [2, 1], [3, 1]]
    """
    (size,) = x.spec.shape
    n = size if n is None else n
    first, step = (0, 1) if increasing else (n - 1, -1)
    powers = ops.arange(size=n, dtype=x.spec.dtype, start=first, step=step)
    return reshape(x, shape=(size, 1)) ** powers


__all__ = [
    "arange", "assign", "clone", "empty", "empty_like", "eye", "full", "full_like", "linspace",
    "logspace", "ones", "ones_like", "range", "to_tensor", "vander", "zeros", "zeros_like",
]  # fmt: skip
