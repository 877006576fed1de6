"""Arithmetic and mathematics. An elementwise operator has its face here without a second edit."""

import functools
import math

from ..core.axes import write_into
from ..core.checks import require_one_of
from ..core.prelude import Var, as_operator, axis_of, describe, same_shape, value_error
from ..engine.core.op import OPS, Elementwise
from ..engine.ops import elementwise, logic, movement, reduction, special
from ..engine.ops.creation import assign
from ..ops import angles, arithmetic, gamma, rounding, truth
from .arranging import diagonal
from .face import face
from .growing_lists import has_grown, stack_items

PUBLIC_IN = angles, arithmetic, elementwise, gamma, logic, rounding, special, truth
SHOWN = {module.__name__ for module in PUBLIC_IN}
"""Where public operators are; activations are in nn.functional."""


def is_public(op) -> bool:
    """An operator whose first input is called g is part of a derivative rule."""
    return isinstance(op, Elementwise) and op.body.__module__ in SHOWN and op.inputs[0] != "g"


FACES = {op.name: face(op) for op in OPS.values() if is_public(op)}
FACES |= {
    "mod": FACES["remainder"], "floor_mod": FACES["remainder"], "gammaln": FACES["lgamma"],
    "less": FACES["less_than"], "sgn": FACES["sign"], "bitwise_invert": FACES["bitwise_not"],
}  # fmt: skip
globals().update(FACES)

# ---- with arguments that are more than attributes --------------------------------------------


def cast(x, dtype):
    """The same values in another data type, in memory of their own.

    >>> paddle.cast(paddle.to_tensor([1.7, -1.7]), "int64").tolist()
    [1, -1]
    """
    other = x.astype(dtype)
    return assign(x) if other is x else other


def add(x, y, name=None, *, alpha=1, out=None):
    """x + alpha · y.

    >>> paddle.add(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0]), alpha=2).tolist()
    [7.0, 10.0]
    """
    return write_into(out, elementwise.add(x, y if alpha == 1 else y * alpha))


def subtract(x, y, name=None, *, alpha=1, out=None):
    """x - alpha · y.

    >>> paddle.subtract(paddle.to_tensor([1.0]), paddle.to_tensor([3.0]), alpha=2).tolist()
    [-5.0]
    """
    return write_into(out, elementwise.subtract(x, y if alpha == 1 else y * alpha))


def divide(x, y, name=None, *, rounding_mode=None, out=None):
    """x / y, in floating point for whole numbers too; `rounding_mode` "floor" or "trunc" rounds it.

    >>> x, y = paddle.to_tensor([7, -7]), paddle.to_tensor([2, 2])
    >>> paddle.divide(x, y, rounding_mode="trunc").tolist()
    [3, -3]
    """
    if out is not None:
        return write_into(out, divide(x, y, rounding_mode=rounding_mode))
    if rounding_mode is None:
        return elementwise.divide(x, y)
    require_one_of("divide", ("floor", "trunc"), rounding_mode=rounding_mode)
    quotient = elementwise.floor_divide(x, y)
    if rounding_mode == "floor":
        return quotient
    between = (elementwise.remainder(x, y) != 0) & ((x < 0) != (y < 0))  # there floor is 1 below
    return elementwise.where(between, quotient + 1, quotient)


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """scale · x + bias, or scale · (x + bias); `scale` may be a 0-D tensor.

    Whole numbers stay whole: scale and bias are truncated to whole numbers.

    >>> paddle.scale(paddle.to_tensor([1.0, 2.0]), scale=2.0, bias=1.0).tolist()
    [3.0, 5.0]
    """
    if isinstance(scale, Var):
        y = x * scale + bias if bias_after_scale else (x + bias) * scale
    else:
        number = int if x.spec.dtype.kind in "iu" else float
        attrs = {"scale": number(scale), "bias": number(bias)}
        y = arithmetic.scale_(x, **attrs, bias_after_scale=bias_after_scale)
    return y if act is None else activate(y, act)


def activate(x, act: str):
    """`x` after the activation called `act`, such as "relu"."""
    op = OPS.get(act)
    if not isinstance(op, Elementwise) or op.inputs != ["x"]:
        raise value_error(f"act={act!r}", 'an activation, such as "relu"')
    return op(x)


def clip(x, min=None, max=None, name=None, *, out=None):
    """x moved into [min, max]; a bound is a number, a 0-D tensor, or None.

    Whole numbers become floating when a bound is.

    >>> paddle.clip(paddle.to_tensor([-2.0, 0.5, 3.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    if out is not None:
        return write_into(out, clip(x, min, max))
    if isinstance(min, Var) or isinstance(max, Var):
        x = x if min is None else elementwise.maximum(x, min)
        return x if max is None else elementwise.minimum(x, max)
    if min is not None and max is not None and min > max:
        raise value_error(f"clip to min={min}, max={max}", "min <= max")
    if x.spec.dtype.kind in "iu" and (isinstance(min, float) or isinstance(max, float)):
        x = x.astype("float32")
    return arithmetic.clip(x, min=min, max=max)


def add_n(inputs, name=None):
    """The sum of a list of tensors of one shape.

    >>> paddle.add_n([paddle.ones([2]), paddle.ones([2]), paddle.ones([2])]).tolist()
    [3.0, 3.0]
    """
    if isinstance(inputs, Var):
        return assign(inputs)
    if has_grown(inputs):
        return stack_items(inputs).sum(0)
    if not inputs:
        raise value_error("add_n of an empty list", "one or more tensors")
    return functools.reduce(elementwise.add, inputs)


def ldexp(x, y, name=None):
    """x · 2^y, in floating point.

    >>> paddle.ldexp(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([2, 3])).tolist()
    [4.0, 16.0]
    """
    x, y = floating(x), floating(y)
    wider = max(x.spec.dtype, y.spec.dtype, key=lambda d: d.itemsize)
    return x.astype(wider) * 2.0 ** y.astype(wider)


def floating(x):
    """x itself, or in float32 if it is whole or boolean."""
    return x.astype("float32") if x.spec.dtype.kind in "biu" else x


def multigammaln(x, p, name=None):
    """Logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2.

    Source: DLMF 35.3.

    >>> round(paddle.multigammaln(paddle.to_tensor(3.5), 2).item(), 4)
    2.4665
    """
    if p < 1:
        raise value_error(f"multigammaln of dimension p={p}", "p >= 1")
    terms = [gamma.lgamma(x - i / 2) for i in range(p)]
    return add_n(terms) + p * (p - 1) / 4 * math.log(math.pi)


def multiplex(inputs, index, name=None):
    """Row i of the result is row i of `inputs[index[i]]`; `index` has shape [rows, 1].

    >>> a, b = paddle.zeros([2, 1]), paddle.ones([2, 1])
    >>> paddle.multiplex([a, b], paddle.to_tensor([[1], [0]])).tolist()
    [[1.0], [0.0]]
    """
    first = inputs[0].spec
    if first.ndim < 2 or not same_shape(index.spec.shape, (first.shape[0], 1)):
        raise value_error(
            f"multiplex of {first} by an index of {index.spec}",
            "inputs of two or more dimensions, and an index of shape [rows, 1]",
        )
    index = movement.reshape(index, shape=(first.shape[0],) + (1,) * (first.ndim - 1))
    rows = inputs[0]
    for k, other in enumerate(inputs[1:], 1):
        rows = elementwise.where(index == k, other, rows)
    return rows


# ---- along axes ------------------------------------------------------------------------------


def kron(x, y, name=None):
    """Kronecker product: every element of x times the whole of y.

    >>> paddle.kron(paddle.to_tensor([1, 10]), paddle.to_tensor([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    rank = max(x.spec.ndim, y.spec.ndim)
    a, b = ((1,) * (rank - v.spec.ndim) + v.spec.shape for v in (x, y))
    x = movement.reshape(x, shape=tuple(n for k in a for n in (k, 1)))
    y = movement.reshape(y, shape=tuple(n for k in b for n in (1, k)))
    return movement.reshape(x * y, shape=tuple(m * n for m, n in zip(a, b, strict=True)))


def trace(x, offset=0, axis1=0, axis2=1, name=None):
    """The sum of a diagonal of the plane that axis1 and axis2 span.

    >>> paddle.trace(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])).item()
    5.0
    """
    if x.spec.ndim < 2:
        raise value_error(f"trace of {x.spec}", "two or more dimensions")
    lined = diagonal(x, offset, axis1, axis2)
    return reduction.sum(lined, axis=(lined.spec.ndim - 1,), keepdim=False)


def diff(x, n=1, axis=-1, prepend=None, append=None, name=None):
    """Differences of neighbours along `axis`, n times over; of booleans, whether they differ.

    >>> paddle.diff(paddle.to_tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    if n < 1:
        raise value_error(f"diff with n={n}", "n >= 1")
    axis = axis_of(axis, x.spec.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    x = movement.concat(*parts, axis=axis) if len(parts) > 1 else x
    minus = logic.not_equal if x.spec.dtype.kind == "b" else elementwise.subtract
    for _ in range(n):
        x = minus(drop_end(x, axis, 0), drop_end(x, axis, -1))
    return x


def drop_end(x, axis: int, end: int):
    """x without its first (`end` 0) or last (`end` -1) place along `axis`."""
    part = (1, None, 1) if end == 0 else (0, -1, 1)
    return movement.slice_(x, index=((0, None, 1),) * axis + (part,))


@as_operator("renorm")
def renorm(x, p, axis, max_norm):
    """Each slice along `axis` whose p-norm is above `max_norm` shrunk to that norm.

    >>> paddle.renorm(paddle.to_tensor([[3.0, 4.0], [0.0, 1.0]]), 2.0, 0, 1.0)[1].tolist()
    [0.0, 1.0]
    """
    axis = axis_of(axis, x.spec.ndim)
    rest = tuple(d for d in range(x.spec.ndim) if d != axis)
    total = reduction.sum(abs(x) ** p, axis=rest, keepdim=True)
    long = total > max_norm**p
    norm = elementwise.where(long, total, 1.0) ** (1 / p)
    return x * elementwise.where(long, max_norm / norm, 1.0)


def trapezoid(y, x=None, dx=None, axis=-1, name=None):
    """The integral of y along `axis` by the trapezoidal rule, over places x or steps dx.

    >>> paddle.trapezoid(paddle.to_tensor([1.0, 2.0, 3.0])).item()
    4.0
    """
    area, axis = trapezoids(y, x, dx, axis)
    return reduction.sum(area, axis=(axis,), keepdim=False)


def trapezoids(y, x, dx, axis):
    """(The area between each two places along `axis`, `axis` counted from the front)."""
    if x is not None and dx is not None:
        raise value_error(f"x={describe(x)} and dx={dx}", "one of the two, or none")
    axis = axis_of(axis, y.spec.ndim)
    step = 1.0 if dx is None else dx
    if x is not None:
        shape = (-1,) + (1,) * (y.spec.ndim - 1 - axis) if x.spec.ndim == 1 else None
        step = diff(x, axis=0).reshape(list(shape)) if shape else diff(x, axis=axis)
    return (drop_end(y, axis, 0) + drop_end(y, axis, -1)) * step * 0.5, axis


__all__ = [
    *FACES, "add", "add_n", "cast", "clip", "diff", "divide", "kron", "ldexp", "multigammaln",
    "multiplex", "renorm", "scale", "subtract", "trace", "trapezoid",
]  # fmt: skip
