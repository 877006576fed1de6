"""Numbers as C writes them."""

from __future__ import annotations

import math

import numpy as np


def number(value, dtype) -> str:
    """A number of any dtype."""
    if dtype.kind == "f":
        return real(float(value), dtype)
    if dtype == np.bool_:
        return "true" if value else "false"
    return whole(int(dtype.type(value)), dtype)


def whole(value: int, dtype) -> str:
    """An integer."""
    if dtype == np.uint64:
        return f"{value}ULL"
    if value == -(2**63):
        return "INT64_MIN"
    wide = "LL" if abs(value) >= 2**31 else ""
    return f"({value}{wide})" if value < 0 else f"{value}{wide}"


def real(value: float, dtype) -> str:
    """A float, exactly. It becomes infinite if it is too large for its dtype."""
    suffix = "" if dtype == np.float64 else "f"
    with np.errstate(over="ignore"):
        value = np.float32(value) if suffix else np.float64(value)
    if math.isnan(value):
        return "NAN" if suffix else "(double)NAN"
    if math.isinf(value):
        text = "INFINITY" if suffix else "(double)INFINITY"
        return text if value > 0 else f"(-{text})"
    text = str(value)
    text = text if any(c in text for c in ".en") else f"{text}.0"
    return f"({text}{suffix})" if text[0] == "-" else f"{text}{suffix}"
