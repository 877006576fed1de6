"""Pooling with the channels last, for C and CUDA: what happens at each pixel of a window.

In C a window is worked on by vectors of channels (V), and adds to the image what its pixels get; in
CUDA a thread has one channel, and a pixel asks all windows that it is in what it gets.
"""

from __future__ import annotations

from ..engine.codegen.scalar import CannotWrite
from ..engine.core import dtype as dt
from .target import Target, insert, kernel


def three(sizes, one) -> tuple:
    """Sizes of one, two or three axes, as of three."""
    return (*(one,) * (3 - len(sizes)), *sizes)


def per_axis(letter: str, sizes) -> dict:
    """Words of a template: letter + D, H, W."""
    return {f"{letter}{axis}": n for axis, n in zip("DHW", sizes)}


TAP = """\
for (int t = 0; t < KD * KH * KW; t++) {
    const int64_t d = first_d + t / (KH * KW), h = first_h + t / KW % KH, w = first_w + t % KW;
    if (d < 0 || d >= ID || h < 0 || h >= IH || w < 0 || w >= IW) {
        OUTSIDE
        continue;
    }
    const int64_t at = (((n * ID + d) * IH + h) * IW + w) * CHANNELS + c;
    INSIDE
}
"""
"""Every pixel of the window that begins at first_d, first_h, first_w; `at` is where it lies."""


class Windows:
    """The windows of a pooling of an image, a spec. A definition is a function of them: its text is
    for window `to`, and its pixels `at`.
    """

    def __init__(self, target: Target, image):
        if image.ndim > 5 or target.out.dtype not in dt.FLOATS:
            raise CannotWrite(f"{target.record.op.name} of {image}")
        self.target, self.attrs = target, target.attrs
        windows = three(self.attrs["windows"], (1, 1, 0, 1))
        self.words = per_axis("I", three(image.shape[1:-1], 1))
        for letter, sizes in zip("KSPO", zip(*windows)):
            self.words |= per_axis(letter, sizes)
        self.words["CHANNELS"] = image.shape[-1]

    def load(self, k: int, at: str) -> str:
        """An element of input k, or a vector of them."""

    def store(self, value: str) -> str:
        """A statement: the result of window `to`."""

    def add(self, value: str) -> str:
        """A statement: one more term of the pixel at `at`."""

    def larger(self, x: str, y: str) -> str:
        """The larger value; NaN if either is."""

    def add_all(self, value: str) -> str:
        """A statement: one more term of every pixel of window `to`."""

    def where(self, here: str, x: str) -> str:
        """x, or 0 where `here` is false."""

    found = ""
    """A statement that ends a loop when there is nothing to look for."""

    def each(self, define, before: str = "") -> None:
        """For each window the text of a definition; `before` is the same for all channels."""

    def spread(self, define, before: str = "") -> None:
        """The same where pixels add up what windows give them."""

    def taps(self, inside: str, outside: str = "") -> str:
        """A loop over the pixels of the window, and over the places beyond the image."""
        return insert(TAP, OUTSIDE=outside, INSIDE=inside)

    def find_maximum(self, x: int, y: int, inside: str) -> str:
        """A loop over the pixels of the window, where `here` is true if the maximum stands there:
        the first of equal ones. Outside the image there is -inf.
        """
        here = f"const MASK here = free & ({self.load(x, 'at')} == y);\n"
        loop = self.taps(f"{here}free ^= here;\n{inside}{self.found}", "free &= y > -(T)INFINITY;")
        return f"const V y = {self.load(y, 'to')};\nMASK free = y == y;\n{loop}"

    def share(self) -> str:
        """Statements: `share`, 1 / how many pixels a window counts."""
        attrs = self.attrs
        if attrs["divisor"]:
            return f"const T share = 1 / (T){attrs['divisor']};\n"
        text, sizes = "", []
        for axis in "DHW"[3 - len(attrs["windows"]) :]:
            a, first = axis.lower(), f"first_{axis.lower()}"
            end = f"I{axis}" if attrs["exclusive"] else f"(I{axis} + P{axis})"
            begin = f"({first} > 0 ? {first} : 0)" if attrs["exclusive"] else first
            stop = f"({first} + K{axis} < {end} ? {first} + K{axis} : {end})"
            text += f"const int64_t pixels_{a} = {stop} - {begin};\n"
            sizes.append(f"(T)(pixels_{a} > 1 ? pixels_{a} : 1)")
        return text + f"const T share = 1 / ({' * '.join(sizes)});\n"


@kernel("max_pool_last")
def max_pool(k: Target) -> None:
    """The largest pixel; NaN is larger than all."""

    def largest(w: Windows) -> str:
        met = f"best = {w.larger('best', w.load(0, 'at'))};\n"
        return f"V best = NONE - (T)INFINITY;\n{w.taps(met)}{w.store('best')}"

    k.windows(k.specs[0]).each(largest)


@kernel("max_pool_last_grad")
def max_pool_grad(k: Target) -> None:
    """The gradient goes to the pixel that was the largest."""

    def given(w: Windows) -> str:
        add = w.add(w.where("here", "g"))
        return f"const V g = {w.load(0, 'to')};\n{w.find_maximum(1, 2, add)}"

    k.windows(k.out).spread(given)


@kernel("max_pool_last_take")
def max_pool_take(k: Target) -> None:
    """What stands in another image where the largest pixel is."""

    def taken(w: Windows) -> str:
        met = f"total += {w.where('here', w.load(0, 'at'))};\n"
        return f"V total = NONE;\n{w.find_maximum(1, 2, met)}{w.store('total')}"

    k.windows(k.specs[1]).each(taken)


@kernel("avg_pool_last")
def avg_pool(k: Target) -> None:
    """The mean of the pixels."""

    def mean(w: Windows) -> str:
        met = f"total += {w.load(0, 'at')};\n"
        return f"V total = NONE;\n{w.taps(met)}{w.store('total * share')}"

    windows = k.windows(k.specs[0])
    windows.each(mean, windows.share())


@kernel("avg_pool_last_grad")
def avg_pool_grad(k: Target) -> None:
    """Every pixel gets its share of the gradient."""
    windows = k.windows(k.out)
    windows.spread(
        lambda w: f"const V g = {w.load(0, 'to')} * share;\n{w.add_all('g')}", windows.share()
    )
