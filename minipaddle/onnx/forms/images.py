"""Forms of products, convolutions, pooling, resampling."""

from itertools import product
from math import prod

import numpy

from ...engine.core.dim import Dim
from ...engine.core.op import OPS
from ...engine.core.slots import slot
from ...engine.core.symbols import Composite
from ...engine.ir.program import INPUT
from ...engine.ops.movement import ravel
from ...ops.resample import taps
from ...ops.strided import spread_axes
from ..formulas import elementwise
from ..graph import INT64, OnnxGraph, OnnxValue
from ..table import FORMS, form, numbers
from .movement import reshape_to, vector_in, whole


def transpose_matrix(g: OnnxGraph, x: OnnxValue) -> OnnxValue:
    """A matrix transposed."""
    return g("Transpose", x, perm=(1, 0))


@form("affine")
@slot("onnx.affine")
def affine(g, x, weight, bias):
    if len(x.shape) == 2:
        return g("Gemm", x, weight, bias)
    return g("Add", g("MatMul", x, weight), bias)


@form("product")
def _(g, x, y, *, x_perm, y_perm, out_perm):
    y = g("MatMul", g("Transpose", x, perm=x_perm), g("Transpose", y, perm=y_perm))
    return g("Transpose", y, perm=out_perm)


@form("summed_outer")
def _(g, x, y):
    x, y = (reshape_to(g, v, (prod(v.shape[:-1]), v.shape[-1])) for v in (x, y))
    return g("MatMul", transpose_matrix(g, x), y)


@form("linear")
def _(g, x, w, *, transpose):
    return g("MatMul", x, transpose_matrix(g, w) if transpose else w)


@form("add")
def _(g, x, y):
    """A bias after a convolution is part of the Conv node."""
    for image, bias in ((x, y), (y, x)):
        record = getattr(image, "record", None)
        if record is None or record.op is not OPS["conv"] or g.uses(record) != 1 or bias is image:
            continue
        channels, vector = image.shape[1], getattr(bias, "record", None) and vector_in(g, bias)
        shape = (1, channels, *(1,) * (len(image.shape) - 2))
        if vector and bias.shape == shape and vector.record.op is INPUT:
            conv_node = next(n for n in reversed(g.nodes) if image.name in n.output)
            conv_node.input.append(vector.name)
            return image
    return elementwise(g, g.record, (x, y))


def pads(pairs) -> list[int]:
    return [p[0] for p in pairs] + [p[1] for p in pairs]


@form("conv")
@slot("onnx.conv")
def conv(g, x, w, *, stride, padding, dilation, groups):
    how = {"strides": stride, "pads": pads(padding), "dilations": dilation, "group": groups}
    return g("Conv", x, w, **how)


@form("conv_input_grad")
def conv_transpose(g, x, w, *, size, stride, padding, dilation, groups):
    """The padding after an axis follows from its size; pixels that no window reaches are zeros."""
    reach = [
        s * (m - 1) + (k - 1) * d + 1 - low
        for m, k, s, d, (low, _) in zip(
            x.shape[2:], w.shape[2:], stride, dilation, padding, strict=True
        )
    ]
    high = numbers([r - n for r, n in zip(reach, size, strict=True)], "sizes")
    around = [p[0] for p in padding] + [max(k, 0) for k in high]
    how = {"strides": stride, "dilations": dilation, "group": groups, "pads": around}
    y = g("ConvTranspose", x, w, **how)
    if min(high) >= 0:
        return y
    beyond = (0,) * (len(high) + 4) + tuple(max(-k, 0) for k in high)
    return g("Pad", y, beyond, g.constant(numpy.zeros((), x.dtype)))


def high_padding(n, window) -> int:
    """The padding after an axis of n pixels that makes the positions as many as the window says."""
    kernel, stride, low, count = window
    if not isinstance(n, Dim) and not isinstance(count, Dim):
        return max((count - 1) * stride + kernel - n - low, 0)
    steps = count - 1  # a quotient by the stride, and a number
    quotients = [a for a in getattr(steps, "atoms", ()) if type(a) is Composite and a.sign == "//"]
    extent = steps * stride - n
    if quotients and quotients[0].under == stride:
        q = quotients[0]
        extent = q.over + (steps - Dim({(q,): 1})) * stride - n
    return numbers([extent + kernel - low], "the sizes of pooled images")[0]


def window_attrs(x: OnnxValue, windows) -> dict:
    kernel, stride, low, _ = zip(*windows, strict=True)
    numbers((*kernel, *stride), "the sizes of windows")
    high = [high_padding(n, w) for n, w in zip(x.shape[2:], windows, strict=True)]
    return {"kernel_shape": kernel, "strides": stride, "pads": [*low, *high]}


@form("max_pool")
def _(g, x, *, windows):
    if all(w == (n, w[1], 0, 1) for n, w in zip(x.shape[2:], windows, strict=True)):
        return g("GlobalMaxPool", x)
    return g("MaxPool", x, **window_attrs(x, windows))


@form("max_pool_index")
def _(g, x, y, *, windows):
    _, at = g("MaxPool", x, results=2, **window_attrs(x, windows))
    flat = OnnxValue(g, at.name, INT64)
    return g("Mod", flat, g.size(prod(x.shape[2:]))).astype(numpy.int32)


@form("avg_pool")
def _(g, x, *, windows, exclusive, divisor):
    if divisor is None and all(w == (n, w[1], 0, 1) for n, w in zip(x.shape[2:], windows)):
        return g("GlobalAveragePool", x)
    how = window_attrs(x, windows)
    n, kernel = len(windows), how["kernel_shape"]
    beyond = any(high > low for low, high in zip(how["pads"][:n], how["pads"][n:], strict=True))
    if exclusive and not divisor:
        return g("AveragePool", x, count_include_pad=0, **how)
    if not divisor and not beyond:
        return g("AveragePool", x, count_include_pad=1, **how)
    zero = g.constant(numpy.zeros((), x.dtype))
    wide = g("Pad", x, (0, 0, *how["pads"][:n], 0, 0, *how["pads"][n:]), zero)
    mean = g("AveragePool", wide, kernel_shape=kernel, strides=how["strides"])
    if divisor:
        return g("Mul", mean, prod(kernel) / divisor)
    ones = numpy.ones((1, 1, *numbers(x.shape[2:], "sizes")), x.dtype)
    share = OPS["avg_pool"].body(numpy, ones, windows=windows, exclusive=True, divisor=prod(kernel))
    counted = OPS["avg_pool"].body(numpy, ones, windows=windows, exclusive=False, divisor=None)
    return g("Mul", mean, g.constant((counted / share).astype(x.dtype)))


def permute(g: OnnxGraph, x: OnnxValue, perm) -> OnnxValue:
    """x with its axes in another order, its shape known."""
    return g("Transpose", x, perm=perm, shape=tuple(x.shape[d] for d in perm))


def channels_last(name: str):
    """The rule of an operator of images [N, *size, C] and kernels [*kernel, in, out]: that of
    [N, C, *size] between transposes.
    """

    def rule(g, x, *kernel, **attrs):
        n = len(x.shape)
        x = permute(g, x, (0, n - 1, *range(1, n - 1)))
        kernel = [permute(g, w, (n - 1, n - 2, *range(n - 2))) for w in kernel]
        return g("Transpose", FORMS[name](g, x, *kernel, **attrs), perm=(0, *range(2, n), 1))

    return rule


LAST_ONES = ("conv_input_grad", "conv", "max_pool", "avg_pool")
FORMS |= {n.replace("conv", "conv_last").replace("pool", "pool_last"): channels_last(n)
          for n in LAST_ONES}  # fmt: skip


@form("resample")
def _(g, x, *, axis, size, to, method, corners, centers, step, adjoint):
    """A sum of gathered pixels, each with its weight, as the operator's body computes it."""
    numbers((size, to), "sizes")
    places, weights = taps(numpy, size, to, method, corners, centers, step, adjoint)
    lost = places >= x.shape[axis]
    places, weights = numpy.where(lost, 0, places), numpy.where(lost, 0, weights).astype(x.dtype)
    column, total = (-1, *(1,) * (len(x.shape) - axis - 1)), None
    for at, share in zip(places.T, weights.T, strict=True):
        part = g("Mul", g("Gather", x, at.astype(INT64), axis=axis), share.reshape(column))
        total = part if total is None else g("Add", total, part)
    return total


@form("unfold")
def _(g, x, *, kernel, stride, padding, dilation):
    """The windows as one Gather of flat pixels."""
    channels, *size = x.shape[1:]
    zero, sides = g.constant(numpy.zeros((), x.dtype)), pads(padding)
    n = len(kernel)
    x = g("Pad", x, (0, 0, *sides[:n], 0, 0, *sides[n:]), zero)
    wide = [m + a + b for m, (a, b) in zip(numbers(size, "sizes"), padding, strict=True)]
    pixels = numpy.arange(channels * prod(wide)).reshape(1, channels, *wide)
    none = ((0, 0),) * n
    how = {"kernel": kernel, "stride": stride, "padding": none, "dilation": dilation}
    at = OPS["unfold"].body(numpy, pixels, **how)[0]
    flat = g("Reshape", x, (0, -1))
    return g("Gather", flat, at.astype(INT64), axis=1)


@form("fold")
def _(g, x, *, size, kernel, stride, padding, dilation):
    how = {"strides": stride, "pads": pads(padding), "dilations": dilation}
    return g("Col2Im", x, tuple(numbers(size, "sizes")), tuple(kernel), **how)


@form("adaptive_max_index")
def _(g, x, *, out):
    """The windows side by side, by one Gather; then the first of the largest in each."""
    size = numbers(x.shape[2:], "sizes")
    first = [numpy.arange(o) * n // o for o, n in zip(out, size, strict=True)]
    last = [-(-(numpy.arange(o) + 1) * n // o) - 1 for o, n in zip(out, size, strict=True)]
    longest = [int((b - a).max()) + 1 for a, b in zip(first, last, strict=True)]
    at = []
    for tap in product(*map(range, longest)):
        pixels = [numpy.minimum(a + t, b) for a, b, t in zip(first, last, tap, strict=True)]
        at.append(ravel(spread_axes(pixels), size).reshape(-1))
    at = numpy.stack(at).astype(INT64)
    flat = g("Reshape", x, (0, 0, -1))
    best = g("ArgMax", g("Gather", flat, at, axis=2), axis=2, keepdims=0, dtype=INT64)
    every = g("Add", g("Mul", best, numpy.int64(at.shape[1])), numpy.arange(at.shape[1]))
    indices = g("Gather", at.reshape(-1), every, axis=0, dtype=INT64)
    return g("Reshape", indices, (0, 0, *out)).astype(numpy.int32)


@form("blend")
def _(g, x, place, weight):
    """One GatherElements for each of the pixels that are blended."""
    total = None
    for k in range(numbers(place.shape[1:2], "sizes")[0]):
        at, share = (g("Slice", v, (k,), (k + 1,), (1,)) for v in (whole(place), weight))
        at = g("Expand", at, (x.shape[0], x.shape[1], place.shape[2]))
        part = g("Mul", g("GatherElements", x, at, axis=2), share)
        total = part if total is None else g("Add", total, part)
    return total
