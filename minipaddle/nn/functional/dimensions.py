"""What is written once, of images, for sequences and volumes too."""

from __future__ import annotations

import re
from inspect import signature
from types import FunctionType

from .windows import LAYOUTS

WORDS = {  # of images -> of sequences, of volumes
    "images": ("sequences", "volumes"),
    "NCHW": ("NCL", "NCDHW"),
    "NHWC": ("NLC", "NDHWC"),
    "KH, KW": ("K", "KD, KH, KW"),
    "H, W": ("L", "D, H, W"),
    "2D": ("1D", "3D"),
    "2d": ("1d", "3d"),
}
FORMATS = {n: first for n, (first, _) in LAYOUTS.items()}


def for_axes(text: str, n: int) -> str:
    """A docstring about images, of `n` image axes: `[1, 3, 8, 8]` is `[1, 3, 8]` for n = 1."""
    if n == 2:
        return text
    text = re.sub("|".join(WORDS), lambda found: WORDS[found[0]][n // 2], text)
    return re.sub(r"\b(\d+), \1\]", lambda pair: ", ".join([pair[1]] * n) + "]", text)


def hide_n(function):
    """Decorator: `n`, the number of image axes, is no argument for users."""
    own = signature(function)
    shown = [p for name, p in own.parameters.items() if name != "n"]
    function.__signature__ = own.replace(parameters=shown)
    return function


def of_axes(function, n: int, model=None):
    """`function` for n image axes: max_pool3d is max_pool2d with another n and data format.

    It is the same code under another name; its docstring is that of `model`, or the function's.
    """
    code, defaults = function.__code__, function.__defaults__
    name = re.sub(r"\d", str(n), function.__name__)
    defaults = tuple(FORMATS[n] if d in FORMATS.values() else d for d in defaults)
    other = FunctionType(
        code.replace(co_name=name, co_qualname=name), function.__globals__, name, defaults
    )
    other.__kwdefaults__ = {"n": n}
    other.__doc__ = for_axes((model or function).__doc__, n)
    return hide_n(other)
