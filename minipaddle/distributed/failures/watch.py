"""A rank's end of the side channel that announces failures to ranks in several processes.

The other end is a process of its own: see `witness.py`.
"""

import json
import math
import secrets
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

from ...engine.core.rank import cause
from ...engine.distributed.collectives import CollectiveCall
from ...engine.distributed.process_group import CollectiveTimeout, PeerFailed
from ...engine.distributed.thread_group import SILENT, build_timeout
from ...engine.eager.device import NUMPY
from . import keeper, witness

GRACE = 2.0
"""The seconds that a failed rank gives the others to learn of it: when it ends, so do they."""


class FailureWatch:
    """A rank's connection to the witness. `failure` is the first failure that was announced."""

    def __init__(self, rank: int, size: int, host: str, port: int, token: str):
        self.rank, self.size = rank, size
        self.failure: PeerFailed | None = None
        self.counts: dict[str, int] = {}  # group -> how many collectives this rank called
        self.last: CollectiveCall | str = ""  # the collective that it called last
        self.waiting = None  # (group, number, ranks) of the collective that it waits for
        self.ended: dict[int, dict] = {}  # rank that has left -> its counts
        self.welcome, self.heard = threading.Event(), threading.Event()
        self.connection = socket.create_connection((host, port), timeout=30)
        self.connection.settimeout(None)
        self.lock = threading.Lock()
        self.connection.sendall(witness.greeting(rank, token))
        threading.Thread(target=self.listen, name="watch", daemon=True).start()

    def say(self, **message) -> None:
        """Send a message to the witness."""
        with self.lock:
            witness.send(self.connection, message)

    def listen(self) -> None:
        """Handle the messages of the witness until the connection is closed."""
        with suppress(OSError, ValueError), self.connection, self.connection.makefile() as lines:
            for line in lines:
                self.hear(json.loads(line))
        self.fail(PeerFailed("the witness died"))

    def hear(self, message: dict) -> None:
        match message.pop("kind"):
            case "welcome":
                self.welcome.set()
            case "where":
                last = f"{self.last}"
                self.say(kind="here", counts=self.counts, last=last, waiting=self.waiting)
            case "over":
                self.ended[message["rank"]] = message["counts"]
            case "failed":
                self.fail(PeerFailed(message["text"]))
            case "timeout":
                latest = {r: SILENT if last is None else last for r, last in message.pop("latest")}
                waits = dict(message.pop("waits"))
                self.fail(build_timeout(**message, latest=latest, waits=waits))

    def fail(self, failure: PeerFailed) -> None:
        """Keep the first failure."""
        self.failure = self.failure or failure
        self.heard.set()

    def count_call(self, key: str, what: str) -> int:
        """Count a call of a collective of a group; return its number."""
        self.check()
        number = self.counts[key] = self.counts.get(key, 0) + 1
        self.last = CollectiveCall(what, number, cause.now)
        return number

    def check(self) -> None:
        """Raise the failure, if there is one."""
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args)

    def check_ended(self, key: str, number: int, ranks, what: str) -> None:
        """Raise PeerFailed if one of `ranks` has ended and will never call a collective."""
        for rank in ranks:
            counts = self.ended.get(rank)
            if counts is not None and counts.get(key, 0) < number:
                time.sleep(0.05)  # if it failed, its message is on the way
                self.check()
                raise PeerFailed(f"{what}: rank {rank} has ended")

    def report_waiting(self, key: str, number: int, ranks, what) -> None:
        """Tell the witness that this rank waits for a collective until it sends "working"."""
        call = {"key": key, "number": number, "ranks": list(ranks)}
        self.say(kind="waiting", what=f"{what}", counts=self.counts, **call)

    def report_timeout(
        self, key: str, number: int, ranks, what: str, timeout: float
    ) -> CollectiveTimeout:
        """Raise the error of a rank that has waited too long; all other ranks raise it too."""
        late = {"key": key, "number": number, "ranks": list(ranks), "timeout": timeout}
        self.say(kind="late", what=f"{what}", **late)
        if not self.heard.wait(2 * witness.ANSWER):
            silent = f"{what} waited {timeout:g} s: the witness does not answer"
            self.fail(CollectiveTimeout(silent))
        self.check()
        raise AssertionError("check() raised no failure")

    def report_failure(self, error: BaseException) -> None:
        """Tell the others that this rank failed, unless another rank's failure was the cause."""
        if not isinstance(error, PeerFailed):
            self.say(kind="failed", text=f"{type(error).__name__}: {error}")
            self.heard.wait(GRACE)  # the witness repeats it

    def leave(self) -> None:
        """Leave, and wait until all others have left: MPI would, too, but does not notice a stopped
        rank. After a failure wait a moment: the others, or the keeper of a dead one, may still
        report it.
        """
        self.say(kind="over", counts=self.counts)
        deadline = math.inf
        while len(self.ended) < self.size and time.monotonic() < deadline:
            if self.failure:
                deadline = min(deadline, time.monotonic() + GRACE)
            time.sleep(0.01)


def connect(world, timeout: float, alone: bool) -> tuple[FailureWatch, subprocess.Popen | None]:
    """Connect this rank to the witness, which rank 0 starts (and holds). `alone`: all ranks are on
    one machine.
    """
    host, process = "127.0.0.1" if alone else socket.getfqdn(), None
    letter = NUMPY.zeros(512, "uint8")
    if world.rank == 0:
        token = secrets.token_hex(16)
        process, port = start_witness(host, world.size, token, timeout)
        address = json.dumps([host, port, token]).encode()
        letter[: len(address)] = list(address)
    world.Bcast(letter, 0)
    watch = FailureWatch(world.rank, world.size, *json.loads(bytes(letter).rstrip(b"\0")))
    watch.welcome.wait(30)
    return watch, process


def start_witness(host: str, size: int, token: str, timeout: float) -> tuple[subprocess.Popen, int]:
    """Start the witness; return it, and the port on which it listens. The keeper of a stopped rank,
    if it has one, ends the rank before the witness does.
    """
    with socket.create_server((host, 0), backlog=size) as server:
        descriptor = server.fileno()
        arguments = map(str, (descriptor, size, timeout + keeper.GRACE))
        process = subprocess.Popen(  # its input ends when this process does
            [sys.executable, "-IS", witness.__file__, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[descriptor],
            start_new_session=True,
        )  # fmt: skip
        process.stdin.write(f"{token}\n".encode())
        process.stdin.flush()
        return process, server.getsockname()[1]
