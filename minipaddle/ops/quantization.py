"""Whole numbers of a few bits in the place of floats: quantize, dequantize, products of these.

    q = round(x · (high / scale)) + zero    clipped to [low, high]
    x ≈ (q - zero) · scale / high

`scale` is the magnitude that the largest whole number, `high`, stands for (127 with 8 bits), as in
Paddle. It is one number, or an array that broadcasts to x: one for each channel or group. `zero` is
the whole number that stands for 0.0, as a float, and 0 where the numbers are symmetric.

A product of whole numbers is exact as long as 32 bits hold its sums, so every executor computes the
same. The formulas around it keep that so: they round after each operation, and end in a division,
which no processor joins with an addition that follows. If the divisor is a power of two, the
division rounds nothing, and joining it changes nothing.
"""

from __future__ import annotations

from math import prod

from ..engine.core.dtype import int8, int16, int32
from ..engine.core.op import Op, elementwise, opaque
from ..engine.core.record import Spec
from ..engine.core.slots import slot
from ..engine.ops import conv as plain
from ..engine.ops.linalg import matmul
from .products import product


def width(bits: int) -> dict:
    """The attributes `low` and `high` of a number of bits.

    >>> from minipaddle.ops.quantization import width
    >>> width(4)
    {'low': -8, 'high': 7}
    """
    high = (1 << (bits - 1)) - 1
    return {"low": -high - 1, "high": high}


def choose_dtype(dtype, attrs):
    """The dtype for numbers in [low, high]."""
    return int8.numpy if -attrs["low"] <= 128 and attrs["high"] <= 127 else int16.numpy


@elementwise(result=choose_dtype)
def quantize(m, x, scale, zero, *, low, high):
    """x in whole numbers from `low` to `high`, `zero` for 0.0 and `high` for `scale` above it.

    Halves go to the even neighbour. What lies outside is clipped; NaN becomes `low`.
    """
    y = m.round(x * (high / scale)) + zero
    return m.minimum(m.where(y > low, y, low), high)


@elementwise(free=("q",))
def dequantize(m, q, scale, zero, *, high):
    """The floats that the whole numbers q represent, in the dtype of `scale`."""
    return (q.astype(scale.dtype) - zero) * scale / high


@elementwise
def fake_quantize(m, x, scale, zero, *, low, high):
    """The float nearest to x that a whole number represents; NaN stays NaN.

    It has the derivative of the identity, where x is clipped too: a straight-through estimator,
    as in Paddle. Source: Bengio et al. 2013, "Estimating or Propagating Gradients".
    """
    q = m.minimum(m.maximum(m.round(x * (high / scale)) + zero, low), high)
    return (q - zero) * scale / high


fake_quantize.vjp(x=lambda g, x_spec: g.sum_to(x_spec.shape))

# ---- products --------------------------------------------------------------------------------

MOST_TERMS = 1 << 16
"""Products of two int8 in a sum. An int32 holds twice as many: there is room for a bias."""


def whole_product(op: Op, terms) -> object:
    """Decorator: the operator `op` of two int8 arrays, whose result is int32. A sum in it has
    `terms(x, y, **attrs)` products.
    """

    def define(body) -> Op:
        own = opaque(body)

        @own.shape
        def _(x, y, **attrs):
            shape = op.infer(x, y, **attrs).shape
            require_whole(x, y, terms(x, y, **attrs))
            return Spec(shape, int32.numpy)

        own.letters, own.linear, own.by_rows = op.letters, op.linear, op.by_rows
        return own

    return define


def require_whole(x, y, terms: int) -> None:
    """Raise unless x and y are int8, and int32 holds a sum of `terms` of their products."""
    if (x.dtype, y.dtype) != (int8.numpy, int8.numpy):
        raise TypeError(f"a product of whole numbers takes int8 and int8, not {x.dtype}, {y.dtype}")
    if terms > MOST_TERMS:
        raise ValueError(f"sums of {terms} products do not fit int32 as {MOST_TERMS} do")


def exact(m, x, y, terms: int):
    """int8 arrays as floats that hold a sum of `terms` products exactly. NumPy multiplies matrices
    of floats many times faster.
    """
    require_whole(x, y, terms)
    wide = m.float32 if terms * 2**14 <= 2**24 else m.float64
    return x.astype(wide), y.astype(wide)


@slot("quantization.matmul")
def matmul_whole(m, x, y):
    """x @ y of int8 arrays, exact, in int32."""
    return matmul.body(m, *exact(m, x, y, x.shape[-1])).astype(m.int32)


@whole_product(matmul, lambda x, y: x.shape[-1])
def matmul_integer(m, x, y):
    """`matmul` of int8 arrays, exact, in int32."""
    return matmul_whole(m, x, y)


@whole_product(product, lambda x, y, *, x_perm, **perms: x.shape[x_perm[-1]])
def product_integer(m, x, y, *, x_perm, y_perm, out_perm):
    """`product` of int8 arrays, exact, in int32."""
    return matmul_whole(m, x.transpose(x_perm), y.transpose(y_perm)).transpose(out_perm)


@whole_product(plain.conv, lambda x, w, **at: prod(w.shape[1:]))
def conv_integer(m, x, w, *, stride, padding, dilation, groups):
    """`conv` of int8 arrays, exact, in int32."""
    at = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w = exact(m, x, w, prod(w.shape[1:]))
    return plain.conv.body(m, x, w, **at).astype(m.int32)
