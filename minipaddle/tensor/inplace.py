"""In-place functions: `tanh_(x)` writes tanh(x) over x. They are derived from one table."""

import inspect
from functools import wraps
from math import prod

from ..core.prelude import creation, elementwise, movement, value_error
from ..ops import arrangement
from . import linalg, manipulation, math, reduce

SAME_SHAPE = {
    math: """
        abs acos acosh add asin asinh atan atanh bitwise_and bitwise_invert bitwise_left_shift
        bitwise_not bitwise_or bitwise_right_shift bitwise_xor cast ceil clip copysign cos cosh
        digamma divide equal erf erfinv exp expm1 floor floor_divide floor_mod frac gammainc
        gammaincc gammaln gcd greater_equal greater_than hypot i0 lcm ldexp lerp less less_equal
        less_than lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor logit
        mod multigammaln multiply nan_to_num neg not_equal polygamma pow reciprocal remainder renorm
        round rsqrt scale sigmoid sin sinc sinh sqrt square subtract tan tanh trunc""",
    reduce: "cumprod cumsum",
    linalg: "addmm baddbmm",
    manipulation: """
        index_add index_fill index_put masked_fill masked_scatter put_along_axis scatter scatter_add
        tril triu""",
}
OTHER_SHAPE = {manipulation: "flatten reshape squeeze t transpose unsqueeze"}


def make_in_place(function, name: str, reshaped: bool = False):
    """`function` followed by its first argument taking over the result."""

    @wraps(function)
    def call(x, *args, **kwargs):
        return x.become(function(x, *args, **kwargs), reshaped=reshaped)

    call.__name__ = call.__qualname__ = f"{name}_"
    call.__signature__ = inspect.signature(function)
    call.__doc__ = f"`{name}` in place: x becomes the result."
    call.__doc__ += example(function, name)
    return call


def example(function, name: str) -> str:
    """The example of `function`, in place: the value is the same."""
    _, prompt, text = inspect.getdoc(function).partition(">>>")
    return f"\n\n{prompt}{text}".replace(f".{function.__name__}(", f".{name}_(")


IN_PLACE = {
    f"{name}_": make_in_place(getattr(module, name), name, reshaped)
    for table, reshaped in ((SAME_SHAPE, False), (OTHER_SHAPE, True))
    for module, names in table.items()
    for name in names.split()
}
globals().update(IN_PLACE)


def increment(x, value=1.0, name=None):
    """Add `value` to x in place.

    >>> x = paddle.to_tensor([1.0])
    >>> paddle.increment(x, 2.0).item(), x.item()
    (3.0, 3.0)
    """
    return x.become((x + value).astype(x.spec.dtype))


def fill_(x, value):
    """Make every element `value`.

    >>> paddle.zeros([2]).fill_(3.0).tolist()
    [3.0, 3.0]
    """
    number = value.item() if hasattr(value, "spec") else value
    return x.become(creation.full(shape=x.spec.shape, value=number, dtype=x.spec.dtype))


def zero_(x):
    """Make every element 0.

    >>> paddle.ones([2]).zero_().tolist()
    [0.0, 0.0]
    """
    return fill_(x, 0)


def fill_diagonal_(x, value, offset=0, wrap=False, name=None):
    """Make the diagonal `value`: of the plane, or in more dimensions, all of one size, of the cube.

    >>> paddle.zeros([2, 2]).fill_diagonal_(1.0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shape = x.spec.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise value_error(f"the diagonal of {x.spec}", "a matrix, or dimensions of one size")
    size, columns = x.spec.size, shape[-1]
    step = 1 + sum(prod(shape[d:]) for d in range(1, len(shape)))
    start = offset if offset >= 0 else -offset * columns
    count = arrangement.diagonal_length(shape[0], columns, offset)
    stop = size if wrap and len(shape) == 2 else start + count * step
    flat = movement.reshape(x, shape=(size,))
    filled = movement.slice_assign(flat, value, index=((start, stop, step),))
    return x.become(movement.reshape(filled, shape=shape))


def where_(condition, x=None, y=None, name=None):
    """x keeps its elements where the condition holds and takes y's elsewhere.

    >>> x = paddle.to_tensor([1.0, 2.0])
    >>> paddle.where_(x > 1, x, paddle.zeros([2])).tolist()
    [0.0, 2.0]
    """
    if x is None or y is None:
        raise value_error("where_ without x or without y", "both: x is changed")
    return x.become(elementwise.where(condition, x, y))


__all__ = [*IN_PLACE, "fill_", "fill_diagonal_", "increment", "where_", "zero_"]
