"""Shape and dtype arithmetic: broadcasting, promotion, axes."""

from __future__ import annotations

from functools import reduce
from operator import index

from . import dim as dims
from . import dtype as dt
from .errors import find_caller
from .slots import slot


@slot("spec.broadcast_shapes")
def broadcast_shapes(*shapes) -> tuple:
    """NumPy's broadcasting of shapes; raises ValueError that names the dimension that differs.

    >>> from minipaddle.engine.core.spec import broadcast_shapes
    >>> broadcast_shapes((2, 1, 3), (4, 1))
    (2, 4, 3)
    """
    rank = max(map(len, shapes), default=0)
    out = []
    for d in range(-rank, 0):
        size = 1
        for n in [s[d] for s in shapes if len(s) >= -d]:
            if size == 1 or dims.is_one_beside(size, n):
                size = n
            elif n != 1 and not dims.is_one_beside(n, size) and not dims.same(size, n):
                if dims.is_one(size):
                    size = n
                elif not dims.is_one(n):
                    raise mismatch(shapes, d)
        out.append(size)
    return tuple(out)


def mismatch(shapes, d: int) -> ValueError:
    sizes = {s[d] for s in shapes if len(s) >= -d} - {1}
    listed = " and ".join(str(list(s)) for s in shapes)
    return ValueError(
        f"shapes {listed} do not broadcast: dimension {d} is "
        f"{' and '.join(map(str, sorted(sizes)))}; sizes must be equal or 1"
    )


def fits(shape, whole) -> bool:
    """Whether a shape broadcasts to the shape `whole`."""
    last = whole[len(whole) - len(shape) :] if len(shape) <= len(whole) else None
    return last is not None and all(
        n == 1 or dims.is_one_beside(n, k) or dims.same(n, k) or dims.is_one(n)
        for n, k in zip(shape, last, strict=True)
    )


def scalar_dtype(value):
    """The dtype of a Python scalar without a tensor beside it."""
    if isinstance(value, int | dims.Dim) and type(value) is not bool:
        return dt.int64.numpy
    return dt.default() if type(value) is float else dt.resolve(type(value))


@slot("spec.promote")
def promote(name: str, inputs):
    """The dtype in which `name` computes on arrays, specs and Python scalars.

    The highest category (boolean, whole, floating) among the inputs is that of the result. Tensors
    with axes have the say; 0-D tensors, and after them Python scalars, only where those with axes
    have no dtype of that category. Several floating dtypes meet in the wider one. Others that
    differ are refused: Paddle adds no int64 tensor to a float32 one, nor to an int32 one.
    Source: Paddle's guide "Type promotion".

    >>> import numpy as np
    >>> from minipaddle.engine.core.spec import promote
    >>> promote("add", [np.ones(2, "float16"), np.float64(1)])
    dtype('float16')
    >>> promote("add", [np.ones(2, "int32"), 1.5])
    dtype('float32')
    """
    dtypes = {x.dtype for x in inputs if hasattr(x, "dtype")}
    if not dtypes:
        return max((scalar_dtype(x) for x in inputs), key=_category)
    common = dtypes.pop() if len(dtypes) == 1 else _common(name, inputs)
    for x in inputs:
        if type(x) in LIFTS and common.kind in LIFTS[type(x)]:
            common = SCALAR[type(x)]
    return common


SCALAR = {int: dt.int64.numpy, float: dt.float32.numpy}
LIFTS = {int: "b", float: "biu"}
"""The kinds of dtype that a Python scalar turns into its own."""


def _category(dtype) -> int:
    return 0 if dtype.kind == "b" else 1 if dtype.kind in "iu" else 2


def _common(name: str, inputs):
    arrays = [x for x in inputs if hasattr(x, "dtype")]
    strong = {x.dtype for x in arrays if x.shape}
    if len(strong) > 1 and not strong <= dt.FLOATS:
        operands = " and ".join(f"{dt.public(x.dtype).name}{list(x.shape)}" for x in arrays)
        raise TypeError(
            f"{name} does not mix {operands}: tensors must have one dtype, or all be floating; "
            f'cast one of them, as in x.astype("{dt.public(max(strong, key=_category)).name}")'
        )
    weak = {x.dtype for x in arrays if not x.shape}
    top = max(map(_category, strong | weak))
    leading = [d for d in strong if _category(d) == top] or [d for d in weak if _category(d) == top]
    return reduce(dt.wider, leading)


def normalize_axis(axis, ndim: int) -> int:
    """A non-negative axis; raises ValueError when it is outside [-ndim, ndim)."""
    low, high = (-ndim, ndim) if ndim else (-1, 1)
    if not low <= axis < high:
        raise ValueError(
            f"{find_caller()}: axis {axis} is out of range for {ndim} dimensions: "
            f"[{low}, {high - 1}]"
        )
    return axis % ndim if ndim else 0


def normalize_axes(axis, ndim: int) -> tuple:
    """A sorted tuple of non-negative axes from a number or a list; None or an empty list is all."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, list | tuple):
        return (normalize_axis(index(axis), ndim),)[:ndim]
    out = {normalize_axis(index(a), ndim) for a in axis}
    if len(out) != len(axis):
        raise ValueError(f"{find_caller()}: axis {axis} names a dimension twice")
    return tuple(sorted(out)) if out and ndim else tuple(range(ndim))


def leaves(data):
    """The elements of nested lists and tuples."""
    if isinstance(data, list | tuple):
        for part in data:
            yield from leaves(part)
    else:
        yield data
