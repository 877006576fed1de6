"""The server on paper: the same batcher, a clock that jumps, and measured costs.

A request passes the event loop (`arrive` seconds of it), waits in the batcher, runs in a batch on
one of the workers, and passes the loop again (`answer`). The loop does one thing at a time, in the
order in which things come to it.

Source: Kleinrock, "Queueing Systems", 1975, for the terms; the simulation is a list of events.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from itertools import count
from typing import NamedTuple

from .batcher import Batcher, BatchPolicy, BatchRequest, Full


class Costs(NamedTuple):
    """Seconds: of the loop for a request that comes, for an answer, for starting a batch; and of a
    run by its rows.
    """

    arrive: float
    answer: float
    batch: float
    run: Callable[[int], float]


class Outcome(NamedTuple):
    """The outcome of the requests: seconds of the answered ones, numbers of the others."""

    latencies: list[float]
    refused: int
    late: int
    seconds: float
    batches: int

    @property
    def throughput(self) -> float:
        """Answers in a second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def quantile(self, q: float) -> float:
        """The latency that a share q of the answers does not exceed."""
        times = sorted(self.latencies)
        return times[min(len(times) - 1, int(q * len(times)))] if times else math.nan


def simulate(
    arrivals: Iterable[float], policy: BatchPolicy, costs: Costs, *, workers: int = 1,
    timeout: float = math.inf, rows: int = 1,
) -> Outcome:  # fmt: skip
    """The outcome of requests that arrive at these times.

    >>> from minipaddle.serving.batcher import BatchPolicy
    >>> from minipaddle.serving.simulator import Costs, simulate
    >>> costs = Costs(arrive=0.0, answer=0.0, batch=0.0, run=lambda rows: 1.0)
    >>> simulate([0.0, 0.0, 0.5], BatchPolicy(largest=2), costs).latencies
    [1.0, 2.0, 1.5]
    """
    batcher, numbers = Batcher(policy, costs.run), count()
    events = [(at, next(numbers), "arrive", at) for at in arrivals]
    heapq.heapify(events)
    idle, loop, latencies, refused, late, batches, end = workers, 0.0, [], 0, 0, 0, 0.0
    first = min((event[0] for event in events), default=0.0)

    def push(at: float, what: str, about=None) -> None:
        heapq.heappush(events, (at, next(numbers), what, about))

    while events:
        now, _, what, about = heapq.heappop(events)
        if what == "arrive":
            loop = max(now, loop) + costs.arrive
            push(loop, "queue", about)
            continue
        if what == "queue":
            try:
                batcher.add(BatchRequest(rows, now, deadline=about + timeout, payload=about))
            except Full:
                refused += 1
                end = max(end, now)
        elif what == "done":
            idle += 1
            for request in about:
                loop = max(now, loop) + costs.answer
                latencies.append(loop - request.payload)
                end = max(end, loop)
        late += len(batcher.expire(now))
        while idle and (batch := batcher.take(now)):
            idle, batches = idle - 1, batches + 1
            loop = max(now, loop) + costs.batch
            push(loop + costs.run(sum(r.rows for r in batch)), "done", batch)
        due = batcher.due(now)
        if idle and now < due < math.inf:
            push(due, "window")
    return Outcome(latencies, refused, late, end - first, batches)
