"""Ranks that are threads of one process: nothing to install, closures work, in a notebook too.

A collective is a *round*: each rank lays its array on the table, and when all lie there the shares
of the work are done, each by whoever comes first: a rank that waits, or the world's communication
thread while the ranks compute. So the ranks add up in parallel, and started rounds go on unwatched.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from queue import SimpleQueue

from .group import TIMEOUT, CollectiveTimeout, Done, PeerFailed, ProcessGroup, Work
from .shares import SHARES, agreed, disagreement, exchanged, said_by, spec

SMALL = 1 << 16
"""Rounds of fewer bytes are done by the rank that comes last: handing over would cost more."""


class World:
    """The ranks of one process: the rounds and messages under way, and who has failed."""

    def __init__(self, size: int, timeout: float = TIMEOUT):
        self.size, self.timeout = size, timeout
        self.changed = threading.Condition()
        self.rounds: dict[tuple, Round] = {}  # by (group, number)
        self.boxes: dict[tuple, Box] = {}  # by (group, sender, receiver, tag)
        self.failure: PeerFailed | None = None
        self.ended: dict[int, str] = {}  # rank -> how
        self.doing: dict[int, str] = {}  # rank -> the collective it came to last
        self.counts: dict[tuple, int] = {}  # how many collectives of a group a rank came to
        self.queue: SimpleQueue | None = None  # of the communication thread

    def group(self, rank: int) -> ThreadGroup:
        """The group of all, as rank number `rank` sees it."""
        return ThreadGroup(self, 0, range(self.size), rank, self.timeout)

    def end(self, rank: int, error: BaseException | None = None) -> None:
        """Rank number `rank` takes part no more: it returned, or failed with `error`."""
        with self.changed:
            self.ended[rank] = "has returned"
            if error is not None and not isinstance(error, PeerFailed):
                self.ended[rank] = f"failed: {type(error).__name__}: {error}"
                self.failure = self.failure or PeerFailed(f"rank {rank} {self.ended[rank]}")
            if self.queue is not None and len(self.ended) == self.size:
                self.queue.put(None)
            self.changed.notify_all()

    def fail(self, failure: PeerFailed) -> PeerFailed:
        """Let every rank that waits, or will, raise what was found; the first finding counts."""
        with self.changed:
            self.failure = self.failure or failure
            self.changed.notify_all()
        return self.failure

    def check(self) -> None:
        """Raise what was found, as every rank does."""
        if self.failure:
            raise type(self.failure)(*self.failure.args)

    def wait(self, ready, absent, what: str, timeout: float) -> None:
        """Wait until `ready()`. `absent()` are the ranks that are waited for.

        The caller holds `changed`.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            gone = [r for r in absent() if r in self.ended]
            if gone and not self.failure:
                self.fail(PeerFailed(f"{what}: rank {gone[0]} {self.ended[gone[0]]}"))
            self.check()
            if not self.changed.wait(deadline - time.monotonic()) and not ready():
                raise self.fail(late(what, timeout, absent(), self.doing))

    def soon(self, seconds: float) -> None:
        """Wait until something happens."""
        with self.changed:
            if not self.failure and len(self.ended) < self.size:
                self.changed.wait(seconds)

    def hand_over(self, round: Round) -> None:
        """Let the communication thread work at a round too, once it is complete."""
        with self.changed:
            if not round.open:
                return
            round.alone = True
            if self.queue is None:
                self.queue = SimpleQueue()
                threading.Thread(target=self.serve, name="communication", daemon=True).start()
            if round.todo:
                self.queue.put(round)

    def serve(self) -> None:
        while (round := self.queue.get()) is not None:
            round.work()


def late(what: str, timeout: float, absent: list[int], last: dict) -> CollectiveTimeout:
    """The error of those who waited for the ranks of `absent`: where each was `last`."""
    who = [f"rank {r} did not come ({where(last.get(r))})" for r in absent]
    if not absent:
        who = ["all came, but not to the same", *(f"rank {r}: {where(last[r])}" for r in last)]
    return CollectiveTimeout(f"{what} waited {timeout:g} s: {'; '.join(who)}")


def where(last: str | None) -> str:
    """The collective a rank came to last, in words."""
    if last == SILENT:
        return SILENT
    return f"it was last in {last}" if last else "it was in none before"


SILENT = "it does not answer: stopped, or in code that is not Python"


class Round:
    """One collective of a group: what the ranks gave, and what each is to get."""

    def __init__(self, world: World, name: str, number: int, ranks):
        self.world, self.name, self.ranks = world, name, ranks
        self.what = f"{name} number {number}"
        self.given: list = [None] * len(ranks)
        self.how: list = [None] * len(ranks)  # None: not here yet
        self.results: list = [None] * len(ranks)
        self.names: list = [name] * len(ranks)
        self.todo: list[int] = []  # shares that nobody works at
        self.open = len(ranks)  # shares that are not done
        self.error: Exception | None = None
        self.alone = False  # does a rank rely on the communication thread?

    def absent(self) -> list[int]:
        """The ranks that are not here yet, by their numbers in the world."""
        return [r for r, how in zip(self.ranks, self.how) if how is None]

    def complete(self) -> None:
        """All are here: check that they mean the same, and let the work begin."""
        calls = list(zip(self.names, self.given, self.how))
        if len({agreed(*call) for call in calls}) > 1 or not exchanged(self.name, self.how):
            self.error = disagreement(self.what, self.ranks, [said_by(*call) for call in calls])
            self.open = 0
        else:
            self.todo = list(range(len(self.ranks)))
        if self.alone:
            self.world.queue.put(self)

    def work(self) -> None:
        """Do shares until none is left to begin."""
        while True:
            with self.world.changed:
                if not self.todo:
                    return
                r = self.todo.pop()
            try:
                self.results[r] = SHARES[self.name](self.given, self.how, r)
            except Exception as error:
                self.error = error
            with self.world.changed:
                self.open -= 1
                if not self.open:
                    self.world.changed.notify_all()


class Part(Work):
    """A rank's part in a round."""

    def __init__(self, round: Round, rank: int, timeout: float):
        self.round, self.rank, self.timeout = round, rank, timeout

    def is_completed(self) -> bool:
        return not self.round.open

    def unwatched(self) -> None:
        self.round.world.hand_over(self.round)

    def wait(self, timeout: float | None = None):
        round, world = self.round, self.round.world
        timeout = self.timeout if timeout is None else timeout
        with world.changed:
            world.wait(lambda: not round.absent(), round.absent, round.what, timeout)
        round.work()
        with world.changed:
            world.wait(lambda: not round.open, list, round.what, timeout)
        if round.error is not None:
            raise round.error
        return round.results[self.rank]


class Box:
    """Messages from one rank to another: sent and not received, or waited for and not sent."""

    def __init__(self):
        self.messages, self.receives = deque(), deque()


class Receive(Work):
    """A message that is waited for."""

    def __init__(self, group: ThreadGroup, array, src: int):
        self.group, self.array, self.src = group, array, src
        self.here, self.error = False, None

    def put(self, message) -> None:
        if (message.shape, message.dtype) != (self.array.shape, self.array.dtype):
            sent, wanted = spec(message), spec(self.array)
            self.error = ValueError(f"recv of {wanted} from rank {self.src}, which sent {sent}")
        else:
            self.array[...] = message
        self.here = True

    def is_completed(self) -> bool:
        return self.here

    def unwatched(self) -> None:
        """Who sends fills it."""

    def wait(self, timeout: float | None = None):
        world = self.group.world
        timeout = self.group.timeout if timeout is None else timeout
        source = [self.group.ranks[self.src]]
        with world.changed:
            world.wait(lambda: self.here, lambda: source, f"recv from rank {self.src}", timeout)
        if self.error is not None:
            raise self.error
        return self.array


class ThreadGroup(ProcessGroup):
    """A group whose ranks are threads of this process."""

    backend = "threads"

    def __init__(self, world: World, id: int, ranks, rank: int, timeout: float = TIMEOUT):
        super().__init__(id, ranks, rank, timeout)
        self.world, self.key, self.count = world, (id, *ranks), 0

    def start(self, name: str, array, **how) -> Work:
        world, key = self.world, (self.key, self.came_to(name))
        with world.changed:
            round = world.rounds.get(key)
            if round is None:
                round = world.rounds[key] = Round(world, name, self.count, self.ranks)
            round.names[self.rank], round.given[self.rank] = name, array
            round.how[self.rank] = how
            last = not round.absent()
            if last:
                del world.rounds[key]
                round.complete()
                world.changed.notify_all()
        if last and (self.size == 1 or array is None or array.nbytes < SMALL):
            round.work()
        return Part(round, self.rank, self.timeout)

    def post(self, array, dst: int, tag: int) -> Work:
        message = array.copy()
        with self.world.changed:
            box = self.world.boxes.setdefault((self.key, self.rank, dst, tag), Box())
            if box.receives:
                box.receives.popleft().put(message)
                self.world.changed.notify_all()
            else:
                box.messages.append(message)
        return Done()

    def take(self, array, src: int, tag: int) -> Work:
        receive = Receive(self, array, src)
        with self.world.changed:
            box = self.world.boxes.setdefault((self.key, src, self.rank, tag), Box())
            if box.messages:
                receive.put(box.messages.popleft())
            else:
                box.receives.append(receive)
        return receive

    def subgroup(self, id: int, ranks, timeout: float) -> ThreadGroup | None:
        own, ranks = self.ranks[self.rank], list(ranks)
        if own not in ranks:
            return None
        return ThreadGroup(self.world, id, ranks, ranks.index(own), timeout)

    def check(self) -> None:
        self.world.check()

    def came_to(self, what: str) -> int:
        self.check()
        self.count += 1
        self.world.doing[self.ranks[self.rank]] = f"{what} number {self.count}"
        self.world.counts[(*self.key, self.rank)] = self.count
        return self.count

    def late(self, number: int, what: str, timeout: float) -> PeerFailed:
        counts = [self.world.counts.get((*self.key, k), 0) for k in range(self.size)]
        last = {r: self.world.doing.get(r) for r in self.ranks}
        behind = [r for r, count in zip(self.ranks, counts) if count < number]
        return self.world.fail(late(what, timeout, behind, last))

    def close(self) -> None:
        """Nothing is held: the world ends when its last rank has."""
