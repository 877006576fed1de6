"""Functions of the array module `NUMPY` that take a fraction of NumPy's or SciPy's time.

NumPy's `where` branches at every element, its `maximum` of an array and a number has no vector
loop, its `logaddexp` calls the C library for each element, its `prod` waits for the element before,
and SciPy's `erf` computes in float64. Here they are arithmetic on blocks, which stay in the cache.
`where`, `maximum` and `minimum` return the same values. The others round otherwise: the size and
the dtype of an array decide, never how often they were called. Eager mode and the interpreter share
them, as they share `NUMPY`.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy import add, divide, maximum, minimum, multiply, ndarray, subtract

from ..engine.core.dtype import float32, float64
from ..engine.eager.device import NUMPY

BLOCK = 1 << 14
"""Elements of a block."""

LARGE = 1 << 12
"""Fewest elements for which they are worth several calls of NumPy."""

INTEGERS = {float32.numpy: np.dtype("i4"), float64.numpy: np.dtype("i8")}
"""The whole numbers that hold the bits of a float."""

NUMBERS = (float, int, bool)

np.empty(31 << 20, "i1")
"""The C library of Linux gives large arrays back to the system one by one, which clears new ones
page by page, until one as large as this was freed; from then on it keeps some memory for the next.
"""


def compute_in_blocks(compute, dtype, *arrays) -> ndarray:
    """The result of `compute(out, *blocks)`; arrays are contiguous and of one shape, or numbers."""
    shape = arrays[0].shape
    y = np.empty(shape, dtype)
    out, *flat = (a.reshape(-1) if a.ndim else a for a in (y.reshape(-1), *arrays))
    for k in range(0, y.size, BLOCK):
        s = slice(k, k + BLOCK)
        compute(out[s], *(a[s] if a.ndim else a for a in flat))
    return y


# ---- the same values -----------------------------------------------------------------------------


def where(condition, *choices):
    """x where the condition holds, else y: the bits y ^ ((x ^ y) & mask). Without x and y the
    places where it holds.
    """
    large = len(choices) == 2 and type(condition) is ndarray and condition.size >= LARGE
    if not (large and condition.dtype == bool and condition.ndim and condition.flags.c_contiguous):
        return np.where(condition, *choices)
    x, y = choices
    dtype = next((a.dtype for a in (x, y) if type(a) is ndarray), None)
    if dtype not in INTEGERS or not all(is_alike(a, dtype, condition.shape) for a in (x, y)):
        return np.where(condition, x, y)
    whole = INTEGERS[dtype]
    x, y = ((a if type(a) is ndarray else np.array(a, dtype)).view(whole) for a in (x, y))

    def select(out, c, x, y):
        np.negative(c, out=out, dtype=whole)
        out &= x ^ y
        out ^= y

    return compute_in_blocks(select, whole, condition.view("i1"), x, y).view(dtype)


def is_alike(a, dtype, shape) -> bool:
    """Whether an argument is a number, or a contiguous array of this shape and dtype."""
    if type(a) is not ndarray:
        return type(a) in NUMBERS
    return a.shape == shape and a.dtype == dtype and a.flags.c_contiguous


def with_a_row(function):
    """A function of two arrays, where a number is a row that is as long as the last axis."""

    def compute(x, y, *out, **options):
        if type(y) is not ndarray:
            if type(x) is ndarray and x.size >= LARGE:
                y = spread(y, x)
        elif type(x) is not ndarray and y.size >= LARGE:
            x = spread(x, y)
        return function(x, y, *out, **options)

    compute.at, compute.reduce, compute.accumulate = (
        getattr(function, name) for name in ("at", "reduce", "accumulate")
    )
    return compute


def spread(a, like):
    """A number as a row of the large array `like`; else `a` itself."""
    if type(a) not in NUMBERS or like.dtype not in INTEGERS or like.shape[-1] < 64:
        return a
    return np.full(like.shape[-1], a, like.dtype)


# ---- other roundings -----------------------------------------------------------------------------

ONES = np.ones(BLOCK, "f4")
FLAT, MINUS_ONES = 16.81 * ONES, -ONES  # erf x is ±1 where x² > 16.81
ABOVE, BELOW = (
    [np.array(c, "f4") for c in row]  # NumPy takes an array without axes in half of the time
    for row in (
        (2.04196739e-6, 2.84808277e-4, 3.77960691e-3, 5.27902778e-2, 0.190783817, 1.12837915),
        (3.80040224e-5, 1.16521164e-3, 1.49974329e-2, 0.114257511, 0.502410475, 1.0),
    )
)
ONE = np.array(1, "f4")


def erf(x):
    """The error function, x · p(x²) / q(x²) within 7 ulp for float32, as in compiled code."""
    if not is_large(x):
        return NUMPY.special.erf(x)
    return compute_in_blocks(compute_erf, x.dtype, np.ascontiguousarray(x))


def is_large(x) -> bool:
    """Whether x is a large array of float32."""
    return type(x) is ndarray and x.size >= LARGE and x.dtype == float32.numpy


def compute_erf(out, x):
    n = len(x)
    t = multiply(x, x)
    minimum(t, FLAT[:n], out=t)
    q = evaluate(BELOW, t)
    multiply(evaluate(ABOVE, t), x, out)
    divide(out, q, out)
    minimum(out, ONES[:n], out=out)
    maximum(out, MINUS_ONES[:n], out=out)


def evaluate(coefficients, t):
    """A polynomial by Horner's rule, the highest power first."""
    first, second, *rest = coefficients
    y = multiply(t, first)
    add(y, second, y)
    for each in rest:
        multiply(y, t, y)
        add(y, each, y)
    return y


def logaddexp(x, y):
    """log(eˣ + eʸ) of a float32 array and a number: the greater one + log(1 + e^-|x - y|)."""
    if not is_large(x) or type(y) not in NUMBERS or not isfinite(y):
        return np.logaddexp(x, y)
    greater = np.full(min(BLOCK, x.size), y, x.dtype)

    def compute(out, x):
        e = np.abs(x - y if y else x)
        np.negative(e, e)
        np.exp(e, e)
        u = add(e, ONE)
        subtract(e, subtract(u, ONE), e)  # what the sum has lost
        divide(e, u, e)
        np.log(u, u)
        add(u, e, u)
        maximum(x, greater[: len(x)], out=out)
        add(out, u, out)

    return compute_in_blocks(compute, x.dtype, np.ascontiguousarray(x))


def prod(x, axis=None, **options):
    """The product over `axis`; over all of a large array first of its elements 512 apart."""
    whole = axis is None or (type(axis) is tuple and len(axis) == x.ndim)
    if whole and is_large(x) and x.size % 512 == 0 and x.flags.c_contiguous:
        rows = multiply.reduce(x.reshape(-1, 512), 0)
        x = rows.reshape(*(1,) * (x.ndim - 1), 512)
    return np.prod(x, axis, **options)


NUMPY.prod = prod
NUMPY.where, NUMPY.erf, NUMPY.logaddexp = where, erf, logaddexp
NUMPY.maximum, NUMPY.minimum = with_a_row(maximum), with_a_row(minimum)
