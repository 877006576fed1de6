"""Which requests run together, and when: a queue with a window, without threads and clocks.

The server and the simulator call the same code; both say what time it is. Requests of one `key`
(their shapes without the rows) may share a batch. A batch starts when it has a preferred size, when
no more fits, when its oldest request has waited for the window, or when a deadline would be missed
otherwise. Among batches that may start, that of the first request goes first: by priority, then by
arrival.

A runner that works in steps may ask for as many rows as it has room for (`take(now, room)`), and
keep requests for as many steps as it likes.
"""

import math
from bisect import insort
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from ..engine.core.slots import slot


class BatchPolicy(NamedTuple):
    """largest: rows of a batch; window: seconds a request waits for others; preferred: rows with
    which a batch starts at once; capacity: requests that may wait.
    """

    largest: int = 16
    window: float = 0.0
    preferred: tuple[int, ...] = ()
    capacity: int = 256


class Full(Exception):
    """The queue of requests is full."""


@dataclass(eq=False, slots=True)
class BatchRequest:
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
    """The requests that wait. `cost(rows)` gives the seconds of a run.

    >>> from minipaddle.serving.batcher import Batcher, BatchPolicy, BatchRequest
    >>> batcher = Batcher(BatchPolicy(largest=8, window=0.01))
    >>> for k in range(3):
    ...     batcher.add(BatchRequest(rows=2, arrived=0.0))
    >>> batcher.take(now=0.0), batcher.due(now=0.0)
    ([], 0.01)
    >>> [request.rows for request in batcher.take(now=0.01)]
    [2, 2, 2]
    """

    def __init__(self, policy: BatchPolicy, cost: Callable[[int], float] = lambda rows: 0.0):
        self.policy, self.cost = policy, cost
        self.groups: dict[Hashable, list[BatchRequest]] = {}
        self.numbers, self.size = count(1), 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[BatchRequest]:
        for group in self.groups.values():
            yield from group

    @property
    def rows(self) -> int:
        """The rows that wait."""
        return sum(request.rows for request in self)

    def has_room(self, priority: int = 0) -> bool:
        """Whether a request of this priority may wait."""
        try:
            make_room(self, priority, self.policy.capacity)
        except Full:
            return False
        return True

    def add(self, request: BatchRequest) -> BatchRequest | None:
        """Let a request wait. Where no more may wait, the last one of a lower priority is returned,
        and waits no more; Full if there is none.
        """
        if request.rows > self.policy.largest:
            raise ValueError(f"{request.rows} rows; a batch has at most {self.policy.largest}")
        removed = make_room(self, request.priority, self.policy.capacity)
        if removed is not None:
            self.remove(removed)
        request.number = next(self.numbers)
        insort(self.groups.setdefault(request.key, []), request, key=lambda r: r.order)
        self.size += 1
        return removed

    def remove(self, request: BatchRequest) -> bool:
        """Forget a request; False if it does not wait."""
        group = self.groups.get(request.key, [])
        if request not in group:
            return False
        group.remove(request)
        self.size -= 1
        if not group:
            del self.groups[request.key]
        return True

    def expire(self, now: float) -> list[BatchRequest]:
        """The requests whose deadline a run that starts now would miss; they wait no more."""
        late = find_late(self, now, self.cost)
        for request in late:
            self.remove(request)
        return late

    def take(self, now: float, room: int | None = None) -> list[BatchRequest]:
        """The batch to start now, of at most `room` rows; empty if none may start."""
        room = self.policy.largest if room is None else min(room, self.policy.largest)
        groups = self.groups.values()
        batches = [choose_batch(group, now, room, self.policy, self.cost) for group in groups]
        batch = min(filter(None, batches), key=lambda batch: batch[0].order, default=[])
        for request in batch:
            self.remove(request)
        return batch

    def due(self, now: float) -> float:
        """When `take` gives a batch, if nothing arrives; inf if nothing waits."""
        times = []
        for group in self.groups.values():
            if choose_batch(group, now, self.policy.largest, self.policy, self.cost):
                return now
            times.append(find_latest_start(group, self.policy, self.cost))
        return min(times, default=math.inf)


# ---- decisions: functions of the requests alone ------------------------------------------------


@slot("serving.choose_batch")
def choose_batch(
    group: list[BatchRequest],
    now: float,
    room: int,
    policy: BatchPolicy,
    cost: Callable[[int], float],
) -> list[BatchRequest]:
    """The requests of a group, in order, that start now in a batch of at most `room` rows."""
    fitting, rows, preferred = 0, 0, 0
    for request in group:
        if rows + request.rows > room:
            break
        fitting, rows = fitting + 1, rows + request.rows
        if rows in policy.preferred:
            preferred = fitting
    full = fitting < len(group) or rows == room
    if full or now >= find_latest_start(group, policy, cost):
        return group[:fitting]
    return group[:preferred]


@slot("serving.find_latest_start")
def find_latest_start(
    group: list[BatchRequest], policy: BatchPolicy, cost: Callable[[int], float]
) -> float:
    """When a group starts, whatever else arrives: the first window is over, or a deadline calls."""
    seconds = cost(sum(r.rows for r in group))
    return min(min(r.arrived + policy.window, r.deadline - seconds) for r in group)


@slot("serving.make_room")
def make_room(
    waiting: Collection[BatchRequest], priority: int, capacity: int
) -> BatchRequest | None:
    """The request that has to leave so that one of this priority may wait; None if there is room.
    Raises Full if all that wait are as important.
    """
    if len(waiting) < capacity:
        return None
    last = max(waiting, key=lambda r: r.order, default=None)
    if last is None or last.priority <= priority:
        raise Full
    return last


@slot("serving.find_late")
def find_late(
    waiting: Collection[BatchRequest], now: float, cost: Callable[[int], float]
) -> list[BatchRequest]:
    """The requests whose deadline a run of them alone would miss if it started now."""
    return [r for r in waiting if r.deadline < math.inf and now + cost(r.rows) > r.deadline]


@slot("serving.retry_after")
def retry_after(rows: int, largest: int, seconds: float, workers: int) -> float:
    """Seconds after which to ask again when `rows` wait: at least 1. A run of the `largest`
    batch takes some seconds, and each of the workers runs one at a time.
    """
    return max(1.0, rows / largest * seconds / workers)
