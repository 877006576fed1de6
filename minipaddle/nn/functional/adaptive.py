"""Pooling with windows that share each axis evenly, and max-pooling's way back."""

from __future__ import annotations

from math import prod

from ...engine.core.errors import value_error
from ...engine.ops import creation, movement
from ...engine.ops import gather as indexing
from ...engine.ops import pooling as ops
from ...ops import resample as resampling
from .dimensions import like
from .windows import channels_last, image, numbers, to_first, to_last

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

# ---- adaptive windows ------------------------------------------------------------------------


def adapted(name, x, n, output_size) -> tuple:
    """The size asked for; None keeps the size of an axis."""
    size = image(name, x, n)
    many = output_size if isinstance(output_size, list | tuple) else [output_size] * n
    if len(many) == 1:
        many = [*many] * n
    if len(many) != n:
        raise value_error(
            f"{name} was given output_size={output_size!r}", expected=f"1 or {n} numbers"
        )
    return numbers("output_size", [m if o is None else o for m, o in zip(size, many)], n)


def adaptive_avg_pool(n, x, output_size, data_format):
    """Means of windows that share each axis evenly: [⌊i·n/out⌋, ⌈(i+1)·n/out⌉)."""
    last = channels_last(data_format, n)
    x = to_first(x) if last else x
    out = adapted(f"adaptive_avg_pool{n}d", x, n, output_size)
    size = x.spec.shape[2:]
    if all(m % o == 0 for m, o in zip(size, out)):
        windows = tuple((m // o, m // o, 0, o) for m, o in zip(size, out))
        y = ops.avg_pool(x, windows=windows, exclusive=True, divisor=None)
    else:
        y = area(x, out)
    return to_last(y) if last else y


def area(x, out):
    """Each image axis of x averaged over windows that share it evenly."""
    how = {"method": "area", "corners": False, "centers": False, "step": 1.0, "adjoint": False}
    for d, (m, o) in enumerate(zip(x.spec.shape[2:], out)):
        if m != o:
            x = resampling.resample(x, axis=d + 2, size=m, to=o, **how)
    return x


def adaptive_max_pool(n, x, output_size, return_mask):
    """Maxima of windows that share each axis evenly."""
    out = adapted(f"adaptive_max_pool{n}d", x, n, output_size)
    mask = ops.adaptive_max_index(x, out=out)
    flat = movement.reshape(mask, shape=(*x.spec.shape[:2], -1))
    y = indexing.take_along(movement.reshape(x, shape=(*x.spec.shape[:2], -1)), flat, 2)
    y = movement.reshape(y, shape=mask.spec.shape)
    return (y, mask) if return_mask else y


def adaptive_avg_pool2d(x, output_size, data_format="NCHW", name=None):
    """x [N, C, H, W] averaged down to `output_size`, one number for all axes or one each.

    None keeps the size of an axis. Source: Paddle API `paddle.nn.functional.adaptive_avg_pool2d`.

    >>> import minipaddle as paddle
    >>> paddle.nn.functional.adaptive_avg_pool2d(paddle.ones([1, 2, 7, 7]), 3).shape
    [1, 2, 3, 3]
    """
    return adaptive_avg_pool(2, x, output_size, data_format)


def adaptive_avg_pool1d(x, output_size, name=None):
    """x [N, C, L] averaged down to `output_size` values.

    Source: Paddle API `paddle.nn.functional.adaptive_avg_pool1d`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([[[1.0, 2.0, 3.0, 4.0]]])
    >>> paddle.nn.functional.adaptive_avg_pool1d(x, 2).tolist()
    [[[1.5, 3.5]]]
    """
    return adaptive_avg_pool(1, x, output_size, "NCL")


@like(adaptive_avg_pool2d)
def adaptive_avg_pool3d(x, output_size, data_format="NCDHW", name=None):
    return adaptive_avg_pool(3, x, output_size, data_format)


def adaptive_max_pool2d(x, output_size, return_mask=False, name=None):
    """The maxima of windows that share x [N, C, H, W] evenly; with a mask, where they stand.

    Source: Paddle API `paddle.nn.functional.adaptive_max_pool2d`.

    >>> import minipaddle as paddle
    >>> paddle.nn.functional.adaptive_max_pool2d(paddle.ones([1, 2, 7, 7]), 3).shape
    [1, 2, 3, 3]
    """
    return adaptive_max_pool(2, x, output_size, return_mask)


def adaptive_max_pool1d(x, output_size, return_mask=False, name=None):
    """The maxima of `output_size` windows that share x [N, C, L]; with a mask, where they stand.

    Source: Paddle API `paddle.nn.functional.adaptive_max_pool1d`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([[[1.0, 2.0, 3.0, 4.0]]])
    >>> paddle.nn.functional.adaptive_max_pool1d(x, 2).tolist()
    [[[2.0, 4.0]]]
    """
    return adaptive_max_pool(1, x, output_size, return_mask)


@like(adaptive_max_pool2d)
def adaptive_max_pool3d(x, output_size, return_mask=False, name=None):
    return adaptive_max_pool(3, x, output_size, return_mask)


# ---- the way back ----------------------------------------------------------------------------


def max_unpool(n, x, indices, kernel, stride, padding, data_format, output_size):
    """Zeros with the values of x where `indices`, a mask of max_pool, say they stood."""
    name = f"max_unpool{n}d"
    if channels_last(data_format, n):
        raise value_error(
            f"{name} was given data_format={data_format!r}", expected="channels first"
        )
    size, kernel = image(name, x, n), numbers("kernel_size", kernel, n)
    stride = kernel if stride is None else numbers("stride", stride, n)
    pads = numbers("padding", padding, n, least=0)
    if output_size is None:
        out = [(m - 1) * s - 2 * p + k for m, k, s, p in zip(size, kernel, stride, pads)]
    else:
        out = list(output_size)[-n:]
    lead = x.spec.shape[:2]
    shape = (*lead, prod(out))
    flat = indexing.along_index(movement.reshape(indices, shape=(*lead, -1)), shape=shape, axis=2)
    zeros = creation.full(shape=(prod(shape),), value=0, dtype=x.spec.dtype)
    y = indexing.put(zeros, flat, movement.reshape(x, shape=(*lead, -1)), axis=0)
    return movement.reshape(y, shape=(*lead, *out))


def max_unpool2d(
    x, indices, kernel_size, stride=None, padding=0, data_format="NCHW", output_size=None,
    name=None,
):  # fmt: skip
    """The values of x [N, C, H, W] back where `indices` say they stood, zero elsewhere.

    `indices` come from `max_pool2d(..., return_mask=True)` with the same sizes; `output_size`
    chooses among the sizes that pooling brings to H, W. Source: Paddle API
    `paddle.nn.functional.max_unpool2d`; Zeiler et al., "Adaptive deconvolutional networks", 2011.

    >>> import minipaddle as paddle
    >>> x = paddle.ones([1, 2, 6, 6])
    >>> y, mask = paddle.nn.functional.max_pool2d(x, 3, return_mask=True)
    >>> paddle.nn.functional.max_unpool2d(y, mask, 3).shape
    [1, 2, 6, 6]
    """
    return max_unpool(2, x, indices, kernel_size, stride, padding, data_format, output_size)


def max_unpool1d(
    x, indices, kernel_size, stride=None, padding=0, data_format="NCL", output_size=None, name=None
):
    """The values of x [N, C, L] back where `indices` say they stood, zero elsewhere.

    See `max_unpool2d`. Source: Paddle API `paddle.nn.functional.max_unpool1d`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([[[1.0, 3.0, 5.0, 2.0]]])
    >>> y, mask = paddle.nn.functional.max_pool1d(x, 2, return_mask=True)
    >>> paddle.nn.functional.max_unpool1d(y, mask, 2).tolist()
    [[[0.0, 3.0, 5.0, 0.0]]]
    """
    return max_unpool(1, x, indices, kernel_size, stride, padding, data_format, output_size)


@like(max_unpool2d)
def max_unpool3d(
    x, indices, kernel_size, stride=None, padding=0, data_format="NCDHW", output_size=None,
    name=None,
):  # fmt: skip
    return max_unpool(3, x, indices, kernel_size, stride, padding, data_format, output_size)
