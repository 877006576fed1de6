"""Joining, splitting and cutting.

Pieces share memory with the tensor they were cut from, as in Paddle.
"""

from ..core.checks import require_one_of
from ..core.prelude import axis_of, movement, number, tensors, value_error, whole, whole_numbers
from ..engine.core.dim import Dim, larger, never, same, smaller, suppose
from ..ops import strided
from . import shaping
from .growing_lists import Rest, concat_items, has_grown, stack_items

# ---- joining ---------------------------------------------------------------------------------


def concat(x, axis=0, name=None):
    """The tensors of a list, concatenated along an existing axis.

    All other sizes must be equal.

    >>> paddle.concat([paddle.ones([2, 1]), paddle.zeros([2, 2])], axis=1).shape
    [2, 3]
    """
    if has_grown(x):
        return concat_items(x, axis_of(axis, ndim_of(x[0])))
    return movement.concat(*tensors(x, "concat"), axis=axis_of(axis, x[0].spec.ndim))


def stack(x, axis=0, name=None):
    """The tensors of a list, all of one shape, side by side along a new axis.

    >>> paddle.stack([paddle.ones([3]), paddle.zeros([3])]).shape
    [2, 3]
    """
    if has_grown(x):
        return stack_items(x, axis_of(axis, ndim_of(x[0]) + 1))
    return movement.stack(*tensors(x, "stack"), axis=axis_of(axis, x[0].spec.ndim + 1))


def ndim_of(x) -> int:
    """The number of axes of a tensor of a list, or of those that a rest stands for."""
    return x.stack.spec.ndim - 1 if isinstance(x, Rest) else x.spec.ndim


def hstack(x, name=None):
    """Joined along the second axis (the first of vectors).

    >>> paddle.hstack([paddle.ones([2, 1]), paddle.ones([2, 2])]).shape
    [2, 3]
    """
    x = [shaping.atleast_1d(t) for t in tensors(x, "hstack")]
    return concat(x, 0 if x[0].spec.ndim == 1 else 1)


def vstack(x, name=None):
    """Joined along the first axis, vectors as rows.

    >>> paddle.vstack([paddle.ones([3]), paddle.ones([2, 3])]).shape
    [3, 3]
    """
    return concat([shaping.atleast_2d(t) for t in tensors(x, "vstack")], 0)


def dstack(x, name=None):
    """Joined along the third axis.

    >>> paddle.dstack([paddle.ones([2, 2]), paddle.ones([2, 2])]).shape
    [2, 2, 2]
    """
    return concat([shaping.atleast_3d(t) for t in tensors(x, "dstack")], 2)


def meshgrid(*args, name=None, indexing=None):
    """For vectors of sizes n, m, …: one tensor [n, m, …] each, constant along the others' axes.

    With `indexing="xy"` the first two axes change places.

    >>> x, y = paddle.meshgrid(paddle.arange(2), paddle.arange(3))
    >>> x.tolist(), y.tolist()
    ([[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]])
    """
    require_one_of("meshgrid", (None, "ij", "xy"), indexing=indexing)
    args = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    shape = tuple(x.spec.size for x in tensors(args, "meshgrid"))
    grids = [
        movement.broadcast_to(
            movement.reshape(x, shape=(x.spec.size, *(1,) * (len(shape) - 1 - d))), shape=shape
        )
        for d, x in enumerate(args)
    ]
    swapped = indexing == "xy" and len(grids) > 1
    return [shaping.exchange_axes(x, 0, 1) for x in grids] if swapped else grids


# ---- splitting -------------------------------------------------------------------------------


def split(x, num_or_sections, axis=0, name=None):
    """x cut along `axis` into equal parts (a number) or parts of given sizes (one may be -1).

    >>> [part.shape for part in paddle.split(paddle.ones([6, 2]), [1, -1])]
    [[1, 2], [5, 2]]
    """
    shape = x.spec.shape
    axis = axis_of(axis, len(shape))
    size = shape[axis]
    if isinstance(num_or_sections, list | tuple):
        sizes = whole_numbers(num_or_sections, "num_or_sections")
        rest = size - sum(n for n in sizes if n != -1)
        sizes = tuple(rest if n == -1 else n for n in sizes)
    else:
        parts = number(num_or_sections, "num_or_sections")
        sizes = (size // parts,) * parts if parts > 0 and same(size % parts, 0) else ()
    if not same(sum(sizes), size) or any(never(n, ">=", 0) for n in sizes):
        raise value_error(
            f"split of axis {axis} of {x.spec} into {num_or_sections}",
            f"a number of parts that divides {size}, or sizes that add up to it",
            hint="paddle.tensor_split makes unequal parts",
        )
    for n in sizes:
        suppose(n, ">=", 0)
    return list(movement.split(x, sizes=sizes, axis=axis))


def chunk(x, chunks, axis=0, name=None):
    """x cut along `axis` into equal parts.

    >>> [part.tolist() for part in paddle.chunk(paddle.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return split(x, number(chunks, "chunks"), axis)


def tensor_split(x, num_or_indices, axis=0, name=None):
    """x cut along `axis` into nearly equal parts (a number), or before each of the given places.

    >>> [part.tolist() for part in paddle.tensor_split(paddle.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    axis = axis_of(axis, x.spec.ndim)
    size = x.spec.shape[axis]
    if isinstance(num_or_indices, list | tuple):
        # as x[a:b] reads them: counted from the end when negative, cut off at the ends
        places = whole_numbers(num_or_indices, "num_or_indices")
        ends = [smaller(n, size) if n >= 0 else larger(size + n, 0) for n in places]
    else:
        count = number(num_or_indices, "num_or_indices")
        parts, more = divmod(size, count)
        ends = [k * parts + smaller(k, more) for k in range(1, count)]
    pieces = zip([0, *ends], [*ends, size], strict=True)
    lead = movement.WHOLE[:axis]
    return [movement.slice_(x, index=(*lead, (a, larger(a, b), 1))) for a, b in pieces]


def hsplit(x, num_or_indices, name=None):
    """`tensor_split` along the second axis (the first of a vector).

    >>> [part.shape for part in paddle.hsplit(paddle.ones([2, 4]), 2)]
    [[2, 2], [2, 2]]
    """
    return tensor_split(x, num_or_indices, min(x.spec.ndim - 1, 1))


def vsplit(x, num_or_indices, name=None):
    """`tensor_split` along the first axis.

    >>> [part.shape for part in paddle.vsplit(paddle.ones([2, 4]), 2)]
    [[1, 4], [1, 4]]
    """
    return tensor_split(x, num_or_indices, 0)


def dsplit(x, num_or_indices, name=None):
    """`tensor_split` along the third axis.

    >>> [part.shape for part in paddle.dsplit(paddle.ones([1, 1, 4]), 2)]
    [[1, 1, 2], [1, 1, 2]]
    """
    return tensor_split(x, num_or_indices, 2)


def unbind(input, axis=0):
    """The slices along `axis`, each without that axis, as a list.

    In a program whose InputSpec leaves the size open, it is a list as one that a loop fills.

    >>> [row.tolist() for row in paddle.unbind(paddle.to_tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    axis = axis_of(axis, input.spec.ndim)
    if isinstance(input.spec.shape[axis], Dim):  # how many there are only a run knows
        return [Rest(shaping.moveaxis(input, axis, 0))]
    return list(movement.unstack(input, axis=axis))


def unstack(x, axis=0, num=None):
    """`unbind`, which checks that there are `num` slices.

    >>> [column.tolist() for column in paddle.unstack(paddle.to_tensor([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    size = x.spec.shape[axis_of(axis, x.spec.ndim)]
    if num is not None and isinstance(size, Dim) and same(size, num):
        return [shaping.moveaxis(x, axis, 0)[k] for k in range(num)]
    pieces = unbind(x, axis)
    if num not in (None, len(pieces)):
        raise ValueError(f"unstack of {x.spec} along axis {axis} gives {len(pieces)}, not {num}")
    return pieces


# ---- cutting ---------------------------------------------------------------------------------


def strided_slice(x, axes, starts, ends, strides, name=None):
    """`x[start:end:stride]` along each of `axes`.

    >>> paddle.strided_slice(paddle.arange(6), [0], [1], [6], [2]).tolist()
    [1, 3, 5]
    """
    ndim = x.spec.ndim
    parts = [whole_numbers(v) for v in (axes, starts, ends, strides)]
    if len(set(map(len, parts))) != 1:
        raise ValueError(f"a slice of {len(parts[0])} axes with {list(map(len, parts[1:]))} bounds")
    index = list(movement.WHOLE[:ndim])
    for axis, start, end, stride in zip(*parts, strict=True):
        d = axis_of(axis, ndim)
        past_front = stride < 0 and end < -x.spec.shape[d]  # -1 would be the last place
        index[d] = (start, None if past_front else end, stride)
    return movement.slice_(x, index=tuple(index))


def slice(input, axes, starts, ends):
    """`input[start:end]` along each of `axes`.

    >>> paddle.slice(paddle.arange(6), [0], [1], [-1]).tolist()
    [1, 2, 3, 4]
    """
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


def crop(x, shape=None, offsets=None, name=None):
    """The block of `shape` that begins at `offsets`; -1 reaches to the end of an axis.

    >>> paddle.crop(paddle.arange(6).reshape([2, 3]), [1, 2], [1, 1]).tolist()
    [[4, 5]]
    """
    sizes = x.spec.shape
    offsets = (0,) * len(sizes) if offsets is None else whole_numbers(offsets, "offsets")
    shape = (-1,) * len(sizes) if shape is None else whole_numbers(shape)
    if not len(sizes) == len(shape) == len(offsets):
        raise ValueError(f"crop of {x.spec} to {list(shape)} from {list(offsets)}")
    block = tuple(
        (o, size if n == -1 else o + n, 1) for o, n, size in zip(offsets, shape, sizes, strict=True)
    )
    if any(o < 0 or end > size for (o, end, _), size in zip(block, sizes, strict=True)):
        raise ValueError(f"crop to {list(shape)} from {list(offsets)} leaves {x.spec}")
    return movement.slice_(x, index=block)


def as_strided(x, shape, stride, offset=0, name=None):
    """Element `i` is element `offset + Σ i[d]·stride[d]` of x in row-major order.

    Raises ValueError where that leads out of x.

    >>> paddle.as_strided(paddle.arange(6), [2, 3], [2, 1]).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """
    shape, stride = whole_numbers(shape), whole_numbers(stride, "stride")
    return strided.as_strided(x, shape=shape, strides=stride, offset=whole(offset))


def unfold(x, axis, size, step, name=None):
    """Windows of `size` places along `axis`, `step` apart, as a last axis.

    >>> paddle.unfold(paddle.arange(5), 0, 3, 1).tolist()
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    shape = x.spec.shape
    axis = axis_of(axis, len(shape))
    if not 0 < size <= shape[axis] or step < 1:
        raise ValueError(f"windows of {size} places, {step} apart, along axis {axis} of {x.spec}")
    steps = strided.strides_of(shape)
    count = (shape[axis] - size) // step + 1
    strides = (*movement.replace_axis(steps, axis, steps[axis] * step), steps[axis])
    shape = (*movement.replace_axis(shape, axis, count), size)
    return strided.as_strided(x, shape=shape, strides=strides, offset=0)


__all__ = [
    "as_strided", "chunk", "concat", "crop", "dsplit", "dstack", "hsplit", "hstack", "meshgrid",
    "slice", "split", "stack", "strided_slice", "tensor_split", "unbind", "unfold", "unstack",
    "vsplit", "vstack",
]  # fmt: skip
