"""Changes of shape and of the order of axes. The values do not change.

Results share memory with x where they can, as in Paddle.
"""

import math

from ..core.axes import accepts_varargs, axes_of, axis_of, whole_numbers
from ..core.prelude import dt, movement, value_error
from ..engine.core.dim import Dim, is_one, same
from ..ops import arrangement

# ---- one shape to another --------------------------------------------------------------------


@accepts_varargs
def reshape(x, shape, name=None):
    """The elements of x, in row-major order, in another shape.

    One size may be -1: it follows from the others. A size 0 stands for x's size at that place.
    Raises ValueError when the elements do not fill the shape.

    >>> paddle.reshape(paddle.ones([2, 3, 4]), [0, -1]).shape
    [2, 12]
    """
    return movement.reshape(x, shape=complete_shape(x.spec.shape, whole_numbers(shape)))


def complete_shape(old: tuple, shape: tuple) -> tuple:
    """`shape` with 0 replaced by the size of `old` at that place and -1 by the size that follows
    from the others.
    """
    sizes, left, known, unknown = [*shape], [*old], 1, []
    for d, n in enumerate(shape):
        if n == 0 and d < len(old):
            sizes[d], left[d] = old[d], 1
        elif n == -1:
            unknown.append(d)
        elif type(n) is int and n < -1:
            raise value_error(f"shape {list(shape)}", "sizes, and at most one -1")
        else:
            known *= n
    if unknown:
        count = math.prod(left)
        if len(unknown) > 1 or known == 0 or not same(count % known, 0):
            raise value_error(
                f"shape {list(old)} cannot become {list(shape)}",
                "at most one -1, and sizes that divide the number of elements",
            )
        sizes[unknown[0]] = count // known
    return tuple(sizes)


@accepts_varargs
def view(x, shape_or_dtype, name=None):
    """x in another shape, or its bytes read as another dtype (the last axis shrinks or grows).

    >>> paddle.ones([4, 2]).view([8]).shape
    [8]
    """
    if isinstance(shape_or_dtype, list | tuple | int | Dim):
        return reshape(x, shape_or_dtype)
    return arrangement.reinterpret(x, dtype=dt.resolve(shape_or_dtype))


def view_as(x, other, name=None):
    """x in the shape of `other`.

    >>> paddle.view_as(paddle.ones([4]), paddle.ones([2, 2])).shape
    [2, 2]
    """
    return movement.reshape(x, shape=other.spec.shape)


def flatten(x, start_axis=0, stop_axis=-1, name=None):
    """The axes from `start_axis` to `stop_axis`, both included, as one.

    >>> paddle.flatten(paddle.ones([2, 3, 4]), 1).shape
    [2, 12]
    """
    shape = x.spec.shape
    first, last = axis_of(start_axis, len(shape)), axis_of(stop_axis, len(shape))
    if first > last:
        raise ValueError(f"flatten from axis {start_axis} to {stop_axis} of {list(shape)}")
    size = math.prod(shape[first : last + 1])
    return movement.reshape(x, shape=(*shape[:first], size, *shape[last + 1 :]))


def unflatten(x, axis, shape, name=None):
    """One axis as several; one size may be -1.

    >>> paddle.unflatten(paddle.ones([2, 6]), 1, [3, -1]).shape
    [2, 3, 2]
    """
    old = x.spec.shape
    axis = axis_of(axis, len(old))
    sizes = complete_shape((old[axis],), whole_numbers(shape))
    return movement.reshape(x, shape=movement.replace_axis(old, axis, *sizes))


def squeeze(x, axis=None, name=None):
    """x without its axes of size 1: all of them, or those in `axis`.

    >>> paddle.squeeze(paddle.ones([1, 3, 1]), axis=0).shape
    [3, 1]
    """
    shape = x.spec.shape
    axes = range(len(shape)) if axis is None else axes_of(axis, len(shape))
    return movement.reshape(
        x, shape=tuple(n for d, n in enumerate(shape) if d not in axes or not is_one(n))
    )


def unsqueeze(x, axis, name=None):
    """x with new axes of size 1, inserted in order at the positions `axis`.

    >>> paddle.unsqueeze(paddle.ones([3]), [0, 2]).shape
    [1, 3, 1]
    """
    shape = list(x.spec.shape)
    for d in whole_numbers(axis, "axis"):
        shape.insert(axis_of(d, len(shape) + 1), 1)
    return movement.reshape(x, shape=tuple(shape))


def atleast(ndim: int, inputs):
    """Each input with at least `ndim` axes, put in where NumPy's `atleast_1d` … do."""
    inputs = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
    places = {1: [[0]], 2: [[0, 1], [0]], 3: [[0, 1, 2], [0, 2], [2]]}[ndim]
    out = [unsqueeze(x, places[x.spec.ndim]) if x.spec.ndim < ndim else x for x in inputs]
    return out[0] if len(out) == 1 else out


def atleast_1d(*inputs, name=None):
    """Each tensor with at least one axis.

    >>> paddle.atleast_1d(paddle.to_tensor(3)).shape
    [1]
    """
    return atleast(1, inputs)


def atleast_2d(*inputs, name=None):
    """Each tensor with at least two axes.

    >>> paddle.atleast_2d(paddle.ones([3])).shape
    [1, 3]
    """
    return atleast(2, inputs)


def atleast_3d(*inputs, name=None):
    """Each tensor with at least three axes.

    >>> paddle.atleast_3d(paddle.ones([3])).shape
    [1, 3, 1]
    """
    return atleast(3, inputs)


# ---- the order of the axes -------------------------------------------------------------------


def transpose(x, perm, name=None):
    """Axis `d` of the result is axis `perm[d]` of x; `transpose(x, 0, 1)` exchanges two axes.

    >>> paddle.transpose(paddle.ones([2, 3, 4]), [2, 0, 1]).shape
    [4, 2, 3]
    """
    if isinstance(perm, int):
        return exchange_axes(x, perm, name)
    ndim = x.spec.ndim
    return movement.transpose(x, perm=tuple(axis_of(d, ndim) for d in whole_numbers(perm, "perm")))


def swapaxes(x, perm, name=None):
    """`transpose`: with two numbers those axes change places.

    >>> paddle.swapaxes(paddle.ones([2, 3, 4]), 0, 2).shape
    [4, 3, 2]
    """
    return transpose(x, perm, name)


def exchange_axes(x, a, b):
    """x with two axes exchanged."""
    perm = list(range(x.spec.ndim))
    a, b = axis_of(a, len(perm)), axis_of(b, len(perm))
    perm[a], perm[b] = perm[b], perm[a]
    return movement.transpose(x, perm=tuple(perm))


@accepts_varargs
def permute(input, dims):
    """`transpose` under PyTorch's name.

    >>> paddle.ones([2, 3, 4]).permute(1, 2, 0).shape
    [3, 4, 2]
    """
    return transpose(input, list(dims))


def t(input, name=None):
    """The transpose of a matrix; a vector or a number stays.

    >>> paddle.t(paddle.ones([2, 3])).shape
    [3, 2]
    """
    ndim = input.spec.ndim
    if ndim > 2:
        raise value_error(
            f"t() of {input.spec}",
            "at most two dimensions",
            hint="paddle.transpose(x, perm), or x.mT for the last two axes",
        )
    return input if ndim < 2 else movement.transpose(input, perm=(1, 0))


def moveaxis(x, source, destination, name=None):
    """Axes `source` at the places `destination`, the others in their order around them.

    >>> paddle.moveaxis(paddle.ones([2, 3, 4]), 0, -1).shape
    [3, 4, 2]
    """
    ndim = x.spec.ndim
    source, destination = axes_of(source, ndim), axes_of(destination, ndim)
    if len(source) != len(destination):
        raise ValueError(f"moveaxis of {len(source)} axes to {len(destination)} places")
    placed = dict(zip(destination, source, strict=True))
    others = (d for d in range(ndim) if d not in source)
    perm = tuple(placed[d] if d in placed else next(others) for d in range(ndim))
    return movement.transpose(x, perm=perm)


__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "flatten", "moveaxis", "permute", "reshape",
    "squeeze", "swapaxes", "t", "transpose", "unflatten", "unsqueeze", "view", "view_as",
]  # fmt: skip
