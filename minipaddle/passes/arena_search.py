"""Further ways to place buffers in an arena: four greedy orders, and two searches."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..engine.passes.arena import FAST, PLACED, STRONG, Buffer, bound, height, profile, sort_by


def by_duration(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, the longest needed first; those needed briefly are stacked upon them."""
    return PLACED[-1](buffers, sort_by(buffers, lambda b: (b.start - b.end, -b.nbytes, b.start)))


def by_time(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit in the order of time, like an allocator that does not know the future."""
    return PLACED[-1](buffers, sort_by(buffers, lambda b: (b.start, -b.nbytes)))


def by_area(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, by bytes times time."""
    return PLACED[-1](buffers, sort_by(buffers, lambda b: (b.nbytes * (b.start - b.end), b.start)))


def by_breadth(buffers: Sequence[Buffer]) -> list[int]:
    """Best fit, those of the fullest time first (Pisarchyk and Lee 2020)."""
    waiting = set(range(len(buffers)))
    level, order = profile(buffers), []
    for t in sorted(level, key=lambda t: -level[t]):
        here = [k for k in waiting if buffers[k].start <= t < buffers[k].end]
        order += sorted(here, key=lambda k: (-buffers[k].nbytes, k))
        waiting.difference_update(here)
    return PLACED[-1](buffers, order)


FAST.update(duration=by_duration, time=by_time, area=by_area, breadth=by_breadth)

# ---- search ----------------------------------------------------------------------------------


PLACEMENTS = 50_000
"""Buffers that are placed in one search, which takes half a second. A clock would give other plans
on a busy machine."""


def by_climbing(buffers: Sequence[Buffer], steps: int = 0) -> list[int]:
    """Hill climbing over the order of placement: a buffer that reaches the top is placed earlier.

    Starts from the best greedy order; the same buffers give the same offsets. Without `steps` the
    search places `PLACEMENTS` buffers.
    """
    dice, goal = random.Random(0), bound(buffers)
    best = min((greedy(buffers) for greedy in FAST.values()), key=lambda o: height(buffers, o))
    order = sorted(range(len(buffers)), key=lambda k: best[k])
    peak = lowest = height(buffers, best)
    offsets = best
    for _ in range(steps or PLACEMENTS // max(len(buffers), 1)):
        if lowest <= goal:
            break
        other = move_earlier(order, buffers, offsets, dice)
        placement = PLACED[-1](buffers, other)
        high = height(buffers, placement)
        if high <= peak or dice.random() < 0.02:
            order, offsets, peak = other, placement, high
        if high < lowest:
            best, lowest = placement, high
    return best


def move_earlier(order: list[int], buffers, offsets, dice: random.Random) -> list[int]:
    """The order with one of the highest buffers, or a neighbour of it, at an earlier position."""
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
    """The smallest arena for few buffers, by branch and bound.

    Some best plan is reached by dropping the buffers in some order, each onto those that it
    overlaps in time. A branch ends when it is no lower than the best known plan. After `most`
    steps the search returns the best plan so far.
    """
    best = min((greedy(buffers) for greedy in FAST.values()), key=lambda o: height(buffers, o))
    lowest, goal, steps = height(buffers, best), bound(buffers), 0
    count = len(buffers)
    meets = [
        [j for j in range(count) if j != k and overlap(buffers[j], buffers[k])]
        for k in range(count)
    ]

    def drop(offsets: dict[int, int], least: int, top: int) -> None:
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
            # buffers are dropped in the order of their offsets
            if at < least or lowest <= goal or steps > most:
                continue
            if max(top, at - nbytes) < lowest:
                drop(offsets | {k: at}, at, max(top, at - nbytes))

    drop({}, 0, 0)
    return best


def overlap(a: Buffer, b: Buffer) -> bool:
    """Whether both are needed at some time."""
    return a.start < b.end and b.start < a.end


FEW = 12
"""The most buffers that are placed by exhaustion."""


def by_search(buffers: Sequence[Buffer]) -> list[int]:
    """The smallest arena for few buffers, a small one for many."""
    return by_exhaustion(buffers) if len(buffers) <= FEW else by_climbing(buffers)


STRONG.append(by_search)
