"""Sizes, paddings and data formats as Paddle's convolution and pooling accept them."""

import re
from inspect import signature
from types import FunctionType

from ...core.prelude import Dim, current, movement, require_floats, value_error, whole

LAYOUTS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
"""Number of image axes -> (channels first, channels last)."""


def numbers(what: str, value, n: int, least: int = 1) -> tuple:
    """`value` for each of `n` axes: a whole number for all of them, or a list of `n`."""
    many = tuple(map(int, value)) if isinstance(value, list | tuple) else (int(value),) * n
    if len(many) == 1:
        many *= n
    if len(many) != n or min(many) < least:
        raise value_error(
            f"{what}={value!r} for {n} image axes",
            f"a whole number of at least {least}, or a list of {n}",
        )
    return many


def whole_numbers(values) -> list[int]:
    """Python numbers from a list, which may hold tensors, or from a tensor."""
    if hasattr(values, "spec"):
        values = current.top.sizes(values)
    many = values if isinstance(values, list | tuple) else [values]
    many = [whole(v) if hasattr(v, "spec") else v for v in many]
    return [v if isinstance(v, Dim) else int(v) for v in many]


def paddings(padding, n: int, *, size, kernel, stride, channel_last: bool = False) -> tuple:
    """(before, after) for each image axis, from any form Paddle takes.

    A number; a number for each axis; before and after for each axis in one list; pairs for all
    axes with batch and channel; "VALID" (none) or "SAME" (as many positions as strides fit in).
    """
    if isinstance(padding, str):
        return resolve_padding(padding, size, kernel, stride)
    if isinstance(padding, list | tuple):
        if padding and isinstance(padding[0], list | tuple):
            pairs = [tuple(map(int, p)) for p in padding]
            fixed = pairs.pop(0), pairs.pop(-1 if channel_last else 0)
            known = len(pairs) == n and set(fixed) == {(0, 0)} and min(map(min, pairs)) >= 0
        else:
            flat = tuple(map(int, padding))
            flat = flat * n if len(flat) == 1 else flat
            flat = [p for p in flat for _ in range(2)] if len(flat) == n else flat
            pairs = list(zip(flat[::2], flat[1::2]))
            known = len(flat) == 2 * n and min(flat) >= 0
        if not known:
            raise value_error(
                f"padding={padding!r} for {n} image axes",
                f"a number, {n} numbers, {2 * n} numbers (before and after for each "
                f"axis), or {n + 2} pairs with zeros for batch and channel; none negative",
            )
        return tuple(pairs)
    (number,) = set(numbers("padding", padding, n, least=0))
    return ((number, number),) * n


def resolve_padding(padding: str, size, kernel, stride) -> tuple:
    """ "VALID" and "SAME"; "SAME" adds an odd pixel at the end."""
    if padding.upper() == "VALID":
        return ((0, 0),) * len(size)
    if padding.upper() != "SAME":
        raise value_error(f"padding={padding!r}", '"SAME", "VALID" or numbers')
    total = [max((-(-m // s) - 1) * s + k - m, 0) for m, k, s in zip(size, kernel, stride)]
    return tuple((t // 2, t - t // 2) for t in total)


def channels_last(data_format: str, n: int) -> bool:
    """Does this data format have the channels at the end?"""
    if data_format not in LAYOUTS[n]:
        raise value_error(f"data_format={data_format!r}", " or ".join(LAYOUTS[n]))
    return data_format == LAYOUTS[n][1]


def to_first(x):
    """Channels from the end to place 1."""
    n = x.spec.ndim
    return movement.transpose(x, perm=(0, n - 1, *range(1, n - 1)))


def to_last(x):
    """Channels from place 1 to the end."""
    n = x.spec.ndim
    return movement.transpose(x, perm=(0, *range(2, n), 1))


def image(name: str, x, n: int):
    """The size of the image in x, which must have `n` image axes and a floating dtype."""
    require_floats(name, x)
    return size_of_image(name, x, n)


def size_of_image(name: str, x, n: int):
    """The size of the image in x, which must have `n` image axes."""
    if x.spec.ndim != n + 2:
        raise value_error(
            f"{name} was given x of {x.spec}",
            f"{n + 2} dimensions: batch, channels and {n} image axes",
            hint="x.unsqueeze(0) adds a batch of one" if x.spec.ndim == n + 1 else "",
        )
    return x.spec.shape[2:]


# ---- functions of images, turned into functions of sequences and of volumes ------------------

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
    """Decorator: hide `n`, the number of image axes, from the signature."""
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
