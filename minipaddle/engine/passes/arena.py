"""Offsets in one arena: pieces of memory that are needed at the same time must not overlap.

Finding the smallest arena is NP-hard ("dynamic storage allocation", Garey and Johnson 1979, SR2).
Good orders for a greedy placement come close: here are several, and a search that improves them.
No arena is smaller than the *bound*, the bytes of the largest set that lives at one time.
"""

from __future__ import annotations

import random
import time
from bisect import insort
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.slots import slot

ALIGNMENT = 64
"""Every piece of memory begins at a multiple of a cache line."""


class Buffer(NamedTuple):
    """`nbytes` of memory, needed in [start, end)."""

    start: int
    end: int
    nbytes: int


def aligned(nbytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def bound(buffers: Sequence[Buffer]) -> int:
    """The largest sum of bytes that are needed at one time."""
    return max(profile(buffers).values(), default=0)


def profile(buffers: Sequence[Buffer]) -> dict[int, int]:
    """The bytes that are needed from each time on at which that changes."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.start] = change.get(b.start, 0) + b.nbytes
        change[b.end] = change.get(b.end, 0) - b.nbytes
    now, found = 0, {}
    for t in sorted(change):
        now += change[t]
        found[t] = now
    return found


def height(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The bytes of the arena."""
    return max((o + b.nbytes for b, o in zip(buffers, offsets, strict=True)), default=0)


# ---- greedy placement ------------------------------------------------------------------------


def placed(buffers: Sequence[Buffer], order: Sequence[int]) -> list[int]:
    """Offsets when each in turn gets the tightest gap that holds it, or the top."""
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


def by_size(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, the largest first; of equal ones the longest first (Pisarchyk and Lee 2020)."""
    return placed(buffers, ordered(buffers, lambda b: (-b.nbytes, b.start - b.end, b.start)))


def by_duration(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, the longest needed first: those needed briefly stack up on them."""
    return placed(buffers, ordered(buffers, lambda b: (b.start - b.end, -b.nbytes, b.start)))


def by_area(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, by bytes times time."""
    return placed(buffers, ordered(buffers, lambda b: (b.nbytes * (b.start - b.end), b.start)))


def by_breadth(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, those of the fullest time first (Pisarchyk and Lee 2020)."""
    waiting = set(range(len(buffers)))
    level, order = profile(buffers), []
    for t in sorted(level, key=lambda t: -level[t]):
        here = [k for k in waiting if buffers[k].start <= t < buffers[k].end]
        order += sorted(here, key=lambda k: (-buffers[k].nbytes, k))
        waiting.difference_update(here)
    return placed(buffers, order)


def by_time(buffers: Sequence[Buffer]) -> list[int]:
    """First fit in the order of time, as an allocator does that does not know what will come."""
    return placed(buffers, ordered(buffers, lambda b: (b.start, -b.nbytes)))


def ordered(buffers, key) -> list[int]:
    return sorted(range(len(buffers)), key=lambda k: (*key(buffers[k]), k))


# ---- search ----------------------------------------------------------------------------------


def by_search(buffers: Sequence[Buffer], seconds: float = 0.5, rounds: int = 4000) -> list[int]:
    """Hill climbing over the order of placement: what reaches the top is placed earlier.

    Starts from the best greedy order; the same buffers give the same offsets unless time is up.
    """
    until, dice, goal = time.perf_counter() + seconds, random.Random(0), bound(buffers)
    best = min((greedy(buffers) for greedy in FAST.values()), key=lambda o: height(buffers, o))
    order = sorted(range(len(buffers)), key=lambda k: best[k])
    peak = lowest = height(buffers, best)
    offsets = best
    for _ in range(rounds):
        if lowest <= goal or time.perf_counter() > until:
            break
        other = moved(order, buffers, offsets, dice)
        found = placed(buffers, other)
        high = height(buffers, found)
        if high <= peak or dice.random() < 0.02:
            order, offsets, peak = other, found, high
        if high < lowest:
            best, lowest = found, high
    return best


def moved(order: list[int], buffers, offsets, dice: random.Random) -> list[int]:
    """The order with one of the highest buffers, or a neighbour of it, somewhere before."""
    top = height(buffers, offsets)
    highest = [k for k in order if offsets[k] + buffers[k].nbytes == top]
    k = dice.choice(highest)
    if dice.random() < 0.5:
        start, end, _ = buffers[k]
        k = dice.choice([j for j in order if buffers[j].start < end and start < buffers[j].end])
    at = order.index(k)
    to = dice.randrange(at) if at else dice.randrange(len(order))
    rest = order[:at] + order[at + 1 :]
    return [*rest[:to], k, *rest[to:]]


def by_exhaustion(buffers: Sequence[Buffer], most: int = 20_000) -> list[int]:
    """The smallest arena for few buffers: branch and bound over what lies lowest.

    Some best plan is reached by dropping the buffers in some order onto those they overlap in time
    (each lies at 0 or on another). A branch ends when it is no lower than the best known. Gives up
    with the best it has after `most` steps.
    """
    best = min((greedy(buffers) for greedy in FAST.values()), key=lambda o: height(buffers, o))
    lowest, goal, steps = height(buffers, best), bound(buffers), 0
    count = len(buffers)
    meets = [
        [j for j in range(count) if j != k and overlap(buffers[j], buffers[k])]
        for k in range(count)
    ]

    def dropped(offsets: dict[int, int], least: int, top: int) -> None:
        nonlocal best, lowest, steps
        steps += 1
        if len(offsets) == count:
            best, lowest = [offsets[k] for k in range(count)], top
            return
        choices = []
        for k in range(count):
            if k not in offsets:
                ends = [offsets[j] + buffers[j].nbytes for j in meets[k] if j in offsets]
                choices.append((max(ends, default=0), -buffers[k].nbytes, k))
        for at, nbytes, k in sorted(choices):
            # in the order of their offsets: what comes later lies no lower
            if at < least or lowest <= goal or steps > most:
                continue
            if max(top, at - nbytes) < lowest:
                dropped(offsets | {k: at}, at, max(top, at - nbytes))

    dropped({}, 0, 0)
    return best


def overlap(a: Buffer, b: Buffer) -> bool:
    """Are both needed at some time?"""
    return a.start < b.end and b.start < a.end


# ---- the choice ------------------------------------------------------------------------------

Method = Callable[[Sequence[Buffer]], list[int]]

FAST: dict[str, Method] = {
    "size": by_size,
    "duration": by_duration,
    "area": by_area,
    "breadth": by_breadth,
    "time": by_time,
}
STRONG: dict[str, Method] = {"exhaustion": by_exhaustion, "search": by_search}
METHODS: dict[str, Method] = FAST | STRONG

GOOD, ENOUGH = 1.005, 1.05
"""A fast method within GOOD of the bound ends the choice; a strong one is tried beyond ENOUGH."""
FEW = 12
"""So many buffers are placed by exhaustion."""


@slot("memory.offsets")
def offsets(buffers: Sequence[Buffer]) -> list[int]:
    """Where each buffer begins: the best of the fast methods, of a strong one if that is not good.

    >>> from minipaddle.engine.passes.arena import Buffer, offsets
    >>> offsets([Buffer(0, 2, 64), Buffer(1, 3, 128), Buffer(2, 4, 64)])
    [128, 0, 128]
    """
    goal, best = bound(buffers), []
    for method in FAST.values():
        found = method(buffers)
        if not best or height(buffers, found) < height(buffers, best):
            best = found
        if height(buffers, best) <= GOOD * goal:
            return best
    if height(buffers, best) > ENOUGH * goal:
        strong = by_exhaustion if len(buffers) <= FEW else by_search
        best = min(best, strong(buffers), key=lambda o: height(buffers, o))
    return best
