"""Convolutions and transposed convolutions, in one, two and three dimensions."""

from ...core.prelude import movement, require_floats, value_error
from ...engine.ops import conv as ops
from .windows import (
    channels_last,
    hide_n,
    numbers,
    of_axes,
    paddings,
    size_of_image,
    to_first,
    to_last,
)


def prepare(name, n, x, weight, stride, padding, dilation, data_format):
    """(x with its channels first, its size, stride, pairs of padding, dilation, channels last?)."""
    last = channels_last(data_format, n)
    x = to_first(x) if last else x
    size, kernel, stride = (
        size_of_image(name, x, n),
        weight.spec.shape[2:],
        numbers("stride", stride, n),
    )
    same = isinstance(padding, str) and padding.upper() == "SAME"
    dilation = (1,) * n if same else numbers("dilation", dilation, n)
    pairs = paddings(padding, n, size=size, kernel=kernel, stride=stride, channel_last=last)
    return x, size, stride, pairs, dilation, last


def convolve(n, x, weight, bias, stride, padding, dilation, groups, data_format):
    """The convolution that conv{n}d is."""
    require_floats(f"conv{n}d", x)
    options = stride, padding, dilation, data_format
    x, _, stride, pairs, dilation, last = prepare(f"conv{n}d", n, x, weight, *options)
    at = {"stride": stride, "padding": pairs, "dilation": dilation, "groups": groups}
    return add_bias(ops.conv(x, weight, **at), bias, last)


def add_bias(y, bias, last: bool):
    """The result with its bias, in the data format that was asked for."""
    if bias is not None:
        y = y + movement.reshape(bias, shape=(1, -1, *(1,) * (y.spec.ndim - 2)))
    return to_last(y) if last else y


@hide_n
def conv2d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCHW", name=None,
    *, n=2,
):  # fmt: skip
    """Convolution of images: x [N, C, H, W], weight [O, C / groups, KH, KW], bias [O].

    `padding` is a number, one for each axis, before and after for each axis, pairs for all axes
    with batch and channel, "VALID", or "SAME" (which sets the dilation to 1). With "NHWC" x and the
    result have their channels last; the weight stays as it is.

    >>> x, weight = paddle.ones([2, 3, 8, 8]), paddle.ones([4, 3, 3, 3])
    >>> paddle.nn.functional.conv2d(x, weight, stride=2, padding=1).shape
    [2, 4, 4, 4]
    """
    return convolve(n, x, weight, bias, stride, padding, dilation, groups, data_format)


conv1d, conv3d = (of_axes(conv2d, n) for n in (1, 3))


# ---- transposed ------------------------------------------------------------------------------


def convolve_transpose(
    n, x, weight, bias, stride, padding, extra, dilation, groups, wanted, data_format
):
    """The transposed convolution that conv{n}d_transpose is: the adjoint of `convolve` in x."""
    name, kernel = f"conv{n}d_transpose", weight.spec.shape[2:]
    require_floats(name, x)
    options = stride, padding, dilation, data_format
    x, size, stride, pairs, dilation, last = prepare(name, n, x, weight, *options)
    reach = [(m - 1) * s + (k - 1) * d + 1 for m, s, k, d in zip(size, stride, kernel, dilation)]
    least = [r - low - high for r, (low, high) in zip(reach, pairs)]
    out = output_size(name, least, extra, wanted, stride, dilation)
    # The reach beyond the output size is cut off at the end; a negative rest is added there.
    exact = tuple((low, r - low - o) for r, o, (low, _) in zip(reach, out, pairs))
    at = {"stride": stride, "padding": exact, "dilation": dilation, "groups": groups}
    return add_bias(ops.conv_input_grad(x, weight, size=out, **at), bias, last)


def output_size(name, least, extra, wanted, stride, dilation) -> tuple:
    """The size of the result: the least, with `output_padding` added, or what is `wanted`."""
    n = len(least)
    if wanted is None:
        extra = numbers("output_padding", extra, n, least=0)
        if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
            raise value_error(
                f"{name} was given output_padding={list(extra)}",
                f"less than the stride {list(stride)} or dilation {list(dilation)}",
            )
        return tuple(m + e for m, e in zip(least, extra))
    if any(numbers("output_padding", extra, n, least=0)):
        raise value_error(f"{name} was given output_size and output_padding: give one")
    out = numbers("output_size", wanted, n)
    if any(not m <= o < m + s for o, m, s in zip(out, least, stride)):
        most = [m + s - 1 for m, s in zip(least, stride)]
        raise value_error(f"{name} was given output_size={list(out)}", f"{least} to {most}")
    return out


def conv2d_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
    output_size=None, data_format="NCHW", name=None,
):  # fmt: skip
    """Transposed convolution of images: x [N, C, H, W], weight [C, O / groups, KH, KW], bias [O].

    Each size m becomes (m - 1) · stride - padding + dilation · (kernel - 1) + 1 + output_padding,
    or what `output_size` chooses among the sizes that a convolution would bring to m.

    >>> x, weight = paddle.ones([1, 3, 4, 4]), paddle.ones([3, 5, 2, 2])
    >>> paddle.nn.functional.conv2d_transpose(x, weight, stride=2).shape
    [1, 5, 8, 8]
    """
    options = stride, padding, output_padding, dilation, groups, output_size, data_format
    return convolve_transpose(2, x, weight, bias, *options)


@hide_n
def conv1d_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
    output_size=None, data_format="NCL", name=None, *, n=1,
):  # fmt: skip
    """Transposed convolution of sequences: x [N, C, L], weight [C, O / groups, K], bias [O].

    See `conv2d_transpose`.

    >>> x, weight = paddle.to_tensor([[[1.0, 2.0]]]), paddle.to_tensor([[[1.0, 10.0]]])
    >>> paddle.nn.functional.conv1d_transpose(x, weight).tolist()
    [[[1.0, 12.0, 20.0]]]
    """
    options = stride, padding, output_padding, dilation, groups, output_size, data_format
    return convolve_transpose(n, x, weight, bias, *options)


conv3d_transpose = of_axes(conv1d_transpose, 3, model=conv2d_transpose)


__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]
