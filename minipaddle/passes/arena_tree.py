"""Greedy placement in an arena for thousands of buffers.

`arena.placed` asks of each buffer which of all others are needed at the same time: that grows with
the square of their number. Here a segment tree over time knows it. A node stands for a stretch of
time, and keeps two lists of the bytes that are taken: `through` all of it, and at `some` time of
it. What is taken during the life of a buffer is what is taken at some time of the few nodes that
make up this life, or through all of a node above these. Neighbours in a list are joined, and
buffers are packed closely, so lists are short: most placements cost the logarithm of the number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain

from ..engine.passes.arena import PLACED, Buffer, placed

MANY = 1000
"""Fewest buffers for which the tree is faster."""


class Taken:
    """The bytes of an arena that are taken, by time."""

    def __init__(self, buffers: Sequence[Buffer]):
        times = sorted({t for b in buffers for t in (b.start, b.end)})
        self.number = {
            t: k for k, t in enumerate(times, len(times))
        }  # of the leaf that begins at t
        self.through: list[list] = [[] for _ in range(2 * len(times))]
        self.some: list[list] = [[] for _ in range(2 * len(times))]

    def nodes(self, buffer: Buffer) -> tuple[list[int], set[int]]:
        """The largest nodes that make up the life of a buffer, and those above them."""
        low, high = self.number[buffer.start], self.number[buffer.end]
        own, above = [], set()
        while low < high:
            if low & 1:
                own.append(low)
                low += 1
            if high & 1:
                high -= 1
                own.append(high)
            low, high = low >> 1, high >> 1
        for k in own:
            while (k := k >> 1) and k not in above:
                above.add(k)
        return own, above

    def place(self, buffer: Buffer) -> int:
        """Take the tightest gap that holds a buffer, or else the top; return where it begins."""
        own, above = self.nodes(buffer)
        lists = [self.some[k] for k in own] + [self.through[k] for k in above]
        best, room, top, nbytes = None, 0, 0, buffer.nbytes
        for low, high in sorted(chain.from_iterable(lists)):
            gap = low - top
            if gap >= nbytes and (best is None or gap < room):
                best, room = top, gap
            if high > top:
                top = high
        at = top if best is None else best
        for k in own:
            take(self.through[k], at, at + nbytes)
            take(self.some[k], at, at + nbytes)
        for k in above:
            take(self.some[k], at, at + nbytes)
        return at


def take(spans: list[tuple[int, int]], low: int, high: int) -> None:
    """Add [low, high) to separate spans in order; those that it meets become one.

    >>> from minipaddle.passes.arena_tree import take
    >>> spans = [(0, 4), (8, 12), (16, 20)]
    >>> take(spans, 4, 10)
    >>> spans
    [(0, 12), (16, 20)]
    """
    first = bisect_left(spans, (low,))
    if first and spans[first - 1][1] >= low:
        first -= 1
        low = spans[first][0]
    last = first
    while last < len(spans) and spans[last][0] <= high:
        high = max(high, spans[last][1])
        last += 1
    spans[first:last] = [(low, high)]


def place_by_tree(buffers: Sequence[Buffer], order: Sequence[int]) -> list[int]:
    """The offsets of `arena.placed`, in less time for many buffers."""
    if len(buffers) < MANY:
        return placed(buffers, order)
    offsets, taken = [0] * len(buffers), Taken(buffers)
    for k in order:
        offsets[k] = taken.place(buffers[k])
    return offsets


PLACED.append(place_by_tree)
