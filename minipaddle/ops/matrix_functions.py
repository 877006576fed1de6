"""Functions of matrices (the last two axes) that are given by a power series."""

import math

from ..engine.core.op import opaque
from ..engine.ops.linalg import matrix_transpose as mT
from ..engine.ops.movement import concat
from .arrangement import pad
from .decompositions import block, require_square


@opaque
def matrix_exp(m, x):
    """1 + x + x²/2 + x³/6 + …, with matrix powers.

    Scaled down until its norm is below 1/2, a Padé approximation there, squared as often.
    Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
    """
    unit = m.eye(x.shape[-1], dtype=x.dtype)
    norm = float(m.max(m.sum(m.abs(x), axis=-2))) if x.size else 0.0
    halvings = max(0, math.frexp(norm)[1] + 1) if math.isfinite(norm) else 0
    a = x / 2.0**halvings
    power, even, odd, c = unit, unit, m.zeros_like(unit), 1.0
    for k in range(1, PADE + 1):
        c = c * (PADE - k + 1) / (k * (2 * PADE - k + 1))
        power = m.matmul(power, a)
        even, odd = (even, odd + c * power) if k % 2 else (even + c * power, odd)
    y = m.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        y = m.matmul(y, y)
    return y


PADE = 8
"""Degree of the approximation: below 1/2 its error is under 2^-53."""

matrix_exp.shape(require_square)


@matrix_exp.vjp
def _(g, x):
    """exp [[xᵀ, ḡ], [0, xᵀ]] has the cotangent in its upper right: Higham, "Functions of
    Matrices" (2008), theorem 3.6.
    """
    n, lead = x.spec.shape[-1], ((0, 0),) * (x.spec.ndim - 2)
    above = concat(mT(x), g, axis=x.spec.ndim - 1)
    below = pad(mT(x), widths=(*lead, (0, 0), (n, 0)), value=0)
    whole = matrix_exp(concat(above, below, axis=x.spec.ndim - 2))
    return block(whole, (0, n), (n, 2 * n))
