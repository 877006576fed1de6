"""What convolution and pooling share: how Paddle's sizes, paddings and data formats are read."""

from __future__ import annotations

from ...engine.core.dim import Dim
from ...engine.core.dispatch import current
from ...engine.core.dtype import FLOATS
from ...engine.core.errors import type_error, value_error
from ...engine.ops import movement
from ...engine.ops.axes import whole

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
            expected=f"a whole number of at least {least}, or a list of {n}",
        )
    return many


def whole_numbers(values) -> list[int]:
    """Python numbers from a list, which may hold tensors, or from a tensor."""
    if hasattr(values, "spec"):
        values = current.top.sizes(values)
    many = values if isinstance(values, list | tuple) else [values]
    return [v if isinstance(v, Dim) else int(whole(v) if hasattr(v, "spec") else v) for v in many]


def paddings(padding, n: int, *, size, kernel, stride, channel_last: bool = False) -> tuple:
    """(before, after) for each image axis, from any form Paddle takes.

    A number; a number for each axis; before and after for each axis in one list; pairs for all
    axes with batch and channel; "VALID" (none) or "SAME" (as many positions as strides fit in).
    """
    if isinstance(padding, str):
        return named_padding(padding, size, kernel, stride)
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
                expected=f"a number, {n} numbers, {2 * n} numbers (before and after for each "
                f"axis), or {n + 2} pairs with zeros for batch and channel; none negative",
            )
        return tuple(pairs)
    (number,) = set(numbers("padding", padding, n, least=0))
    return ((number, number),) * n


def named_padding(padding: str, size, kernel, stride) -> tuple:
    """ "VALID" and "SAME"; an odd pixel of "SAME" goes after."""
    if padding.upper() == "VALID":
        return ((0, 0),) * len(size)
    if padding.upper() != "SAME":
        raise value_error(f"padding={padding!r}", expected='"SAME", "VALID" or numbers')
    total = [max((-(-m // s) - 1) * s + k - m, 0) for m, k, s in zip(size, kernel, stride)]
    return tuple((t // 2, t - t // 2) for t in total)


def is_same(padding) -> bool:
    return isinstance(padding, str) and padding.upper() == "SAME"


def channels_last(data_format: str, n: int) -> bool:
    """Does this data format have the channels at the end?"""
    if data_format not in LAYOUTS[n]:
        raise value_error(f"data_format={data_format!r}", expected=" or ".join(LAYOUTS[n]))
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
    if x.spec.dtype not in FLOATS:
        raise type_error(f"{name} was given {x.spec}", expected="a floating dtype")
    if x.spec.ndim != n + 2:
        raise value_error(
            f"{name} was given x of {x.spec}",
            expected=f"{n + 2} dimensions: batch, channels and {n} image axes",
            hint="x.unsqueeze(0) adds a batch of one" if x.spec.ndim == n + 1 else "",
        )
    return x.spec.shape[2:]
