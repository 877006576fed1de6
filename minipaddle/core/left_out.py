"""Why names of Paddle are left out."""

import re
import tomllib
from fnmatch import translate
from functools import cache
from pathlib import Path

LEFT_OUT = tomllib.loads(Path(__file__).with_name("left_out.toml").read_text("utf-8"))
"""Why -> the names of Paddle that are left out for that reason."""


def reason(name: str) -> str | None:
    """Why Paddle's name, such as `paddle.fft.fft` or `Tensor.coalesce`, is left out; else None.

    >>> from minipaddle.core.left_out import reason
    >>> reason("paddle.inference.Config")
    'comes with a later part of MiniPaddle: inference'
    """
    heads = heads_of(name)
    return next((why for why, names in patterns() if any(map(names.match, heads))), None)


@cache
def patterns() -> list[tuple[str, re.Pattern]]:
    """(why, what matches the names) of each reason, in order."""
    alternatives = {why: map(translate, names.split()) for why, names in LEFT_OUT.items()}
    return [(why, re.compile("|".join(each))) for why, each in alternatives.items()]


def heads_of(name: str) -> list[str]:
    """`paddle.fft.fft`, `paddle.fft`, `fft.fft`, `fft` and so on: all that a pattern may name."""
    inner = name.removeprefix("paddle.")
    paths = name, inner, inner.removeprefix("Tensor.")
    return [path[:k] for path in paths for k, letter in enumerate(f"{path}.") if letter == "."]
