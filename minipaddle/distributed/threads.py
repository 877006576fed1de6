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

from ..core.record import Spec
from ..eager.device import module_of
from .group import TIMEOUT, CollectiveTimeout, Done, PeerFailed, ProcessGroup, Work

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

    def wait(self, ready, absent, what: str, timeout: float) -> None:
        """Wait until `ready()`. `absent()` are the ranks that are waited for.

        The caller holds `changed`.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            gone = [r for r in absent() if r in self.ended]
            if gone and not self.failure:
                self.fail(PeerFailed(f"{what}: rank {gone[0]} {self.ended[gone[0]]}"))
            if self.failure:
                raise type(self.failure)(*self.failure.args)
            if not self.changed.wait(deadline - time.monotonic()) and not ready():
                raise self.fail(late(what, timeout, {r: self.doing.get(r) for r in absent()}))

    def soon(self, seconds: float) -> None:
        """Wait until something happens."""
        with self.changed:
            if not self.failure and len(self.ended) < self.size:
                self.changed.wait(seconds)

    def hand_over(self, round: Round) -> None:
        """Let the communication thread work at a round too."""
        with self.changed:
            if self.queue is None:
                self.queue = SimpleQueue()
                threading.Thread(target=self.serve, name="communication", daemon=True).start()
        self.queue.put(round)

    def serve(self) -> None:
        while (round := self.queue.get()) is not None:
            round.work()


def late(what: str, timeout: float, absent: dict[int, str | None]) -> CollectiveTimeout:
    """The error of those who waited for the ranks of `absent`, which says where each was last."""
    who = "; ".join(
        f"rank {r} did not come ({f'it was last in {last}' if last else 'it was in none before'})"
        for r, last in absent.items()
    )
    return CollectiveTimeout(f"{what} waited {timeout:g} s: {who}")


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

    def absent(self) -> list[int]:
        """The ranks that are not here yet, by their numbers in the world."""
        return [r for r, how in zip(self.ranks, self.how) if how is None]

    def complete(self) -> None:
        """All are here: check that they mean the same, and let the work begin."""
        calls = list(zip(self.names, self.given, self.how))
        if len({agreed(*call) for call in calls}) > 1 or not exchanged(self.name, self.how):
            said = [said_by(*call) for call in calls]
            lines = "".join(f"\n  rank {r}: {text}" for r, text in zip(self.ranks, said))
            self.error = ValueError(f"{self.what}: the ranks do not ask for the same{lines}")
            self.open = 0
        else:
            self.todo = list(range(len(self.ranks)))

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
        world, self.count = self.world, self.count + 1
        key = self.key, self.count
        with world.changed:
            if world.failure:
                raise type(world.failure)(*world.failure.args)
            round = world.rounds.get(key)
            if round is None:
                round = world.rounds[key] = Round(world, name, self.count, self.ranks)
            round.names[self.rank], round.given[self.rank] = name, array
            round.how[self.rank] = how
            world.doing[self.ranks[self.rank]] = f"{name} number {self.count}"
            last = not round.absent()
            if last:
                del world.rounds[key]
                round.complete()
                world.changed.notify_all()
        if last and self.size > 1 and array is not None and array.nbytes >= SMALL:
            world.hand_over(round)
        elif last:
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

    def close(self) -> None:
        """Nothing is held: the world ends when its last rank has."""


# ---- what the shares are -------------------------------------------------------------------------

COMBINE = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


def fold(arrays, op: str):
    """The sum (or maximum, …) of arrays, in the order of their ranks."""
    m = module_of(arrays[0])
    combine, total = getattr(m, COMBINE[op]), arrays[0].copy()
    for array in arrays[1:]:
        combine(total, array, out=total)
    return total


def cut(n: int, parts: int, k: int) -> slice:
    """Part `k` of n things."""
    return slice(n * k // parts, n * (k + 1) // parts)


def rows(array, parts: int, k: int):
    """Part `k` of an array that is cut along axis 0."""
    return array[cut(array.shape[0], parts, k)]


def share_of_all_reduce(given, how, r: int):
    """Add up an r-th of the elements, and write them where each rank wants them."""
    flat = [array.reshape(-1) for array in given]
    part = cut(flat[0].size, len(given), r)
    total = fold([array[part] for array in flat], how[r]["op"])
    for array in flat:
        array[part] = total
    return given[r]


def share_of_reduce(given, how, r: int):
    flat, root = [array.reshape(-1) for array in given], how[r]["root"]
    part = cut(flat[0].size, len(given), r)
    flat[root][part] = fold([array[part] for array in flat], how[r]["op"])
    return given[r]


def share_of_broadcast(given, how, r: int):
    if r != how[r]["root"]:
        given[r][...] = given[how[r]["root"]]
    return given[r]


def share_of_all_gather(given, how, r: int):
    return module_of(given[0]).concatenate(given)


def share_of_gather(given, how, r: int):
    return share_of_all_gather(given, how, r) if r == how[r]["root"] else None


def share_of_reduce_scatter(given, how, r: int):
    return fold([rows(array, len(given), r) for array in given], how[r]["op"])


def share_of_scatter(given, how, r: int):
    out = how[r]["out"]
    out[...] = rows(given[how[r]["root"]], len(given), r).reshape(out.shape)
    return out


def share_of_all_to_all(given, how, r: int):
    begins = [sum(h["sent"][:r]) for h in how]
    mine = [a[b : b + h["sent"][r]] for a, b, h in zip(given, begins, how)]
    return module_of(given[0]).concatenate(mine)


SHARES = {
    "all_gather": share_of_all_gather,
    "all_reduce": share_of_all_reduce,
    "all_to_all": share_of_all_to_all,
    "barrier": lambda given, how, r: None,
    "broadcast": share_of_broadcast,
    "gather": share_of_gather,
    "reduce": share_of_reduce,
    "reduce_scatter": share_of_reduce_scatter,
    "scatter": share_of_scatter,
}
"""What rank `r` gets, of what all gave; and an r-th of the work of a reduction."""


def spec(array) -> Spec:
    return Spec(array.shape, array.dtype)


def agreed(name: str, array, how: dict) -> tuple:
    """What must be the same in all ranks."""
    if name == "scatter":
        array = how["out"]
    if array is None:
        return (name,)
    shape = array.shape if name != "all_to_all" else array.shape[1:]
    return name, how.get("op"), how.get("root"), shape, array.dtype


def exchanged(name: str, how: list[dict]) -> bool:
    """Does each rank await as many rows as are sent to it?"""
    places = range(len(how)) if name == "all_to_all" else ()
    return all(how[a]["sent"][b] == how[b]["received"][a] for a in places for b in places)


def said_by(name: str, array, how: dict) -> str:
    """What a rank asked for, as a call."""
    array = how.get("out", array)
    told = [str(spec(array))] * (array is not None) + [
        f"{k}={v}" for k, v in how.items() if k in ("op", "root", "sent", "received")
    ]
    return f"{name}({', '.join(told)})"
