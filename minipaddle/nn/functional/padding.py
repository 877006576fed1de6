"""Images and other arrays made larger by a border."""

from ...core.checks import require_one_of
from ...core.prelude import FLOATS, Dim, creation, elementwise, int64, movement, value_error
from ...engine.core.dim import has_unseen_hint, never, suppose
from ...engine.ops import gather as indexing
from ...ops import arrangement
from ...ops import resample as ops
from .windows import LAYOUTS, whole_numbers

__all__ = ["pad", "zeropad2d"]


def pad_pairs(x, pad, mode, data_format, pad_from_left_axis) -> dict:
    """{axis: (before, after)} as Paddle reads a list: see `pad`."""
    n = x.spec.ndim
    numbers_, axes = whole_numbers(pad), list(range(n))
    if len(numbers_) % 2:
        raise value_error(f"pad={numbers_}", "a pair (before, after) for each axis")
    pairs = list(zip(numbers_[::2], numbers_[1::2]))
    if mode == "constant" and len(pairs) == n:
        return dict(zip(axes if pad_from_left_axis else axes[::-1], pairs))
    formats = LAYOUTS.get(n - 2, ("NCL",))
    last = data_format is not None and data_format == LAYOUTS.get(n - 2, (None, None))[1]
    if data_format is not None and n > 2 and data_format not in formats:
        raise value_error(
            f"pad of {x.spec} was given data_format={data_format!r}", " or ".join(formats)
        )
    space = axes[1:-1] if last else axes[2:] if n > 2 else axes
    if mode == "constant" and len(space) < len(pairs) < n:
        return dict(zip(axes[::-1], pairs))
    if len(pairs) > len(space) or (mode != "constant" and len(pairs) != len(space)):
        raise value_error(
            f"pad={numbers_} with mode={mode!r} for {x.spec}",
            f"{2 * len(space)} numbers, last axis first"
            + (f", or {2 * n} for all axes" if mode == "constant" else ""),
        )
    return dict(zip(space[::-1], pairs))


def pad(x, pad, mode="constant", value=0.0, data_format=None, pad_from_left_axis=True, name=None):
    """x with more elements before and after along some axes; negative numbers cut off.

    `pad` holds (before, after) for the image axes, the last axis first: [left, right, top, bottom].
    In mode "constant" more pairs go on to the axes before, the last axis first; with a pair for
    every axis of x the order is first axis first (last first if `pad_from_left_axis` is False).
    `mode` is constant (`value`), reflect (the edge not repeated), replicate (the edge) or circular.

    >>> x = paddle.to_tensor([[[1.0, 2.0, 3.0]]])
    >>> paddle.nn.functional.pad(x, [1, 2]).tolist()
    [[[0.0, 1.0, 2.0, 3.0, 0.0, 0.0]]]
    >>> paddle.nn.functional.pad(x, [1, 1], mode="reflect").tolist()
    [[[2.0, 1.0, 2.0, 3.0, 2.0]]]
    """
    require_one_of("pad", ("constant", "reflect", "replicate", "circular"), mode=mode)
    pairs = pad_pairs(x, pad, mode, data_format, pad_from_left_axis)
    if mode == "constant":
        return add_border(x, [pairs.get(d, (0, 0)) for d in range(x.spec.ndim)], value)
    for axis, (before, after) in pairs.items():
        if not (never_any(before) and never_any(after)):
            n = x.spec.shape[axis]
            if any(isinstance(size, Dim) for size in (n, before, after)):
                x = indexing.take(x, open_border(mode, n, before, after), axis=axis)
            else:
                x = ops.remap(x, axis=axis, index=border_index(mode, n, before, after))
    return x


def never_any(n) -> bool:
    """Whether a number of elements is 0, for every size that only a run knows."""
    return not isinstance(n, Dim) and n == 0


def add_border(x, pairs, value):
    """x with (before, after) elements of `value` on each axis; negative numbers cut off."""
    for p in {p for pair in pairs for p in pair if not never_any(p)}:
        if has_unseen_hint(p) and not never(p, ">", 0):
            suppose(p, ">=", 0)  # what is to be filled up: `longest - n`
    if any(p < 0 for pair in pairs for p in pair):
        shape = x.spec.shape
        cut = tuple((max(-a, 0), n - max(-b, 0), 1) for n, (a, b) in zip(shape, pairs))
        x = movement.slice_(x, index=cut)
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if all(never_any(p) for pair in pairs for p in pair):
        return x
    value = value if x.spec.dtype in FLOATS else int(value)
    return arrangement.pad(x, widths=tuple(pairs), value=value)


def border_index(mode: str, n: int, before: int, after: int) -> tuple:
    """For each element of the padded axis its source in an axis of n."""
    places = range(-before, n + after)
    if n < 1 or (mode == "reflect" and max(before, after) >= n):
        raise value_error(
            f"pad of {before} and {after} with mode={mode!r} on an axis of {n}",
            "less than the size of the axis" if n else "an axis that is not empty",
        )
    if mode == "circular":
        return tuple(p % n for p in places)
    if mode == "replicate":
        return tuple(min(max(p, 0), n - 1) for p in places)
    return tuple(n - 1 - abs(n - 1 - abs(p)) for p in places)


def open_border(mode: str, n: Dim, before: int, after: int):
    """`border_index` for a size that only the program knows."""
    p = creation.arange(size=before + n + after, start=-before, dtype=int64.numpy)
    if mode == "circular":
        return p % n
    if mode == "replicate":
        return elementwise.minimum(elementwise.maximum(p, 0), n - 1)
    return n - 1 - abs(n - 1 - abs(p))


def zeropad2d(x, padding, data_format="NCHW", name=None):
    """x with zeros around its image: [left, right, top, bottom].

    >>> paddle.nn.functional.zeropad2d(paddle.ones([1, 1, 2, 2]), [1, 0, 0, 0]).shape
    [1, 1, 2, 3]
    """
    return pad(x, padding, data_format=data_format)
