"""Which requests run together, and when: a queue with a window, without threads and clocks.

The server and the simulator call the same code; both say what time it is. Requests of one `key`
(their shapes without the rows) may share a batch. A batch starts when it has a preferred size, when
no more fits, when its oldest request has waited for the window, or when a deadline would be missed
otherwise. Among batches that may start, that of the first request goes first: by priority, then by
arrival.

A runner that works in steps may ask for as many rows as it has room for (`take(now, room)`), and
keep requests for as many steps as it likes.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple


class Policy(NamedTuple):
    """largest: rows of a batch; window: seconds a request waits for others; preferred: rows with
    which a batch starts at once; capacity: requests that may wait.
    """

    largest: int = 16
    window: float = 0.0
    preferred: tuple[int, ...] = ()
    capacity: int = 256


class Full(Exception):
    """As many requests wait as may."""


@dataclass(eq=False, slots=True)
class Request:
    """Rows that run together. `deadline` is a time; of priorities, the smaller comes first."""

    rows: int
    arrived: float
    key: Hashable = None
    priority: int = 0
    deadline: float = math.inf
    payload: object = None
    number: int = 0

    @property
    def order(self) -> tuple[int, int]:
        return self.priority, self.number


class Batcher:
    """The requests that wait. `cost` gives the seconds of a run of so many rows.

    >>> from minipaddle.serving.batcher import Batcher, Policy, Request
    >>> batcher = Batcher(Policy(largest=8, window=0.01))
    >>> for k in range(3):
    ...     batcher.add(Request(rows=2, arrived=0.0))
    >>> batcher.take(now=0.0), batcher.due(now=0.0)
    ([], 0.01)
    >>> [request.rows for request in batcher.take(now=0.01)]
    [2, 2, 2]
    """

    def __init__(self, policy: Policy, cost: Callable[[int], float] = lambda rows: 0.0):
        self.policy, self.cost = policy, cost
        self.groups: dict[Hashable, list[Request]] = {}
        self.numbers, self.size = count(1), 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Request]:
        for group in self.groups.values():
            yield from group

    @property
    def rows(self) -> int:
        """The rows that wait."""
        return sum(request.rows for request in self)

    def has_room(self, priority: int = 0) -> bool:
        """Whether a request of this priority may wait."""
        if self.size < self.policy.capacity:
            return True
        return any(group[-1].priority > priority for group in self.groups.values())

    def add(self, request: Request) -> Request | None:
        """Let a request wait. Where no more may wait, the last one of a lower priority is returned,
        and waits no more; Full if there is none.
        """
        if request.rows > self.policy.largest:
            raise ValueError(f"{request.rows} rows; a batch has at most {self.policy.largest}")
        removed = None
        if self.size >= self.policy.capacity:
            removed = max(self, key=lambda r: r.order, default=None)
            if removed is None or removed.priority <= request.priority:
                raise Full
            self.remove(removed)
        request.number = next(self.numbers)
        insort(self.groups.setdefault(request.key, []), request, key=lambda r: r.order)
        self.size += 1
        return removed

    def remove(self, request: Request) -> bool:
        """Forget a request; False if it does not wait."""
        group = self.groups.get(request.key, [])
        if request not in group:
            return False
        group.remove(request)
        self.size -= 1
        if not group:
            del self.groups[request.key]
        return True

    def expire(self, now: float) -> list[Request]:
        """The requests whose deadline a run that starts now would miss; they wait no more."""
        late = [r for r in self if r.deadline < math.inf and now + self.cost(r.rows) > r.deadline]
        for request in late:
            self.remove(request)
        return late

    def take(self, now: float, room: int | None = None) -> list[Request]:
        """The batch to start now, of at most `room` rows; empty if none may start."""
        room = self.policy.largest if room is None else min(room, self.policy.largest)
        starting = [
            batch for group in self.groups.values() if (batch := self.start(group, now, room))
        ]
        batch = min(starting, key=lambda batch: batch[0].order, default=[])
        for request in batch:
            self.remove(request)
        return batch

    def start(self, group: list[Request], now: float, room: int) -> list[Request]:
        """The batch of a group that starts now."""
        fitting, rows, preferred = 0, 0, 0
        for request in group:
            if rows + request.rows > room:
                break
            fitting, rows = fitting + 1, rows + request.rows
            if rows in self.policy.preferred:
                preferred = fitting
        full = fitting < len(group) or rows == room
        if full or now >= self.latest_start(group, rows):
            return group[:fitting]
        return group[:preferred]

    def latest_start(self, group: list[Request], rows: int) -> float:
        """When the first `rows` of a group start, whatever else arrives."""
        cost = self.cost(rows)
        return min(min(r.arrived + self.policy.window, r.deadline - cost) for r in group)

    def due(self, now: float) -> float:
        """When `take` gives a batch, if nothing arrives; inf if nothing waits."""
        times = []
        for group in self.groups.values():
            if self.start(group, now, self.policy.largest):
                return now
            times.append(self.latest_start(group, sum(r.rows for r in group)))
        return min(times, default=math.inf)
