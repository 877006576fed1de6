"""One version of a model while it serves: requests wait in its batcher, workers take batches.

Everything here runs on the event loop, but for the runs themselves, which threads do. So a request
that was added is answered exactly once: with outputs, or with one of the errors below. A run that
takes longer than it may is answered, too, though nothing can end its thread: until it ends itself,
its worker is lost.
"""

import asyncio
import math
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic

import numpy as np

from .batcher import Batcher, BatchPolicy, BatchRequest, Full, retry_after
from .metrics import ModelMetrics

RUN_LIMIT = 60.0
"""Seconds of a run, unless told otherwise; one that takes longer counts as one that never ends."""


class Refused(Exception):
    """A request that gets no outputs: the HTTP status, and seconds after which to try again."""

    def __init__(self, status: int, message: str, retry: float | None = None):
        super().__init__(message)
        self.status, self.retry = status, retry


class ModelRunner:
    """Requests for one version of a model.

    served: the model, as `replica.ServedModel`; workers: how many batches run at the same time;
    limit: seconds of a run; hanging: how many runs take longer now
    """

    def __init__(
        self, served, policy: BatchPolicy, metrics: ModelMetrics, workers: int = 1,
        limit: float = RUN_LIMIT,
    ):  # fmt: skip
        self.served, self.metrics, self.workers = served, metrics, workers
        self.limit, self.hanging = limit, 0
        self.batcher = Batcher(policy._replace(largest=served.largest), served.cost)
        self.changed, self.closing = asyncio.Event(), False
        self.tasks: list[asyncio.Task] = []
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="run")

    def start(self, replicas: list) -> None:
        """Let workers take requests, each with a replica of its own."""
        self.tasks = [asyncio.create_task(self.work(replica)) for replica in replicas]

    def add(self, arrays: list[np.ndarray], priority: int, timeout: float) -> asyncio.Future:
        """Let a request wait. The future gives its outputs, or raises Refused or the model's error.

        Raises Refused with 503 if too many wait, or ValueError if the model takes no such shapes.
        """
        if self.closing or self.hanging == self.workers:
            self.require_room()
        rows, key = self.measure_request(arrays)
        loop, now = asyncio.get_running_loop(), monotonic()
        request = BatchRequest(
            rows, now, key, priority, now + timeout, (arrays, loop.create_future())
        )
        try:
            removed = self.batcher.add(request)
        except Full:
            raise self.overload() from None
        if removed is not None:
            settle(removed, self.overload())
        if timeout < math.inf:
            timer = loop.call_later(timeout, self.miss, request)
            request.payload[1].add_done_callback(lambda _: timer.cancel())
        request.payload[1].add_done_callback(lambda future: self.leave(request, future))
        self.note_change()
        return request.payload[1]

    def require_room(self) -> None:
        """Raise Refused with 503 where no request at all may wait: it need not be read."""
        if self.closing:
            raise Refused(503, "the model is being unloaded", 1.0)
        if self.hanging == self.workers:
            raise self.lose()
        if not self.batcher.has_room():
            raise self.overload()

    def measure_request(self, arrays: list[np.ndarray]) -> tuple[int, Hashable]:
        """The rows of a request, and the key of those it can share a run with."""
        shapes = [a.shape for a in arrays]
        self.served.check(shapes)
        if not self.served.shares:
            return 1, object()
        rows = shapes[0][0]
        if not 1 <= rows <= self.served.largest:
            raise ValueError(f"{rows} rows; a request has 1 to {self.served.largest}")
        return rows, tuple([shape[1:] for shape in shapes])

    def overload(self) -> Refused:
        largest = self.served.largest
        wait = retry_after(self.batcher.rows, largest, self.served.cost(largest), self.workers)
        return Refused(503, f"{len(self.batcher)} requests wait already", wait)

    def lose(self) -> Refused:
        return Refused(503, "a run of the model does not end", self.limit)

    def miss(self, request: BatchRequest) -> None:
        """Answer a request at its deadline, whether it waits or runs."""
        settle(request, Refused(504, "the deadline of the request is over"))

    def leave(self, request: BatchRequest, future: asyncio.Future) -> None:
        """Called when a request is answered, or when its client has gone."""
        if self.batcher.remove(request):
            self.note_change()

    def note_change(self) -> None:
        self.metrics.queue.set(len(self.batcher))
        self.changed.set()

    # ---- workers -----------------------------------------------------------------------------

    async def work(self, replica) -> None:
        """Run batches, until the runner is closed and nothing waits."""
        while batch := await self.next_batch():
            began = monotonic()
            for request in batch:
                self.metrics.waiting.observe(began - request.arrived)
            self.metrics.rows.observe(sum([request.rows for request in batch]))
            arrays = [request.payload[0] for request in batch]
            results = await self.run(replica, arrays, batch)
            self.metrics.running.observe(monotonic() - began)
            for request, result in zip(batch, results, strict=True):
                settle(request, result)

    async def run(self, replica, arrays: list, batch: list[BatchRequest]) -> list:
        """For each request of a batch its outputs, or an error. Those of a run that takes too long
        are answered before it ends, and if no worker is left, so are those that wait.
        """
        running = asyncio.get_running_loop().run_in_executor(self.pool, replica, arrays)
        if not (await asyncio.wait([running], timeout=self.limit))[0]:
            for request in batch:
                settle(request, Refused(504, f"the run takes more than {self.limit:g} s"))
            self.hanging += 1
            for request in [*self.batcher] if self.hanging == self.workers else []:
                settle(request, self.lose())
            await asyncio.wait([running])
            self.hanging -= 1
        error = running.exception()  # of the replica itself
        return running.result() if error is None else [error] * len(batch)

    async def next_batch(self) -> list[BatchRequest]:
        """The next batch; empty when the runner is closed."""
        while True:
            now = monotonic()
            for request in self.batcher.expire(now):
                self.miss(request)
            batch = self.batcher.take(math.inf if self.closing else now)  # no more will come
            if batch or (self.closing and not len(self.batcher)):
                self.metrics.queue.set(len(self.batcher))
                return batch
            self.changed.clear()
            due = self.batcher.due(now)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if due == math.inf else max(0.0, due - now)):
                    await self.changed.wait()

    async def close(self) -> None:
        """Take no more requests, answer those that wait, and end."""
        self.closing = True
        self.changed.set()
        await asyncio.gather(*self.tasks)
        self.pool.shutdown(wait=False)


def settle(request: BatchRequest, result) -> None:
    """Give a request its result, unless it has one, or its client has gone."""
    future = request.payload[1]
    if future.done():
        return
    if isinstance(result, StopIteration):  # which no future takes
        future.set_exception(RuntimeError(f"the model raised {result!r}"))
    elif isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
