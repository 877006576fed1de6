"""How a convolution sweeps over an image along each axis: which pixels a position reads.

For each tap, position j of an axis reads the pixel j · step + offset of the tap. A convolution is
one sweep. Its adjoint in the image is one sweep for each phase of the stride: pixel φ + j · stride
gets terms only from the taps that can reach it. The offsets of the taps of a sweep have equal gaps.
This file knows positions along one axis; it knows no channels, no memory and no C.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple


class SweepAxis(NamedTuple):
    """One axis of a sweep."""

    count: int  # positions
    step: int  # pixels from one position's window to the next
    taps: tuple[int, ...]  # positions in the kernel, by growing offset
    first: int  # offset of the first tap at position 0
    gap: int  # pixels between taps
    start: int  # the position in the result of position 0
    stride: int  # and the distance to the next

    @property
    def last(self) -> int:
        """The offset of the last tap."""
        return self.first + (len(self.taps) - 1) * self.gap


def sweep_forward(out: int, kernel: int, stride: int, low: int, dilation: int) -> SweepAxis:
    """An axis of a convolution of an image with `low` pixels of padding before it."""
    return SweepAxis(out, stride, tuple(range(kernel)), -low, dilation, 0, 1)


def sweep_backward(size: int, kernel: int, stride: int, low: int, dilation: int) -> list[SweepAxis]:
    """The phases of an axis of its adjoint, which makes an image of `size` pixels."""
    lines = []
    for phase in range(min(stride, size)):
        taps = [t for t in range(kernel) if (phase + low - t * dilation) % stride == 0][::-1]
        count = -(-(size - phase) // stride)
        first = (phase + low - taps[0] * dilation) // stride if taps else 0
        gap = dilation // gcd(dilation, stride)
        lines.append(SweepAxis(count, 1, tuple(taps), first, gap, phase, stride))
    return lines


class Window(NamedTuple):
    """The pixels of an axis that all sweeps over it read: from `first` on, `size(count)` of them
    for `count` positions.
    """

    first: int
    reach: int  # from the very first tap to the last
    step: int

    def size(self, count: int) -> int:
        return (count - 1) * self.step + self.reach + 1


def find_window(lines: list[SweepAxis]) -> Window:
    lines = [line for line in lines if line.taps] or lines
    first = min(line.first for line in lines)
    return Window(first, max(line.last for line in lines) - first, lines[0].step)
