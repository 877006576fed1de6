"""Matrix product and convolution of quantized arrays: whole numbers inside, floats at the end.

    (q - zero) · scale / high  @  w · w_scale / w_high   =   (q @ w - zero · Σw) · unit / high
    unit = scale · w_scale / w_high                          one number for each column

The sum runs over rows, so `scale` and `zero` of the left side are one number each, and the scale
of a weight is one number, or one for each column (output channel).
"""

from __future__ import annotations

from typing import NamedTuple

from ..engine.core.slots import slot
from ..engine.ops.creation import full
from ..engine.ops.movement import reshape
from ..engine.ops.var import Var
from .quantization import MOST_TERMS, conv_integer, dequantize, int8, matmul_integer


class Quantized(NamedTuple):
    """An array in whole numbers, and what these stand for: see `dequantize`."""

    q: Var
    scale: Var | float
    zero: Var | float
    high: int

    @property
    def symmetric(self) -> bool:
        """Whether 0 stands for 0.0, as is known without a run."""
        return not isinstance(self.zero, Var) and self.zero == 0

    @property
    def floats(self):
        return dequantize(self.q, self.scale, self.zero, high=self.high)


def size_of(scale) -> int:
    return scale.spec.size if isinstance(scale, Var) else 1


@slot("quantization.can_multiply")
def can_multiply(x: Quantized, w: Quantized, axis: int, terms: int) -> bool:
    """Whether x and a weight w with its outputs along `axis` are multiplied as whole numbers."""
    if {x.q.spec.dtype, w.q.spec.dtype} != {int8.numpy} or not w.symmetric or terms > MOST_TERMS:
        return False
    one_each = [1] * w.q.spec.ndim
    one_each[axis] = w.q.spec.shape[axis]
    shape = w.scale.spec.shape if isinstance(w.scale, Var) else ()
    by_column = shape == tuple(one_each[w.q.spec.ndim - len(shape) :])
    return size_of(x.scale) == size_of(x.zero) == 1 and (size_of(w.scale) == 1 or by_column)


POWER = 128
"""By what sums are divided: a power of two, by which a division is an exact multiplication."""


@slot("quantization.unit")
def unit(scale, w_scale, w_high: int):
    """The scale of a product's sums: what `high` of the left side times 1 of the weight is."""
    return w_scale * scale / w_high


@slot("quantization.zero_correction")
def zero_correction(zero, sums):
    """What the sums of a product have too much because `zero` stands for 0.0: an int32 for each
    sum Σw of weights.
    """
    return zero.astype("int32") * sums


def rescaled(x: Quantized, w: Quantized, multiply, ones, shape):
    """The floats for the sums of a product. `multiply(q)` gives the sums for whole numbers q on the
    left side, and with `ones`, whose shape is given, the sums of the weight itself. Scales of the
    outputs have the other shape.
    """
    total = multiply(x.q)
    if not x.symmetric:
        sums = multiply(full(shape=ones, value=1, dtype=int8.numpy))
        total = total - zero_correction(one_number(x.zero), sums)
    w_scale = reshape(w.scale, shape=shape) if size_of(w.scale) > 1 else one_number(w.scale)
    step = unit(one_number(x.scale), w_scale, w.high) * (POWER / x.high)
    return dequantize(total, step, 0.0, high=POWER)


def one_number(scale):
    return reshape(scale, shape=()) if isinstance(scale, Var) else scale


def quantized_matmul(x: Quantized, w: Quantized):
    """x @ w for a weight w [in, out]."""
    return rescaled(x, w, lambda q: matmul_integer(q, w.q), w.q.spec.shape[:1], (-1,))


def quantized_conv(x: Quantized, w: Quantized, **at):
    """The convolution of x [N, C, *size] with a weight w [O, C / groups, *kernel]. At the border
    fewer weights meet the image, so their sums depend on the place.
    """
    ones, shape = (1, *x.q.spec.shape[1:]), (1, -1, *(1,) * (x.q.spec.ndim - 2))
    return rescaled(x, w, lambda q: conv_integer(q, w.q, **at), ones, shape)
