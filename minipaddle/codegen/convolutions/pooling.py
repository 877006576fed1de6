"""Pooling with the channels last, for C and CUDA: the work at each pixel of a window.

In C a window is computed by vectors of channels (V), and gradients are added to the image window by
window. In CUDA a thread has one channel of one pixel, and adds the gradients of all its windows.
"""

from __future__ import annotations

from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import CannotWrite
from ...engine.core import dtype as dt
from ..target import KernelTarget, insert, kernel


def three(sizes, one) -> tuple:
    """The sizes of one, two or three axes, extended to three."""
    return (*(one,) * (3 - len(sizes)), *sizes)


def per_axis(letter: str, sizes) -> dict:
    """Words of a template: letter + D, H, W."""
    return {f"{letter}{axis}": n for axis, n in zip("DHW", sizes)}


TAP = read_template("taps.c", __file__)
"""A loop over the pixels of the window that begins at first_d, first_h, first_w; `at` is their
index.
"""


CHECK = """if (d < 0 || d >= ID || h < 0 || h >= IH || w < 0 || w >= IW) {
    OUTSIDE
    continue;
}"""


class PoolingWindows:
    """The windows of the pooling of an image (a spec). A definition is a function of this object,
    and gives the text for window `to` and its pixels `at`. The windows may all be `inside` the
    image, `apart` (no pixel is in two), and `cover` it (each pixel is in one).
    """

    def __init__(self, target: KernelTarget, image):
        if image.ndim > 5 or target.out.dtype not in dt.FLOATS:
            raise CannotWrite(f"{target.record.op.name} of {image}")
        self.target, self.attrs = target, target.attrs
        axes = [*zip(image.shape[1:-1], self.attrs["windows"])]
        self.inside = all(p == 0 and (o - 1) * s + k <= n for n, (k, s, p, o) in axes)
        self.apart = all(k <= s for _, (k, s, _, _) in axes)
        self.cover = self.inside and all(k == s and o * s == n for n, (k, s, _, o) in axes)
        windows = three(self.attrs["windows"], (1, 1, 0, 1))
        self.words = per_axis("I", three(image.shape[1:-1], 1))
        for letter, sizes in zip("KSPO", zip(*windows)):
            self.words |= per_axis(letter, sizes)
        self.words |= {"CHANNELS": image.shape[-1], "FOR": "for"}

    def load(self, k: int, at: str) -> str:
        """An element of input k, or a vector of them."""

    def store(self, value: str) -> str:
        """A statement that stores the result of window `to`."""

    def add(self, value: str) -> str:
        """A statement that adds a term to the pixel at `at`."""

    def larger(self, x: str, y: str) -> str:
        """The larger value; NaN if either is NaN."""

    def add_all(self, value: str) -> str:
        """A statement that adds a term to each pixel of window `to`."""

    def where(self, here: str, x: str) -> str:
        """x, or 0 if `here` is false."""

    stop = ""
    """A statement that ends the loop after the maximum was found."""

    def each(self, define, before: str = "") -> None:
        """The text of a definition for each window, after `before`, which is the same for all
        channels.
        """

    def spread(self, define, before: str = "") -> None:
        """The same for a definition that adds to pixels."""

    def taps(self, inside: str, outside: str = "") -> str:
        """A loop over the pixels of the window, and over its positions outside the image."""
        check = "" if self.inside else insert(CHECK, OUTSIDE=outside)
        return insert(TAP, CHECK=check, INSIDE=inside)

    def find_maximum(self, x: int, y: int, inside: str) -> str:
        """A loop over the pixels of the window; `here` is true at the maximum, or at the first of
        equal ones. Outside the image the value is -inf.
        """
        here = f"const MASK here = free & ({self.load(x, 'at')} == y);\n"
        loop = self.taps(f"{here}free ^= here;\n{inside}{self.stop}", "free &= y > -(T)INFINITY;")
        return f"const V y = {self.load(y, 'to')};\nMASK free = y == y;\n{loop}"

    def share(self) -> str:
        """Statements that compute `share`, 1 / the number of pixels of a window."""
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
def max_pool(k: KernelTarget) -> None:
    """The largest pixel; NaN is larger than all."""

    def largest(w: PoolingWindows) -> str:
        step = f"best = {w.larger('best', w.load(0, 'at'))};\n"
        return f"V best = NONE - (T)INFINITY;\n{w.taps(step)}{w.store('best')}"

    k.windows(k.specs[0]).each(largest)


@kernel("max_pool_last_grad")
def max_pool_grad(k: KernelTarget) -> None:
    """The pixel that was the largest gets the gradient."""

    def to_largest(w: PoolingWindows) -> str:
        add = w.add(w.where("here", "g"))
        return f"const V g = {w.load(0, 'to')};\n{w.find_maximum(1, 2, add)}"

    k.windows(k.out).spread(to_largest)


@kernel("max_pool_last_take")
def max_pool_take(k: KernelTarget) -> None:
    """The value of another image at the largest pixel."""

    def take(w: PoolingWindows) -> str:
        step = f"total += {w.where('here', w.load(0, 'at'))};\n"
        return f"V total = NONE;\n{w.find_maximum(1, 2, step)}{w.store('total')}"

    k.windows(k.specs[1]).each(take)


@kernel("avg_pool_last")
def avg_pool(k: KernelTarget) -> None:
    """The mean of the pixels."""

    def mean(w: PoolingWindows) -> str:
        step = f"total += {w.load(0, 'at')};\n"
        return f"V total = NONE;\n{w.taps(step)}{w.store('total * share')}"

    windows = k.windows(k.specs[0])
    windows.each(mean, windows.share())


@kernel("avg_pool_last_grad")
def avg_pool_grad(k: KernelTarget) -> None:
    """Every pixel gets its share of the gradient."""
    windows = k.windows(k.out)
    windows.spread(
        lambda w: f"const V g = {w.load(0, 'to')} * share;\n{w.add_all('g')}", windows.share()
    )
