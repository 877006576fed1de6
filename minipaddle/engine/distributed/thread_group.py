"""Ranks that are threads of one process: nothing to install, closures work, in a notebook too.

A collective collects the arrays of all ranks. When the last rank has called it, the work is split
into one share per rank. A rank that waits for the result does shares, and so does the world's
communication thread. So the ranks reduce in parallel, and a collective that was only started goes
on while its rank computes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from ..core.rank import cause
from .collectives import (
    COLLECTIVES,
    CollectiveCall,
    build_mismatch,
    common_signature,
    format_call,
    rows_match,
)
from .process_group import TIMEOUT, CollectiveTimeout, PeerFailed, ProcessGroup, Work

PATIENCE = 0.1
"""The seconds without any news after which a rank that waits asks whether all do."""

SMALL = 1 << 16
"""The rank that comes last does a collective of fewer bytes alone: a handover would cost more."""


class World:
    """The ranks of one process: the collectives and messages under way, and which rank failed."""

    def __init__(self, size: int, timeout: float = TIMEOUT):
        self.size, self.timeout = size, timeout
        self.changed = threading.Condition()
        self.collectives: dict[tuple, Collective] = {}  # by (group, number)
        self.messages: Counter = Counter()  # by (group, sender, receiver, tag, side)
        self.failure: PeerFailed | None = None
        self.ended: dict[int, str] = {}  # rank -> how it ended
        self.latest: dict[int, CollectiveCall] = {}  # rank -> the collective it called last
        self.threads: dict[int, int] = {}  # rank -> the thread that made its group
        self.counts: dict[tuple, int] = {}  # (group, rank) -> how many collectives it called
        self.waits: dict[int, tuple] = {}  # rank that waits -> for what, and for whom (a function)
        self.communication = ThreadPoolExecutor(1, "communication")  # works beside the ranks

    def group(self, rank: int) -> ThreadGroup:
        """The group of all ranks, as rank number `rank` sees it."""
        self.threads[rank] = threading.get_ident()
        return ThreadGroup(self, 0, range(self.size), rank, self.timeout)

    def end(self, rank: int, error: BaseException | None = None) -> None:
        """Note that rank number `rank` has returned, or failed with `error`."""
        with self.changed:
            self.ended[rank] = "has returned"
            if error is not None and not isinstance(error, PeerFailed):
                self.ended[rank] = f"failed: {type(error).__name__}: {error}"
                self.failure = self.failure or PeerFailed(f"rank {rank} {self.ended[rank]}")
            if len(self.ended) == self.size:
                self.communication.shutdown(wait=False)
            self.changed.notify_all()

    def fail(self, failure: PeerFailed) -> PeerFailed:
        """Make every rank that waits, now or later, raise the first failure."""
        with self.changed:
            self.failure = self.failure or failure
            self.changed.notify_all()
        return self.failure

    def check(self) -> None:
        """Raise the failure, if there is one."""
        if self.failure:
            raise type(self.failure)(*self.failure.args)

    def wait(self, rank: int, ready, missing, what: str, timeout: float) -> None:
        """Let `rank` wait until `ready()`. `missing()` are the ranks that it depends on.

        The caller holds `changed`.
        """
        deadline, own = time.monotonic() + timeout, self.threads.get(rank) == threading.get_ident()
        if own:  # not a thread that works beside the rank's
            self.waits[rank] = what, missing
        while not ready():
            gone = [r for r in missing() if r in self.ended]
            if gone and not self.failure:
                self.fail(PeerFailed(f"{what}: rank {gone[0]} {self.ended[gone[0]]}"))
            self.check()
            left = deadline - time.monotonic()
            if not self.changed.wait(min(left, PATIENCE)) and not ready():
                if stuck := self.deadlock():
                    raise self.fail(stuck)
                if left <= PATIENCE:
                    raise self.time_out(what, timeout, missing())
        if own:
            del self.waits[rank]

    def deadlock(self) -> PeerFailed | None:
        """The failure if every rank that has not ended waits for another one."""
        own = self.threads.keys() - self.ended.keys()
        calls = [(r, *self.waits.get(r, ("", list))) for r in sorted(own)]
        if len({*self.threads.values()}) < self.size or not all(gone() for _, _, gone in calls):
            return None  # a thread serves as several ranks, or some compute
        lines = "".join(f"\n  rank {r}: {call}" for r, call, _ in calls)
        return PeerFailed(f"the ranks wait for each other: they do not ask for the same{lines}")

    def time_out(self, what: str, timeout: float, missing: list[int]) -> PeerFailed:
        """The failure of a rank that has waited too long for the `missing` ones."""
        waits = {rank: others() for rank, (_, others) in [*self.waits.items()]}
        return self.fail(build_timeout(what, timeout, missing, self.latest, waits))

    def submit(self, collective: Collective) -> None:
        """Let the communication thread work at a collective too, once all ranks have called it."""
        with self.changed:
            collective.submitted = True
            if collective.todo:
                self.communication.submit(collective.work)


def build_timeout(what, timeout: float, missing: list, latest: dict, waits: dict):
    """The CollectiveTimeout of the ranks that waited for the `missing` ones: which collective each
    called last (`latest`). Who waits for others itself (`waits`: rank -> for which ranks) is not to
    blame: they are, unless all wait in a circle.
    """
    reachable = [*missing]
    for r in reachable:
        reachable += [other for other in waits.get(r, ()) if other not in reachable]
    missing = [r for r in reachable if not waits.get(r)] or missing
    who = [f"rank {r} did not come ({format_latest(latest.get(r))})" for r in missing]
    if not missing:
        who = ["all came, but not to the same"]
        who += [f"rank {r}: {format_latest(latest[r])}" for r in latest]
    return CollectiveTimeout(f"{what} waited {timeout:g} s: {'; '.join(who)}")


def format_latest(latest: CollectiveCall | str | None) -> str:
    """The collective a rank called last, in words."""
    if latest == SILENT:
        return SILENT
    return f"it was last in {latest}" if latest else "it was in none before"


SILENT = "it does not answer: stopped, or in code that is not Python"


class Collective:
    """One collective of a group: the calls of the ranks, and the results."""

    def __init__(self, world: World, name: str, what: str, ranks):
        self.world, self.name, self.what, self.ranks = world, name, what, ranks
        self.calls: list = [None] * len(ranks)  # (name, array, options) of each rank
        self.results: list = [None] * len(ranks)
        self.todo: list[int] = []  # shares that no thread has begun
        self.open = len(ranks)  # shares that are not done
        self.error: Exception | None = None
        self.submitted = False  # whether a rank relies on the communication thread

    def missing(self) -> list[int]:
        """The ranks that have not called it yet, by their numbers in the world."""
        return [r for r, call in zip(self.ranks, self.calls) if call is None]

    def complete(self) -> None:
        """All ranks have called: check that the calls agree, and release the shares."""
        options = [options for _, _, options in self.calls]
        agree = len({common_signature(*call) for call in self.calls}) == 1
        if agree and rows_match(self.name, options):
            self.todo = list(range(len(self.ranks)))
        else:
            texts = [format_call(*call) for call in self.calls]
            self.error, self.open = build_mismatch(self.what, self.ranks, texts), 0
        if self.submitted:
            self.world.communication.submit(self.work)

    def work(self) -> None:
        """Do shares until none is left to begin."""
        while True:
            with self.world.changed:
                if not self.todo:
                    return
                r = self.todo.pop()
            try:
                _, inputs, options = zip(*self.calls)
                self.results[r] = COLLECTIVES[self.name](inputs, options, r)
            except Exception as error:
                self.error = error
            with self.world.changed:
                self.open -= 1
                if not self.open:
                    self.world.changed.notify_all()


class CollectiveWork(Work):
    """A collective as one rank waits for it."""

    def __init__(self, collective: Collective, rank: int, timeout: float):
        self.collective, self.rank, self.timeout = collective, rank, timeout

    def is_completed(self) -> bool:
        return not self.collective.open

    def run_in_background(self) -> None:
        self.collective.world.submit(self.collective)

    def wait(self, timeout: float | None = None):
        collective, world = self.collective, self.collective.world
        timeout = self.timeout if timeout is None else timeout
        rank, waiting = collective.ranks[self.rank], (collective.what, timeout)
        with world.changed:
            world.wait(rank, lambda: not collective.missing(), collective.missing, *waiting)
        collective.work()
        with world.changed:
            world.wait(rank, lambda: not collective.open, list, *waiting)
        if collective.error is not None:
            raise collective.error
        return collective.results[self.rank]


class ThreadGroup(ProcessGroup):
    """A group whose ranks are threads of this process."""

    backend = "threads"

    def __init__(self, world: World, id: int, ranks, rank: int, timeout: float = TIMEOUT):
        super().__init__(id, ranks, rank, timeout)
        self.world, self.key, self.count = world, (id, *ranks), 0

    def start(self, name: str, array, **options) -> Work:
        what = CollectiveCall(name, self.count_call(name), cause.now)
        call = name, array, options | {"cause": cause.now}
        return self.join((self.key, self.count), name, what, self.ranks, self.rank, call)

    def join(self, key, name: str, what: str, ranks, k: int, call: tuple) -> Work:
        """Take part in a collective of some ranks as number `k` of them."""
        world, array = self.world, call[1]
        with world.changed:
            collective = world.collectives.get(key)
            if collective is None:
                collective = world.collectives[key] = Collective(world, name, what, ranks)
            collective.calls[k] = call
            last = not collective.missing()
            if last:
                del world.collectives[key]
                collective.complete()
                world.changed.notify_all()
        if last and (len(ranks) == 1 or array is None or array.nbytes < SMALL):
            collective.work()
        return CollectiveWork(collective, k, self.timeout)

    def subgroup(self, id: int, ranks, timeout: float) -> ThreadGroup | None:
        own, ranks = self.ranks[self.rank], list(ranks)
        if own not in ranks:
            return None
        return ThreadGroup(self.world, id, ranks, ranks.index(own), timeout)

    def check(self) -> None:
        self.world.check()

    def count_call(self, what: str) -> int:
        self.check()
        self.count += 1
        self.world.latest[self.ranks[self.rank]] = CollectiveCall(what, self.count, cause.now)
        self.world.counts[(*self.key, self.rank)] = self.count
        return self.count
