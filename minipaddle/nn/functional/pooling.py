"""Pooling: maxima, means and p-norms of sliding or adaptive windows; max-unpooling."""

from math import prod

from ...core.prelude import creation, current, indexing, movement, value_error
from ...ops import mean_pooling as ops
from ...ops import resample as resampling
from ...ops.pooling import max_pool
from ...ops.scatter import along_index, take_along
from .windows import channels_last, hide_n, image, numbers, of_axes, paddings, to_first, to_last


def sliding_windows(name, x, n, kernel, stride, padding, ceil_mode, last=False):
    """(kernel, stride, padding before, positions) for each image axis."""
    size = image(name, x, n)
    kernel = numbers("kernel_size", kernel, n)
    stride = kernel if stride is None else numbers("stride", stride, n)
    if isinstance(padding, str) and padding.upper() == "VALID" and ceil_mode:
        raise value_error(f"{name} was given padding='VALID' with ceil_mode=True")
    pairs = paddings(padding, n, size=size, kernel=kernel, stride=stride, channel_last=last)
    windows = []
    for m, k, s, (low, high) in zip(size, kernel, stride, pairs):
        room = m + low + high - k
        if room < 0:
            raise value_error(
                f"{name}: windows {list(kernel)} do not fit into the image {list(size)} "
                f"with padding {padding!r}"
            )
        windows.append((k, s, low, (-(-room // s) if ceil_mode else room // s) + 1))
    return tuple(windows)


# ---- sliding windows -------------------------------------------------------------------------


@hide_n
def max_pool2d(
    x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False,
    data_format="NCHW", name=None, *, n=2,
):  # fmt: skip
    """The largest value of each window of x [N, C, H, W]; `stride` is `kernel_size` if None.

    With `return_mask` also where it stands in the flat image, in int32; of equal values the first.
    With `ceil_mode` a last window may reach over the edge.

    >>> paddle.nn.functional.max_pool2d(paddle.ones([1, 2, 6, 6]), 3, stride=1).shape
    [1, 2, 4, 4]
    """
    name, last = f"max_pool{n}d", channels_last(data_format, n)
    if return_mask and last:
        raise value_error(f"{name} has no mask in {data_format}", hint="transpose x first")
    x = to_first(x) if last else x
    windows = sliding_windows(name, x, n, kernel_size, stride, padding, ceil_mode, last)
    y = max_pool(x, windows=windows)
    if return_mask:
        return y, ops.max_pool_index(x, y, windows=windows)
    return to_last(y) if last else y


max_pool3d = of_axes(max_pool2d, 3)


def max_pool1d(
    x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, name=None
):
    """The largest value of each window of x [N, C, L]. See `max_pool2d`.

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

    >>> paddle.nn.functional.avg_pool2d(paddle.ones([1, 2, 6, 6]), 3, stride=1).shape
    [1, 2, 4, 4]
    """
    name, last = f"avg_pool{n}d", channels_last(data_format, n)
    x = to_first(x) if last else x
    windows = sliding_windows(name, x, n, kernel_size, stride, padding, ceil_mode, last)
    y = ops.avg_pool(x, windows=windows, exclusive=exclusive, divisor=divisor_override)
    return to_last(y) if last else y


avg_pool3d = of_axes(avg_pool2d, 3)


def avg_pool1d(x, kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None):
    """The mean of each window of x [N, C, L]. See `avg_pool2d`.

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

    >>> paddle.nn.functional.lp_pool2d(paddle.ones([1, 2, 4, 4]), 2, 2).shape
    [1, 2, 2, 2]
    """
    p = float(norm_type)
    if p == 0:
        raise value_error(f"lp_pool{n}d was given norm_type=0", "another number")
    where = {"ceil_mode": ceil_mode, "data_format": data_format, "n": n}
    if p == float("inf"):
        return max_pool2d(x, kernel_size, stride, padding, **where)
    sums = avg_pool2d(x**p, kernel_size, stride, padding, divisor_override=1, **where)
    return sums ** (1 / p)


lp_pool1d = of_axes(lp_pool2d, 1)


# ---- adaptive windows ------------------------------------------------------------------------


def adaptive_size(name, x, n, output_size) -> tuple:
    """The size asked for; None keeps the size of an axis."""
    size = image(name, x, n)
    sizes = current.top.sizes(output_size) if hasattr(output_size, "spec") else output_size
    many = sizes if isinstance(sizes, list | tuple) else [sizes] * n
    if len(many) == 1:
        many = [*many] * n
    if len(many) != n:
        raise value_error(f"{name} was given output_size={output_size!r}", f"1 or {n} numbers")
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

    None keeps the size of an axis.

    >>> paddle.nn.functional.adaptive_avg_pool2d(paddle.ones([1, 2, 7, 7]), 3).shape
    [1, 2, 3, 3]
    """
    last = channels_last(data_format, n)
    x = to_first(x) if last else x
    out = adaptive_size(f"adaptive_avg_pool{n}d", x, n, output_size)
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

    >>> x = paddle.to_tensor([[[1.0, 2.0, 3.0, 4.0]]])
    >>> paddle.nn.functional.adaptive_avg_pool1d(x, 2).tolist()
    [[[1.5, 3.5]]]
    """
    return adaptive_avg_pool2d(x, output_size, "NCL", n=1)


@hide_n
def adaptive_max_pool2d(x, output_size, return_mask=False, name=None, *, n=2):
    """The maxima of windows that share x [N, C, H, W] evenly; with a mask, their positions.

    >>> paddle.nn.functional.adaptive_max_pool2d(paddle.ones([1, 2, 7, 7]), 3).shape
    [1, 2, 3, 3]
    """
    out = adaptive_size(f"adaptive_max_pool{n}d", x, n, output_size)
    mask = ops.adaptive_max_index(x, out=out)
    flat = movement.reshape(mask, shape=(*x.spec.shape[:2], -1))
    y = take_along(movement.reshape(x, shape=(*x.spec.shape[:2], -1)), flat, 2)
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
    chooses among the sizes that pooling brings to H, W. Source: Zeiler et al., "Adaptive
    deconvolutional networks", 2011.

    >>> x = paddle.ones([1, 2, 6, 6])
    >>> y, mask = paddle.nn.functional.max_pool2d(x, 3, return_mask=True)
    >>> paddle.nn.functional.max_unpool2d(y, mask, 3).shape
    [1, 2, 6, 6]
    """
    name = f"max_unpool{n}d"
    if channels_last(data_format, n):
        raise value_error(f"{name} was given data_format={data_format!r}", "channels first")
    size, kernel = image(name, x, n), numbers("kernel_size", kernel_size, n)
    stride = kernel if stride is None else numbers("stride", stride, n)
    pads = numbers("padding", padding, n, least=0)
    if output_size is None:
        out = [(m - 1) * s - 2 * p + k for m, k, s, p in zip(size, kernel, stride, pads)]
    else:
        out = list(output_size)[-n:]
    lead = x.spec.shape[:2]
    shape = (*lead, prod(out))
    flat = along_index(movement.reshape(indices, shape=(*lead, -1)), shape=shape, axis=2)
    zeros = creation.full(shape=(prod(shape),), value=0, dtype=x.spec.dtype)
    y = indexing.put(zeros, flat, movement.reshape(x, shape=(*lead, -1)), axis=0)
    return movement.reshape(y, shape=(*lead, *out))


max_unpool1d, max_unpool3d = (of_axes(max_unpool2d, n) for n in (1, 3))


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "lp_pool1d", "lp_pool2d", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d",
    "max_unpool2d", "max_unpool3d",
]  # fmt: skip
