"""Operators of ONNX on images: convolutions, pooling, resizing."""

import math
from math import prod

import numpy

from ...core.prelude import movement
from ..table import FUNCTIONS, INT64, UnreadableNode, apply, as_known, reads, tensor


def span(x, kernel, attrs: dict) -> dict:
    """Strides, dilations and padding of a convolution or pooling over the axes of an image."""
    n, image = len(kernel), x.spec.shape[2:]
    stride = tuple(attrs.get("strides") or (1,) * n)
    dilation = tuple(attrs.get("dilations") or (1,) * n)
    auto, pads = attrs.get("auto_pad", "NOTSET"), attrs.get("pads") or (0,) * (2 * n)
    if auto in ("NOTSET", ""):
        padding = tuple(zip(pads[:n], pads[n:], strict=True))
    elif auto == "VALID":
        padding = ((0, 0),) * n
    else:
        padding = tuple(
            halves(larger_of((-(-m // s) - 1) * s + (k - 1) * d + 1 - m), auto)
            for m, s, k, d in zip(as_known(image, "image sizes"), stride, kernel, dilation)
        )
    return {"stride": stride, "padding": padding, "dilation": dilation}


def larger_of(n: int) -> int:
    return max(n, 0)


def halves(total: int, auto: str) -> tuple[int, int]:
    small, large = total // 2, total - total // 2
    return (small, large) if auto == "SAME_UPPER" else (large, small)


def add_bias(y, bias):
    if bias is None:
        return y
    bias = tensor(bias)
    return y + movement.reshape(bias, shape=(1, -1, *(1,) * (y.spec.ndim - 2)))


@reads("Conv")
def conv(x, w, bias=None, *, group=1, kernel_shape=None, **attrs):
    x, w = tensor(x), tensor(w)
    at = span(x, w.spec.shape[2:], attrs)
    return add_bias(apply("conv", x, w, groups=group, **at), bias)


@reads("ConvTranspose")
def _(x, w, bias=None, *, group=1, kernel_shape=None, output_padding=None, output_shape=None,
      **attrs):  # fmt: skip
    x, w = tensor(x), tensor(w)
    kernel = w.spec.shape[2:]
    n = len(kernel)
    if output_shape is not None or attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnreadableNode("its padding follows from the shape of its result")
    at, extra = span(x, kernel, attrs), output_padding or (0,) * n
    sizes_ = tuple(
        s * (m - 1) + e + (k - 1) * d + 1 - low - high
        for m, k, s, d, e, (low, high) in zip(
            x.spec.shape[2:], kernel, at["stride"], at["dilation"], extra, at["padding"]
        )
    )
    at["padding"] = tuple((a, b - e) for (a, b), e in zip(at["padding"], extra, strict=True))
    return add_bias(apply("conv_input_grad", x, w, size=sizes_, groups=group, **at), bias)


def windows(x, kernel, attrs: dict) -> tuple:
    """The windows of a pooling as our operators take them, and the padding at the ends."""
    at, ceil = span(x, kernel, attrs), attrs.get("ceil_mode", 0)
    if set(at["dilation"]) != {1}:
        raise UnreadableNode("its windows are dilated")
    axes = []
    for m, k, s, (low, high) in zip(x.spec.shape[2:], kernel, at["stride"], at["padding"]):
        steps = m + low + high - k
        count = (-(-steps // s) if ceil else steps // s) + 1
        if ceil and isinstance(count, int) and (count - 1) * s >= m + low:
            count -= 1  # no window begins in the padding at the end
        axes.append((k, s, low, count))
    return tuple(axes), [high for _, high in at["padding"]]


@reads("MaxPool")
def _(x, /, *, kernel_shape, storage_order=0, node, **attrs):
    over, _ = windows(x, kernel_shape, attrs)
    y = apply("max_pool", x, windows=over)
    if node.results == 1:
        return y
    at = apply("max_pool_index", x, y, windows=over).astype("int64")
    size, rows = prod(x.spec.shape[2:]), prod(x.spec.shape[:2])
    first = apply("arange", size=rows, dtype=INT64) * size
    shape = (*x.spec.shape[:2], *(1,) * (x.spec.ndim - 2))
    return y, at + movement.reshape(first, shape=shape)


@reads("AveragePool")
def _(x, /, *, kernel_shape, count_include_pad=0, **attrs):
    over, high = windows(x, kernel_shape, attrs)
    low = [w[2] for w in over]
    if count_include_pad and high != low:
        widths = ((0, 0), (0, 0), *zip(low, high, strict=True))
        x = apply("pad", x, widths=widths, value=0.0)
        over = tuple((k, s, 0, count) for k, s, _, count in over)
    return apply("avg_pool", x, windows=over, exclusive=not count_include_pad, divisor=None)


def reduce_image(name: str):
    return lambda x: apply(name, tensor(x), axis=tuple(range(2, tensor(x).spec.ndim)), keepdim=True)


FUNCTIONS |= {"GlobalAveragePool": reduce_image("mean"), "GlobalMaxPool": reduce_image("max")}


@reads("DepthToSpace")
def _(x, *, blocksize, mode="DCR"):
    x, b = tensor(x), blocksize
    n, c, h, w = x.spec.shape
    first = (b, b, c // (b * b)) if mode == "DCR" else (c // (b * b), b, b)
    perm = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    y = movement.transpose(movement.reshape(x, shape=(n, *first, h, w)), perm=perm)
    return movement.reshape(y, shape=(n, c // (b * b), h * b, w * b))


@reads("SpaceToDepth")
def _(x, *, blocksize):
    x, b = tensor(x), blocksize
    n, c, h, w = x.spec.shape
    y = movement.reshape(x, shape=(n, c, h // b, b, w // b, b))
    y = movement.transpose(y, perm=(0, 3, 5, 1, 2, 4))
    return movement.reshape(y, shape=(n, c * b * b, h // b, w // b))


LARGEST = 1 << 16
"""Pixels of an axis that is resized."""


@reads("Resize", "Upsample")
def _(x, *inputs, mode="nearest", coordinate_transformation_mode="half_pixel",
      nearest_mode="round_prefer_floor", cubic_coeff_a=-0.75, antialias=0, exclude_outside=0,
      extrapolation_value=0.0, keep_aspect_ratio_policy="stretch", scales=None, axes=None,
      node):  # fmt: skip
    x, how = tensor(x), coordinate_transformation_mode
    if node.opset < 11:
        inputs, how = (None, *inputs, None)[:3], "asymmetric"
    _, ratio, target = (*inputs, None, None, None)[:3]
    ratio = scales if ratio is None else ratio
    refused = antialias or exclude_outside or axes or keep_aspect_ratio_policy != "stretch"
    corners, centers = how == "align_corners", how in ("half_pixel", "pytorch_half_pixel")
    if refused or how not in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        raise UnreadableNode(f"it resizes with options that are not supported ({how})")
    if mode == "cubic" and cubic_coeff_a != -0.75:
        raise UnreadableNode(f"its cubic has the coefficient {cubic_coeff_a}, not -0.75")
    image = as_known(numpy.array(x.spec.shape[2:], object), "image sizes")
    if target is not None and numpy.size(target):
        to = as_known(target, "sizes")[2:]
        steps = [n / m for n, m in zip(image, to, strict=True)]
    else:
        factors = [float(f) for f in numpy.asarray(ratio).reshape(-1)][2:]
        to = [math.floor(n * f) for n, f in zip(image, factors, strict=True)]
        steps = [1 / f for f in factors]
    if max(to, default=0) > LARGEST:
        raise UnreadableNode(f"it resizes to {max(to)} pixels")
    for d, (n, m, step) in enumerate(zip(image, to, steps, strict=True)):
        if n == m:
            continue
        if mode == "nearest":
            index = nearest_places(n, m, step, corners, centers, nearest_mode)
            x = apply("remap", x, axis=d + 2, index=index)
        else:
            x = apply("resample", x, axis=d + 2, size=n, to=m, method=mode, corners=corners,
                      centers=centers, step=step, adjoint=False)  # fmt: skip
    return x


def nearest_places(n: int, m: int, step: float, corners, centers, rounding: str) -> tuple:
    """Which pixel of n each of m new ones is."""
    at = numpy.arange(m)
    at = (
        at * ((n - 1) / max(m - 1, 1))
        if corners
        else (at + 0.5) * step - 0.5
        if centers
        else at * step
    )
    places = {
        "round_prefer_floor": lambda v: numpy.ceil(v - 0.5), "floor": numpy.floor,
        "round_prefer_ceil": lambda v: numpy.floor(v + 0.5), "ceil": numpy.ceil,
    }[rounding](at)  # fmt: skip
    return tuple(int(k) for k in numpy.clip(places, 0, n - 1))
