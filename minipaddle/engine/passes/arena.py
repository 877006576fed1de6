"""Offsets in one arena: buffers that are needed at the same time must not overlap.

Finding the smallest arena is NP-hard ("dynamic storage allocation", Garey and Johnson 1979, SR2).
Greedy placement in a good order comes close. No arena is smaller than the *bound*, the bytes of the
largest set of buffers that are needed at one time.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..core.slots import slot


class Buffer(NamedTuple):
    """`nbytes` of memory, needed in [start, end)."""

    start: int
    end: int
    nbytes: int


def bound(buffers: Sequence[Buffer]) -> int:
    """The largest number of bytes that are needed at one time."""
    return max(profile(buffers).values(), default=0)


def profile(buffers: Iterable[Buffer]) -> dict[int, int]:
    """The bytes that are needed, for each time at which that number changes."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.start] = change.get(b.start, 0) + b.nbytes
        change[b.end] = change.get(b.end, 0) - b.nbytes
    times = sorted(change)
    return dict(zip(times, accumulate(map(change.get, times))))


def height(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The bytes of the arena."""
    return max((o + b.nbytes for b, o in zip(buffers, offsets, strict=True)), default=0)


# ---- greedy placement ------------------------------------------------------------------------


def placed(buffers: Sequence[Buffer], order: Sequence[int]) -> list[int]:
    """Offsets: each buffer in turn gets the tightest gap that holds it, or else the top."""
    offsets = [0] * len(buffers)
    taken: list[tuple[int, int, int, int]] = []  # (offset, top, start, end), lowest first
    for k in order:
        start, end, nbytes = buffers[k]
        best, room, top = None, 0, 0
        for low, high, begun, ended in taken:
            if begun < end and start < ended:
                gap = low - top
                if gap >= nbytes and (best is None or gap < room):
                    best, room = top, gap
                if high > top:
                    top = high
        offsets[k] = top if best is None else best
        insort(taken, (offsets[k], offsets[k] + nbytes, start, end))
    return offsets


PLACED: list = [placed]
"""Functions that place buffers in an order. The last one serves; all give the same offsets."""


def by_size(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, the largest first; of equal ones the longest first (Pisarchyk and Lee 2020)."""
    return PLACED[-1](buffers, sort_by(buffers, lambda b: (-b.nbytes, b.start - b.end, b.start)))


def sort_by(buffers, key) -> list[int]:
    return sorted(range(len(buffers)), key=lambda k: (*key(buffers[k]), k))


# ---- the choice ------------------------------------------------------------------------------

Method = Callable[[Sequence[Buffer]], list[int]]

FAST: dict[str, Method] = {"size": by_size}
"""Greedy placements; `minipaddle.passes` adds some."""
STRONG: list[Method] = []
"""Searches, for buffers that no greedy placement brings near the bound."""
GOOD, ENOUGH = 1.005, 1.05
"""A greedy method within GOOD of the bound ends the choice; searches are tried beyond ENOUGH."""


@slot("memory.offsets")
def offsets(buffers: Sequence[Buffer]) -> list[int]:
    """Where each buffer begins: the best of the fast methods, and of searches if none is good.

    >>> from minipaddle.engine.passes.arena import Buffer, offsets
    >>> offsets([Buffer(0, 2, 64), Buffer(1, 3, 128), Buffer(2, 4, 64)])
    [128, 0, 128]
    """
    goal, best = bound(buffers), []
    for method in FAST.values():
        placement = method(buffers)
        best = min(best or placement, placement, key=lambda o: height(buffers, o))
        if height(buffers, best) <= GOOD * goal:
            return best
    if height(buffers, best) > ENOUGH * goal:
        best = min([best, *(m(buffers) for m in STRONG)], key=lambda o: height(buffers, o))
    return best
