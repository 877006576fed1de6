"""Functions of NumPy in formulas, beyond those that the book's operators call.

Each takes the module `C` and expressions as arguments, and returns an expression.
"""

from __future__ import annotations

import math

import numpy as np

from ...engine.codegen.scalar import FUNCTIONS, SUFFIX, ScalarText, cast, same


def round_(m, x, decimals=0) -> ScalarText:
    """Round to even."""
    tens = float(f"1e{abs(decimals)}")
    if x.dtype.kind != "f" and decimals >= 0:
        return x
    if decimals:
        return round_(m, x * tens) / tens if decimals > 0 else round_(m, x / tens) * tens
    return ScalarText(f"rint{SUFFIX[x.dtype]}({{}})", [x], x.dtype)


def sinc(m, x) -> ScalarText:
    """sin(πx) / πx, and 1 at 0."""
    x = x * math.pi
    return m.where(x == 0, 1, m.sin(x) / x)


def frexp(m, x) -> tuple[ScalarText, ScalarText]:
    """The fraction and the exponent of a float."""
    return m.helper("fraction", x), m.helper("exponent", x, dtype=np.int32)


def nan_to_num(m, x, nan=0.0, posinf=None, neginf=None) -> ScalarText:
    """Replace NaN and infinities by numbers."""
    if x.dtype.kind != "f":
        return x
    largest = float(np.finfo(x.dtype).max)
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    x = m.where(x != x, nan, x)
    return m.where(x == math.inf, high, m.where(x == -math.inf, low, x))


def signbit(m, x) -> ScalarText:
    """Whether the sign is negative, as that of -0.0."""
    return ScalarText("(signbit({}) != 0)", [x], np.bool_) if x.dtype.kind == "f" else x < 0


def compute_in_double(name: str):
    """A function of `special`, which computes in double, as SciPy does."""

    def call(m, *args) -> ScalarText:
        args = same(*args)
        return m.helper(name, *(x.astype(np.float64) for x in args)).astype(args[0].dtype)

    return call


FUNCTIONS.update(
    round=round_,
    sinc=sinc,
    frexp=frexp,
    nan_to_num=nan_to_num,
    signbit=signbit,
    isnan=lambda m, x: x != x,
    isfinite=lambda m, x: (x - x) == 0,
    isinf=lambda m, x: (x == x) & ((x - x) != 0),
    square=lambda m, x: x * x,
    reciprocal=lambda m, x: 1 / x,
    logical_and=lambda m, x, y: cast(x, np.bool_) & cast(y, np.bool_),
    logical_xor=lambda m, x, y: cast(x, np.bool_) ^ cast(y, np.bool_),
)
