"""Pooling: maxima, means and p-norms of sliding windows."""

from __future__ import annotations

from ...engine.core.errors import value_error
from ...engine.ops import pooling as ops
from .dimensions import hide_n, of_axes
from .windows import channels_last, image, numbers, paddings, to_first, to_last

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "max_pool1d", "max_pool2d",
    "max_pool3d",
]  # fmt: skip


def windows_of(name, x, n, kernel, stride, padding, ceil_mode, last=False):
    """(kernel, stride, padding before, positions) for each image axis."""
    size = image(name, x, n)
    kernel = numbers("kernel_size", kernel, n)
    stride = kernel if stride is None else numbers("stride", stride, n)
    if isinstance(padding, str) and padding.upper() == "VALID" and ceil_mode:
        raise value_error(f"{name} was given padding='VALID' with ceil_mode=True")
    pairs = paddings(padding, n, size=size, kernel=kernel, stride=stride, channel_last=last)
    found = []
    for m, k, s, (low, high) in zip(size, kernel, stride, pairs):
        room = m + low + high - k
        if room < 0:
            raise value_error(
                f"{name}: windows {list(kernel)} do not fit into the image {list(size)} "
                f"with padding {padding!r}"
            )
        found.append((k, s, low, (-(-room // s) if ceil_mode else room // s) + 1))
    return tuple(found)


# ---- sliding windows -------------------------------------------------------------------------


@hide_n
def max_pool2d(
    x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False,
    data_format="NCHW", name=None, *, n=2,
):  # fmt: skip
    """The largest value of each window of x [N, C, H, W]; `stride` is `kernel_size` if None.

    With `return_mask` also where it stands in the flat image, in int32; of equal values the first.
    With `ceil_mode` a last window may reach over the edge. Source: Paddle API
    `paddle.nn.functional.max_pool2d`.

    >>> import minipaddle as paddle
    >>> paddle.nn.functional.max_pool2d(paddle.ones([1, 2, 6, 6]), 3, stride=1).shape
    [1, 2, 4, 4]
    """
    name, last = f"max_pool{n}d", channels_last(data_format, n)
    if return_mask and last:
        raise value_error(f"{name} has no mask in {data_format}", hint="transpose x first")
    x = to_first(x) if last else x
    windows = windows_of(name, x, n, kernel_size, stride, padding, ceil_mode, last)
    y = ops.max_pool(x, windows=windows)
    if return_mask:
        return y, ops.max_pool_index(x, y, windows=windows)
    return to_last(y) if last else y


max_pool3d = of_axes(max_pool2d, 3)


def max_pool1d(
    x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, name=None
):
    """The largest value of each window of x [N, C, L]. See `max_pool2d`.

    Source: Paddle API `paddle.nn.functional.max_pool1d`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([[[1.0, 3.0, 2.0, 5.0]]])
    >>> y, mask = paddle.nn.functional.max_pool1d(x, 2, return_mask=True)
    >>> y.tolist(), mask.tolist()
    ([[[3.0, 5.0]]], [[[1, 3]]])
    """
    return max_pool2d(x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL", n=1)


@hide_n
def avg_pool2d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True,
    divisor_override=None, data_format="NCHW", name=None, *, n=2,
):  # fmt: skip
    """The mean of each window of x [N, C, H, W]; `stride` is `kernel_size` if None.

    `exclusive`: padding does not count as pixels. `divisor_override` divides every window's sum.
    Source: Paddle API `paddle.nn.functional.avg_pool2d`.

    >>> import minipaddle as paddle
    >>> paddle.nn.functional.avg_pool2d(paddle.ones([1, 2, 6, 6]), 3, stride=1).shape
    [1, 2, 4, 4]
    """
    name, last = f"avg_pool{n}d", channels_last(data_format, n)
    x = to_first(x) if last else x
    windows = windows_of(name, x, n, kernel_size, stride, padding, ceil_mode, last)
    y = ops.avg_pool(x, windows=windows, exclusive=exclusive, divisor=divisor_override)
    return to_last(y) if last else y


avg_pool3d = of_axes(avg_pool2d, 3)


def avg_pool1d(x, kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None):
    """The mean of each window of x [N, C, L]. See `avg_pool2d`.

    Source: Paddle API `paddle.nn.functional.avg_pool1d`.

    >>> import minipaddle as paddle
    >>> x = paddle.to_tensor([[[1.0, 3.0, 2.0, 4.0]]])
    >>> paddle.nn.functional.avg_pool1d(x, 2).tolist()
    [[[2.0, 3.0]]]
    """
    return avg_pool2d(x, kernel_size, stride, padding, ceil_mode, exclusive, None, "NCL", n=1)


@hide_n
def lp_pool2d(
    x, norm_type, kernel_size, stride=None, padding=0, ceil_mode=False, data_format="NCHW",
    name=None, *, n=2,
):  # fmt: skip
    """(Σ xᵖ)^(1/p) of each window of x [N, C, H, W], p being `norm_type`; for ∞ the maximum.

    Source: Paddle API `paddle.nn.functional.lp_pool2d`.

    >>> import minipaddle as paddle
    >>> paddle.nn.functional.lp_pool2d(paddle.ones([1, 2, 4, 4]), 2, 2).shape
    [1, 2, 2, 2]
    """
    p = float(norm_type)
    if p == 0:
        raise value_error(f"lp_pool{n}d was given norm_type=0", expected="another number")
    where = {"ceil_mode": ceil_mode, "data_format": data_format, "n": n}
    if p == float("inf"):
        return max_pool2d(x, kernel_size, stride, padding, **where)
    sums = avg_pool2d(x**p, kernel_size, stride, padding, divisor_override=1, **where)
    return sums ** (1 / p)


lp_pool1d = of_axes(lp_pool2d, 1)
