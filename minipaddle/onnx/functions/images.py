"""Operators of ONNX on images: convolutions, pooling, resizing."""

import math
from functools import partial
from math import prod

import numpy

from ...core.prelude import Dim, larger, movement
from ..table import FUNCTIONS, INT64, UnreadableNode, apply, as_known, reads, sizes, tensor


def span(x, kernel, attrs: dict, fill=None) -> tuple:
    """(x, strides, dilations and padding) of a convolution or pooling over the axes of an image.

    Padding that follows from sizes which only a run knows is added to x, as `fill`.
    """
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
            halves(pad_like(m, s, (k - 1) * d + 1), auto)
            for m, s, k, d in zip(image, stride, kernel, dilation)
        )
    if any(isinstance(w, Dim) for pair in padding for w in pair):
        if fill is None:
            raise UnreadableNode("its padding follows from sizes that are computed while it runs")
        x = apply("pad", x, widths=((0, 0), (0, 0), *padding), value=fill)
        padding = ((0, 0),) * n
    return x, {"stride": stride, "padding": padding, "dilation": dilation}


def pad_like(size, stride: int, reach: int):
    """By how much an axis is padded so that windows begin at each `stride`-th place."""
    total = ((size + stride - 1) // stride - 1) * stride + reach - size
    return total if reach >= stride else larger(total, 0)


def halves(total, auto: str) -> tuple:
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
    x, at = span(x, w.spec.shape[2:], attrs, fill=0.0)
    return add_bias(apply("conv", x, w, groups=group, **at), bias)


@reads("ConvTranspose")
def _(x, w, bias=None, *, group=1, kernel_shape=None, output_padding=None, output_shape=None,
      **attrs):  # fmt: skip
    x, w = tensor(x), tensor(w)
    kernel = w.spec.shape[2:]
    n = len(kernel)
    if output_shape is not None or attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnreadableNode("its padding follows from the shape of its result")
    (x, at), extra = span(x, kernel, attrs), output_padding or (0,) * n
    sizes_ = tuple(
        s * (m - 1) + e + (k - 1) * d + 1 - low - high
        for m, k, s, d, e, (low, high) in zip(
            x.spec.shape[2:], kernel, at["stride"], at["dilation"], extra, at["padding"]
        )
    )
    at["padding"] = tuple((a, b - e) for (a, b), e in zip(at["padding"], extra, strict=True))
    return add_bias(apply("conv_input_grad", x, w, size=sizes_, groups=group, **at), bias)


def windows(x, kernel, attrs: dict, fill=None) -> tuple:
    """(x, the windows of a pooling as our operators take them, the padding at the ends)."""
    (x, at), ceil = span(x, kernel, attrs, fill), attrs.get("ceil_mode", 0)
    if set(at["dilation"]) != {1}:
        raise UnreadableNode("its windows are dilated")
    axes = []
    for m, k, s, (low, high) in zip(x.spec.shape[2:], kernel, at["stride"], at["padding"]):
        steps = m + low + high - k
        count = (-(-steps // s) if ceil else steps // s) + 1
        if ceil and isinstance(count, int) and (count - 1) * s >= m + low:
            count -= 1  # no window begins in the padding at the end
        axes.append((k, s, low, count))
    return x, tuple(axes), [high for _, high in at["padding"]]


@reads("MaxPool")
def _(x, /, *, kernel_shape, storage_order=0, node, **attrs):
    x, over, _ = windows(x, kernel_shape, attrs, fill=-math.inf)
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
    x, over, high = windows(x, kernel_shape, attrs)
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
      nearest_mode=None, cubic_coeff_a=-0.75, antialias=0, exclude_outside=0,
      extrapolation_value=0.0, keep_aspect_ratio_policy="stretch", scales=None, axes=None,
      node):  # fmt: skip
    x, how = tensor(x), coordinate_transformation_mode
    if node.opset < 11:
        inputs, how = (None, *inputs, None)[:3], "asymmetric"
    else:
        nearest_mode = nearest_mode or "round_prefer_floor"
    _, ratio, target = (*inputs, None, None, None)[:3]
    ratio = scales if ratio is None else ratio
    refused = antialias or exclude_outside or axes or keep_aspect_ratio_policy != "stretch"
    corners, centers = how == "align_corners", how in ("half_pixel", "pytorch_half_pixel")
    if refused or how not in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        raise UnreadableNode(f"it resizes with options that are not supported ({how})")
    if mode == "cubic" and cubic_coeff_a != -0.75:
        raise UnreadableNode(f"its cubic has the coefficient {cubic_coeff_a}, not -0.75")
    image = x.spec.shape[2:]
    if target is not None and numpy.size(target):
        to = sizes(target)[2:]
        factors = [n / m if isinstance(n, int) and isinstance(m, int) else times(n, m)
                   for n, m in zip(to, image, strict=True)]  # fmt: skip
    else:
        factors = [float(f) for f in numpy.asarray(ratio).reshape(-1)][2:]
        to = [n if isinstance(n, Dim) else math.floor(n * f)
              for n, f in zip(image, factors, strict=True)]  # fmt: skip
    for d, (n, m, factor) in enumerate(zip(image, to, factors, strict=True)):
        if factor == 1:
            continue
        nearest = partial(nearest_places, step=1 / factor, corners=corners, centers=centers,
                          rounding=nearest_mode or ("ceil" if factor < 1 else "floor"))  # fmt: skip
        k = int(factor) if float(factor).is_integer() else 0
        whole = mode == "nearest" and not corners and 0 < k <= LARGEST
        if whole and nearest(2, 2 * k) == (0,) * k + (1,) * k:
            x = repeat_pixels(x, d + 2, k)
            continue
        n, m = as_known(numpy.array([n, m], object), "image sizes")
        if m > LARGEST:
            raise UnreadableNode(f"it resizes to {m} pixels")
        if mode == "nearest":
            x = apply("remap", x, axis=d + 2, index=nearest(n, m))
        else:
            x = apply("resample", x, axis=d + 2, size=n, to=m, method=mode, corners=corners,
                      centers=centers, step=1 / factor, adjoint=False)  # fmt: skip
    return x


def times(n, m) -> float:
    """How often m goes into n, for every size: a whole number, or it must be known."""
    quotient, rest = divmod(n, m)
    known = not isinstance(quotient, Dim) and not isinstance(rest, Dim) and rest == 0
    return float(quotient) if known else math.nan


def repeat_pixels(x, axis: int, k: int):
    """Each pixel of an axis k times."""
    shape = x.spec.shape
    first, n, rest = shape[:axis], shape[axis], shape[axis + 1 :]
    x = movement.reshape(x, shape=(*first, n, 1, *rest))
    x = movement.broadcast_to(x, shape=(*first, n, k, *rest))
    return movement.reshape(x, shape=(*first, n * k, *rest))


def nearest_places(n: int, m: int, *, step: float, corners, centers, rounding: str) -> tuple:
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
