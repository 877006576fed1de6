"""Products of whole numbers of eight bits: MatMulInteger, ConvInteger, DynamicQuantizeLSTM."""

from math import prod

import numpy

from ...core.prelude import Tensor, movement
from ..table import FUNCTIONS, UnreadableNode, apply, reads, tensor
from .images import span
from .recurrent import lstm_step, part, recurrent

INT8 = numpy.dtype("int8")


def as_bytes(x, zero, axis: int | None = None) -> tuple:
    """(q, shift) with x - zero = q + shift: q is int8, which products take. A zero point for each
    index of `axis` is shaped beside x.
    """
    x = tensor(x)
    middle = 0 if x.spec.dtype == INT8 else 128
    q = (x.astype("int16") - middle).astype("int8") if middle else x
    if zero is None:
        return q, middle
    zero = tensor(zero).astype("int32")
    alone = zero.spec.size == 1 or axis is None
    shape = () if alone else tuple(-1 if d == axis else 1 for d in range(x.spec.ndim))
    return q, movement.reshape(zero, shape=shape) * -1 + middle


def total(x, axis) -> Tensor:
    """The sum of bytes along some axes, which stay."""
    return apply("sum", x.astype("int32"), axis=axis, keepdim=True).astype("int32")


@reads("MatMulInteger")
def multiply(a, b, a_zero=None, b_zero=None):
    a, b = tensor(a), tensor(b)
    rows, columns, count = a.spec.ndim - 2, b.spec.ndim - 1, a.spec.shape[-1]
    if min(a.spec.ndim, b.spec.ndim) < 2:
        raise UnreadableNode("it multiplies vectors")
    (p, s), (q, t) = as_bytes(a, a_zero, rows), as_bytes(b, b_zero, columns)
    y = apply("matmul_integer", p, q)
    return y + total(q, (columns - 1,)) * s + (total(p, (rows + 1,)) + s * count) * t


@reads("ConvInteger")
def _(x, w, x_zero=None, w_zero=None, *, group=1, kernel_shape=None, **attrs):
    """Padding stands for 0.0, which is the zero point."""
    x, w = tensor(x), tensor(w)
    channels, kernel = w.spec.shape[1], w.spec.shape[2:]
    _, at = span(x, kernel, attrs, fill=0.0)
    q, shift = as_bytes(x, x_zero)
    if any(n != 0 for pair in at["padding"] for n in pair):
        widths = ((0, 0), (0, 0), *at["padding"])
        wide = apply("pad", q.astype("int16") + as_short(shift), widths=widths, value=0)
        q = (wide - as_short(shift)).astype("int8")
    at["padding"] = ((0, 0),) * len(kernel)
    p, offset = as_bytes(w, w_zero, 0)
    y = apply("conv_integer", q, p, groups=group, **at)
    beside = (1, -1, *(1,) * len(kernel))
    taps = movement.reshape(total(p, tuple(range(1, w.spec.ndim))), shape=beside)
    offset = offset if isinstance(offset, int) else movement.reshape(offset, shape=beside)
    ones = movement.broadcast_to(
        tensor(numpy.ones((1,) * w.spec.ndim, INT8)), shape=(group, channels, *kernel)
    )
    sums = apply("conv_integer", q, ones, groups=group, **at)
    if group > 1:  # the sum of a group beside each of its outputs
        shape = sums.spec.shape
        each = w.spec.shape[0] // group
        sums = movement.reshape(sums, shape=(*shape[:2], 1, *shape[2:]))
        sums = movement.broadcast_to(sums, shape=(*shape[:2], each, *shape[2:]))
        sums = movement.reshape(sums, shape=(shape[0], group * each, *shape[2:]))
    return y + taps * shift + (sums + shift * (channels * prod(kernel))) * offset


def as_short(x):
    return x if isinstance(x, int) else x.astype("int16")


def quantize_products(weights, scales, zeros):
    """The products with weights [way, in, out] of bytes: the left side is made bytes, too.

    They are computed in float32, which rounds sums beyond 2^24 in their last digit: a loop would
    arrange bytes anew at every step.
    """

    def product(d: int):
        w, scale, zero = (part(v, d) for v in (weights, scales, zeros))
        w = w.astype("float32") - zero.astype("float32")

        def times(x):
            q, own, own_zero = FUNCTIONS["DynamicQuantizeLinear"](x)
            q = q.astype("float32") - own_zero.astype("float32")
            return apply("matmul", q, w) * (own * scale)

        return times

    return product


@reads("com.microsoft.DynamicQuantizeLSTM")
def _(x, /, w, r, bias=None, lengths=None, h0=None, c0=None, peepholes=None, w_scale=None,
      w_zero=None, r_scale=None, r_zero=None, *, node, **attrs):  # fmt: skip
    """An LSTM of onnxruntime's, whose weights stand as [way, in, out]."""
    products = quantize_products(w, w_scale, w_zero), quantize_products(r, r_scale, r_zero)
    call = recurrent(4, lstm_step)
    return call(x, *products, bias, lengths, h0, c0, peepholes, node=node, **attrs)
