"""Whole numbers of few bits: QuantizeLinear and its kin."""

import numpy

from ...core.prelude import Tensor, dt, movement, normalize_axis
from ..table import UnreadableNode, apply, dtype_of, reads, tensor


def align_axis(v, x, axis: int) -> Tensor:
    """A scale or a zero point beside x: one number, or one for each index of an axis."""
    v = tensor(v)
    if v.spec.ndim > 1:
        raise UnreadableNode("it has scales of blocks")
    if not v.spec.ndim or v.spec.shape == (1,):
        return movement.reshape(v, shape=())
    shape = [1] * x.spec.ndim
    shape[normalize_axis(axis, x.spec.ndim)] = v.spec.shape[0]
    return movement.reshape(v, shape=tuple(shape))


@reads("QuantizeLinear")
def _(x, /, scale, zero=None, *, axis=1, saturate=1, block_size=0, output_dtype=0, precision=0):
    if zero is None and output_dtype:
        dtype = dtype_of(output_dtype)
    else:
        dtype = dt.uint8.numpy if zero is None else tensor(zero).spec.dtype
    if dtype.kind not in "iu":
        raise UnreadableNode(f"its whole numbers are {dtype}")
    ends = numpy.iinfo(dtype)
    y = apply("round", x / align_axis(scale, x, axis))
    if zero is not None:
        y = y + align_axis(tensor(zero).astype(x.spec.dtype), x, axis)
    return apply("clip", y, min=float(ends.min), max=float(ends.max)).astype(dtype)


@reads("DequantizeLinear")
def _(x, scale, zero=None, *, axis=1, block_size=0, output_dtype=0):
    x, scale = tensor(x), tensor(scale)
    y = x.astype(scale.spec.dtype)
    if zero is not None:
        y = y - align_axis(tensor(zero).astype(scale.spec.dtype), x, axis)
    return y * align_axis(scale, x, axis)


@reads("DynamicQuantizeLinear")
def _(x, /):
    every = tuple(range(x.spec.ndim))
    low = apply("minimum", apply("min", x, axis=every, keepdim=False), 0.0)
    high = apply("maximum", apply("max", x, axis=every, keepdim=False), 0.0)
    scale = apply("where", apply("equal", high, low), 1.0, (high - low) / 255.0)
    zero = apply("clip", apply("round", low * -1.0 / scale), min=0.0, max=255.0)
    q = apply("clip", apply("round", x / scale) + zero, min=0.0, max=255.0)
    return q.astype("uint8"), scale, zero.astype("uint8")
