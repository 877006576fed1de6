"""Flips, repetitions, diagonals and triangles. The values do not change."""

from ..core.axes import accepts_varargs, axes_of, axis_of, tensors, whole_numbers
from ..core.prelude import Dim, Var, broadcast_shapes, indexing, movement, value_error, whole
from ..ops import arrangement
from ..ops.scatter import repeated
from .shaping import exchange_axes, flatten

# ---- turning round ---------------------------------------------------------------------------


def flip(x, axis, name=None):
    """x back to front along each of the axes.

    >>> paddle.flip(paddle.arange(4), [0]).tolist()
    [3, 2, 1, 0]
    """
    return arrangement.flip(x, axis=axes_of(axis, x.spec.ndim))


def roll(x, shifts, axis=None, name=None):
    """x moved on by `shifts` along the axes, in a circle; without `axis`, in row-major order.

    >>> paddle.roll(paddle.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    shifts = whole_numbers(shifts, "shifts")
    if axis is None:
        flat = arrangement.roll(flatten(x), shifts=(sum(shifts),), axis=(0,))
        return movement.reshape(flat, shape=x.spec.shape)
    axis = tuple(axis_of(d, x.spec.ndim) for d in whole_numbers(axis, "axis"))
    if len(axis) != len(shifts):
        raise ValueError(f"roll with {len(shifts)} shifts along {len(axis)} axes")
    return arrangement.roll(x, shifts=shifts, axis=axis)


def rot90(x, k=1, axes=[0, 1], name=None):  # noqa: B006 - Paddle's signature; nobody writes it
    """x turned `k` times by 90° in the plane of two axes, from the first towards the second.

    >>> paddle.rot90(paddle.arange(4).reshape([2, 2])).tolist()
    [[1, 3], [0, 2]]
    """
    a, b = axes_of(axes, x.spec.ndim)
    k %= 4
    if k == 2:
        return arrangement.flip(x, axis=(a, b))
    turned = arrangement.flip(x, axis=(b,)) if k == 1 else x
    turned = exchange_axes(turned, a, b) if k else turned
    return arrangement.flip(turned, axis=(b,)) if k == 3 else turned


# ---- repeating -------------------------------------------------------------------------------


@accepts_varargs
def tile(x, repeat_times, name=None):
    """x laid side by side with itself, `repeat_times[d]` times along axis `d`.

    The shorter of shape and list gets ones in front.

    >>> paddle.tile(paddle.to_tensor([1, 2]), [2, 2]).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    shape, times = x.spec.shape, whole_numbers(repeat_times, "repeat_times")
    ndim = max(len(shape), len(times))
    x = movement.reshape(x, shape=(1,) * (ndim - len(shape)) + shape) if ndim > len(shape) else x
    return arrangement.tile(x, repeats=(1,) * (ndim - len(times)) + times)


@accepts_varargs
def expand(x, shape, name=None):
    """x repeated along new leading axes and along axes of size 1; -1 keeps a size.

    The copies share memory.

    >>> paddle.expand(paddle.to_tensor([[1], [2]]), [-1, 3]).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    old, shape = x.spec.shape, whole_numbers(shape)
    extra = len(shape) - len(old)
    sizes = tuple(old[d - extra] if n == -1 and d >= extra else n for d, n in enumerate(shape))
    return movement.broadcast_to(x, shape=sizes)


def broadcast_to(x, shape, name=None):
    """`expand` under NumPy's name.

    >>> paddle.broadcast_to(paddle.to_tensor([1, 2]), [2, 2]).tolist()
    [[1, 2], [1, 2]]
    """
    return expand(x, shape)


def expand_as(x, y, name=None):
    """x expanded to the shape of y.

    >>> paddle.expand_as(paddle.to_tensor([1, 2]), paddle.ones([2, 2])).tolist()
    [[1, 2], [1, 2]]
    """
    return movement.broadcast_to(x, shape=y.spec.shape)


def broadcast_tensors(input, name=None):
    """Tensors expanded to the shape they have together.

    >>> [x.shape for x in paddle.broadcast_tensors([paddle.ones([3]), paddle.ones([2, 1])])]
    [[2, 3], [2, 3]]
    """
    shape = broadcast_shapes(*[x.spec.shape for x in tensors(input, "broadcast_tensors")])
    return [movement.broadcast_to(x, shape=shape) for x in input]


def broadcast_shape(x_shape, y_shape):
    """The shape of x + y, as a list.

    >>> paddle.broadcast_shape([2, 1], [3])
    [2, 3]
    """
    return list(broadcast_shapes(tuple(x_shape), tuple(y_shape)))


def repeat_interleave(x, repeats, axis=None, name=None, *, output_size=None):
    """Each element repeated `repeats` times in place, along `axis` (flattened without one).

    With a tensor of counts, one for each place or one for all, a program knows the shape when it
    runs.

    >>> paddle.repeat_interleave(paddle.to_tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x, axis = (flatten(x), 0) if axis is None else (x, axis_of(axis, x.spec.ndim))
    shape = x.spec.shape
    if isinstance(repeats, Var) and type(repeats.spec.size) is int and repeats.spec.size == 1:
        (repeats,) = whole_numbers(repeats, "repeats")
    if not isinstance(repeats, int | Dim):
        return indexing.take(x, repeated(repeats), axis=axis)
    apart = movement.reshape(x, shape=movement.replace_axis(shape, axis, shape[axis], 1))
    more = movement.broadcast_to(
        apart, shape=movement.replace_axis(shape, axis, shape[axis], repeats)
    )
    return movement.reshape(more, shape=movement.replace_axis(shape, axis, shape[axis] * repeats))


# ---- diagonals and triangles -----------------------------------------------------------------


def diag(x, offset=0, padding_value=0, name=None):
    """A square matrix with the vector x on a diagonal, or that diagonal of a matrix x.

    `offset` > 0 lies above the main diagonal; `padding_value` fills the rest of the new matrix.

    >>> paddle.diag(paddle.to_tensor([1, 2]), offset=1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    if x.spec.ndim == 2:
        return diagonal(x, offset)
    if x.spec.ndim != 1:
        raise value_error(f"diag of {x.spec}", "a vector or a matrix", hint="paddle.diag_embed")
    return embed_diagonals(x, offset, 0, 1, padding_value)


def embed_diagonals(x, offset: int, axis1: int, axis2: int, fill=0):
    """Square matrices in the plane (axis1, axis2) with the last axis of x on a diagonal."""
    *shape, n = x.spec.shape
    for d in sorted((axis1, axis2)):
        shape.insert(d, n + abs(offset))
    return arrangement.embed_diagonal(
        x, shape=tuple(shape), offset=offset, axis1=axis1, axis2=axis2, fill=fill
    )


def diagflat(x, offset=0, name=None):
    """A square matrix with all elements of x on a diagonal.

    >>> paddle.diagflat(paddle.to_tensor([[1, 2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return embed_diagonals(flatten(x), offset, 0, 1)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """The last axis of x on the diagonals of square matrices with the axes `dim1` and `dim2`.

    >>> paddle.diag_embed(paddle.to_tensor([[1, 2], [3, 4]])).tolist()
    [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
    """
    ndim = input.spec.ndim + 1
    axis1, axis2 = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if axis1 == axis2:
        raise ValueError(f"diag_embed with dim1={dim1} and dim2={dim2}: they must differ")
    return embed_diagonals(input, offset, axis1, axis2)


def diagonal(x, offset=0, axis1=0, axis2=1, name=None):
    """The diagonals of the planes (axis1, axis2), as the last axis.

    >>> paddle.diagonal(paddle.to_tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    a, b = axis_of(axis1, x.spec.ndim), axis_of(axis2, x.spec.ndim)
    if a == b:
        raise ValueError(f"diagonal with axis1={axis1} and axis2={axis2}: they must differ")
    return arrangement.diagonal(x, offset=whole(offset), axis1=a, axis2=b)


def tril(x, diagonal=0, name=None):
    """The lower triangles: zeros above the diagonal.

    >>> paddle.tril(paddle.ones([2, 2])).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return arrangement.tril(matrices(x, "tril"), diagonal=whole(diagonal))


def triu(x, diagonal=0, name=None):
    """The upper triangles: zeros below the diagonal.

    >>> paddle.triu(paddle.ones([2, 2])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return arrangement.triu(matrices(x, "triu"), diagonal=whole(diagonal))


def matrices(x, what: str):
    """x, when it has two dimensions or more."""
    if x.spec.ndim < 2:
        raise value_error(f"{what} of {x.spec}", "two dimensions or more")
    return x


__all__ = [
    "broadcast_shape", "broadcast_tensors", "broadcast_to", "diag", "diag_embed", "diagflat",
    "diagonal", "expand", "expand_as", "flip", "repeat_interleave", "roll", "rot90", "tile", "tril",
    "triu",
]  # fmt: skip
