"""Pooling with windows that share each axis evenly, and max-pooling's way back."""

from __future__ import annotations

from math import prod

from ...engine.core.errors import value_error
from ...engine.ops import creation, movement
from ...engine.ops import gather as indexing
from ...engine.ops import pooling as ops
from ...ops import resample as resampling
from .dimensions import hide_n, of_axes
from .windows import channels_last, image, numbers, to_first, to_last

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

# ---- adaptive windows ------------------------------------------------------------------------


def adapted_size(name, x, n, output_size) -> tuple:
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


def area(x, out):
    """Each image axis of x averaged over windows that share it evenly."""
    how = {"method": "area", "corners": False, "centers": False, "step": 1.0, "adjoint": False}
    for d, (m, o) in enumerate(zip(x.spec.shape[2:], out)):
        if m != o:
            x = resampling.resample(x, axis=d + 2, size=m, to=o, **how)
    return x


@hide_n
def adaptive_avg_pool2d(x, output_size, data_format="NCHW", name=None, *, n=2):
    """x [N, C, H, W] averaged down to `output_size`, one number for all axes or one each.

    None keeps the size of an axis. Source: Paddle API `paddle.nn.functional.adaptive_avg_pool2d`.

    >>> import minipaddle as paddle
    >>> paddle.nn.functional.adaptive_avg_pool2d(paddle.ones([1, 2, 7, 7]), 3).shape
    [1, 2, 3, 3]
    """
    last = channels_last(data_format, n)
    x = to_first(x) if last else x
    out = adapted_size(f"adaptive_avg_pool{n}d", x, n, output_size)
    size = x.spec.shape[2:]
    if all(m % o == 0 for m, o in zip(size, out)):
        windows = tuple((m // o, m // o, 0, o) for m, o in zip(size, out))
        y = ops.avg_pool(x, windows=windows, exclusive=True, divisor=None)
    else:
        y = area(x, out)
    return to_last(y) if last else y


adaptive_avg_pool3d = of_axes(adaptive_avg_pool2d, 3)


def adaptive_avg_pool1d(x, output_size, name=None):
    """x [N, C, L] averaged down to `output_size` values.

    Source: Paddle API `paddle.nn.functional.adaptive_avg_pool1d`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([[[1.0, 2.0, 3.0, 4.0]]])
    >>> paddle.nn.functional.adaptive_avg_pool1d(x, 2).tolist()
    [[[1.5, 3.5]]]
    """
    return adaptive_avg_pool2d(x, output_size, "NCL", n=1)


@hide_n
def adaptive_max_pool2d(x, output_size, return_mask=False, name=None, *, n=2):
    """The maxima of windows that share x [N, C, H, W] evenly; with a mask, where they stand.

    Source: Paddle API `paddle.nn.functional.adaptive_max_pool2d`.

    >>> import minipaddle as paddle
    >>> paddle.nn.functional.adaptive_max_pool2d(paddle.ones([1, 2, 7, 7]), 3).shape
    [1, 2, 3, 3]
    """
    out = adapted_size(f"adaptive_max_pool{n}d", x, n, output_size)
    mask = ops.adaptive_max_index(x, out=out)
    flat = movement.reshape(mask, shape=(*x.spec.shape[:2], -1))
    y = indexing.take_along(movement.reshape(x, shape=(*x.spec.shape[:2], -1)), flat, 2)
    y = movement.reshape(y, shape=mask.spec.shape)
    return (y, mask) if return_mask else y


adaptive_max_pool1d, adaptive_max_pool3d = (of_axes(adaptive_max_pool2d, n) for n in (1, 3))


# ---- the way back ----------------------------------------------------------------------------


@hide_n
def max_unpool2d(
    x, indices, kernel_size, stride=None, padding=0, data_format="NCHW", output_size=None,
    name=None, *, n=2,
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
    name = f"max_unpool{n}d"
    if channels_last(data_format, n):
        raise value_error(
            f"{name} was given data_format={data_format!r}", expected="channels first"
        )
    size, kernel = image(name, x, n), numbers("kernel_size", kernel_size, n)
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


max_unpool1d, max_unpool3d = (of_axes(max_unpool2d, n) for n in (1, 3))
