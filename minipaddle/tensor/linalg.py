"""Products of vectors and matrices. Beside it: `norms.py`, `decompositions.py`, `einsum.py`."""

import math

from ..core.checks import require_ndim
from ..core.prelude import Var, axis_of, current, reshape, transpose, value_error, where
from ..engine.core.dim import as_guarded, never, same, same_shape
from ..engine.ops import linalg as ops
from ..engine.ops.reduction import sum
from ..ops.arrangement import roll
from .reduce import reduce_over

mT = ops.matrix_transpose


def matmul(x, y, transpose_x=False, transpose_y=False, name=None):
    """Matrix product over the last two axes; leading axes broadcast, a vector is a row or a column.

    `transpose_x` and `transpose_y` exchange the last two axes first. Raises ValueError when the
    inner dimensions differ.

    >>> paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3]), transpose_y=True).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if transpose_x and x.spec.ndim > 1:
        x = mT(x)
    if transpose_y and y.spec.ndim > 1:
        y = mT(y)
    return current.top.apply(ops.matmul, (x, y), {})


def mm(input, mat2, name=None):
    """Matrix product of two matrices.

    >>> paddle.mm(paddle.ones([1, 3]), paddle.ones([3, 2])).tolist()
    [[3.0, 3.0]]
    """
    return ops.matmul(input, mat2)


def bmm(x, y, name=None):
    """The products of two stacks of matrices, pair by pair.

    >>> paddle.bmm(paddle.ones([5, 2, 3]), paddle.ones([5, 3, 4])).shape
    [5, 2, 4]
    """
    require_ndim("bmm", x, 3)
    require_ndim("bmm", y, 3)
    if not same(x.spec.shape[0], y.spec.shape[0]):
        raise value_error(f"bmm of {x.spec} and {y.spec}", "the same number of matrices")
    return ops.matmul(x, y)


def mv(x, vec, name=None):
    """A matrix times a vector.

    >>> paddle.mv(paddle.ones([2, 3]), paddle.ones([3])).tolist()
    [3.0, 3.0]
    """
    require_ndim("mv", x, 2)
    require_ndim("mv", vec, 1)
    return ops.matmul(x, vec)


def dot(x, y, name=None):
    """Σ x·y of two vectors, or of each pair of rows of two matrices.

    >>> paddle.dot(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0])).item()
    11.0
    """
    if x.spec.ndim not in (1, 2) or not same_shape(x.spec.shape, y.spec.shape):
        raise value_error(f"dot of {x.spec} and {y.spec}", "vectors or matrices of one shape")
    return vecdot(x, y)


def vecdot(x, y, axis=-1, name=None):
    """Σ x·y along an axis.

    >>> paddle.vecdot(paddle.ones([2, 3]), paddle.ones([2, 3])).tolist()
    [3.0, 3.0]
    """
    return reduce_over(sum, x * y, axis, False)


def inner(x, y, name=None):
    """Σ over the last axis of both, for every pair of rows: shape x[:-1] + y[:-1].

    >>> paddle.inner(paddle.ones([2, 3]), paddle.ones([4, 3])).shape
    [2, 4]
    """
    if not x.spec.ndim or not y.spec.ndim:
        return x * y
    return tensordot(x, y, [[-1], [-1]])


def outer(x, y, name=None):
    """x[i] · y[j] of the flattened inputs.

    >>> paddle.outer(paddle.to_tensor([1, 2]), paddle.to_tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    row = y if y.spec.ndim == 1 else reshape(y, shape=(y.spec.size,))
    return reshape(x, shape=(x.spec.size, 1)) * row


def tensordot(x, y, axes=2, name=None):
    """Σ over pairs of axes: the last `axes` of x with the first of y, or two lists of axes.

    One list counts for both; the shorter of two goes on as the longer one does. A size of 1
    stretches to the other's size.

    >>> paddle.tensordot(paddle.ones([2, 3, 4]), paddle.ones([4, 3]), [[1, 2], [1, 0]]).shape
    [2]
    """
    ours, theirs = pair_axes(x.spec.ndim, y.spec.ndim, axes)
    for mine, yours in zip(ours, theirs, strict=True):
        one = [type(n) is int and n == 1 for n in (x.spec.shape[mine], y.spec.shape[yours])]
        if one == [True, False]:  # the stretched operand is a factor of the sum
            y = sum(y, axis=(yours,), keepdim=True)
        if one == [False, True]:
            x = sum(x, axis=(mine,), keepdim=True)
    a, left = front_last(x, ours, last=True)
    b, right = front_last(y, theirs, last=False)
    return reshape(ops.matmul(a, b), shape=(*left, *right))


def pair_axes(xdim: int, ydim: int, axes) -> tuple[list, list]:
    """The axes of x and of y that are summed over, pair by pair."""
    if isinstance(axes, int):
        return list(range(xdim - axes, xdim)), list(range(axes))
    axes = axes.tolist() if hasattr(axes, "tolist") else axes
    lists = [axes] if not axes or isinstance(axes[0], int) else axes
    ours, theirs = [*lists[0]], [*lists[1]] if len(lists) > 1 else []
    ours, theirs = ours + theirs[len(ours) :], theirs + ours[len(theirs) :]
    return [axis_of(a, xdim) for a in ours], [axis_of(a, ydim) for a in theirs]


def front_last(x, axes, *, last: bool):
    """x as a matrix with `axes` in its columns (`last`) or rows; and the sizes of the others."""
    shape = x.spec.shape
    free = [d for d in range(len(shape)) if d not in axes]
    kept, gone = (math.prod(shape[d] for d in group) for group in (free, axes))
    perm, sizes = ((*free, *axes), (kept, gone)) if last else ((*axes, *free), (gone, kept))
    return reshape(transpose(x, perm=perm), shape=sizes), [shape[d] for d in free]


def cross(x, y, axis=9, name=None):
    """The vector product along an axis of size 3: the first such axis unless one is given.

    >>> paddle.cross(paddle.to_tensor([1, 0, 0]), paddle.to_tensor([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    shape = x.spec.shape
    threes = [d for d, n in enumerate(shape) if not never(n, "==", 3)]
    if axis == 9:  # of sizes that nobody has seen the last one is taken to be 3
        first = (d for d in threes[:-1] if as_guarded(shape[d], True) == 3)
        axis = next(first, max(threes, default=None))
    else:
        axis = axis_of(axis, len(shape))
    if axis not in threes or not same(shape[axis], 3):
        raise value_error(f"cross of {x.spec}", "an axis of size 3")

    def shift(v, by):
        return roll(v, shifts=(by,), axis=(axis,))

    return shift(x, -1) * shift(y, -2) - shift(x, -2) * shift(y, -1)


def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    """beta · input + alpha · x @ y.

    >>> paddle.addmm(paddle.ones([1, 1]), paddle.ones([1, 3]), paddle.ones([3, 1])).item()
    4.0
    """
    return scale_by(input, beta) + scale_by(ops.matmul(x, y), alpha)


def baddbmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    """beta · input + alpha · x @ y for stacks of matrices.

    >>> paddle.baddbmm(*[paddle.ones([2, 1, 1])] * 3).tolist()
    [[[2.0]], [[2.0]]]
    """
    return scale_by(input, beta) + scale_by(bmm(x, y), alpha)


def scale_by(x, factor):
    """factor · x, without a multiplication by 1; by the number 0 it is 0 whatever x holds."""
    if isinstance(factor, Var) or factor not in (0, 1):
        return x * factor
    return x if factor == 1 else where(current.top.constant(False), x, 0.0)


def matrix_transpose(x, name=None):
    """The last two axes exchanged.

    >>> paddle.matrix_transpose(paddle.ones([5, 2, 3])).shape
    [5, 3, 2]
    """
    return x.mT


__all__ = [
    "addmm", "baddbmm", "bmm", "cross", "dot", "inner", "matmul", "matrix_transpose", "mm", "mv",
    "outer", "tensordot", "vecdot",
]  # fmt: skip
