"""Documentation written once, of images, for sequences and volumes too."""

from __future__ import annotations

import re

SAID = {  # of images -> of sequences, of volumes
    "images": ("sequences", "volumes"),
    "NCHW": ("NCL", "NCDHW"),
    "NHWC": ("NLC", "NDHWC"),
    "KH, KW": ("K", "KD, KH, KW"),
    "H, W": ("L", "D, H, W"),
    "2D": ("1D", "3D"),
    "2d": ("1d", "3d"),
}


def for_axes(text: str, n: int) -> str:
    """A docstring about images, of `n` image axes: `[1, 3, 8, 8]` is `[1, 3, 8]` for n = 1."""
    if n == 2:
        return text
    text = re.sub("|".join(SAID), lambda found: SAID[found[0]][n // 2], text)
    return re.sub(r"\b(\d+), \1\]", lambda pair: ", ".join([pair[1]] * n) + "]", text)


def like(model):
    """Give `max_pool3d` the docstring of its `model`, max_pool2d, with the axes it has itself."""

    def described(function):
        n = int(re.search(r"\d", function.__name__)[0])
        function.__doc__ = for_axes(model.__doc__, n)
        return function

    return described
