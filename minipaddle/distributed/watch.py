"""Who is still there: ranks of several processes tell each other of failures by a side channel.

Messages of a collective say nothing of a rank that is gone: the others would wait for ever. So each
rank holds a line (TCP) to the rank 0, the *hub*. The system cuts the line of a process that dies,
however it dies, and the hub tells the others. A rank that fails says so itself. When one has waited
too long the hub asks all where they are, and names those who did not come or do not answer.

Lines of JSON, and a token that only the ranks of one job know.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from contextlib import suppress

from ..engine.distributed.process_group import CollectiveTimeout, PeerFailed
from ..engine.distributed.thread_group import SILENT, build_timeout

ANSWER = 1.0
"""The seconds a rank has to say where it is."""

GRACE = 2.0
"""The seconds a rank that failed gives the others to hear of it: when it ends, so do they."""


class Line:
    """A connection that carries JSON values, a line each."""

    def __init__(self, connection: socket.socket):
        self.connection, self.lock = connection, threading.Lock()
        self.text = connection.makefile("r", encoding="utf-8")

    def say(self, **message) -> None:
        """Send; nothing happens if the other end is gone."""
        with suppress(OSError), self.lock:
            self.connection.sendall(json.dumps(message).encode() + b"\n")

    def messages(self):
        """What comes, until the line is cut."""
        try:
            for line in self.text:
                yield json.loads(line)
        except (OSError, ValueError):
            return

    def close(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.text.close()
        self.connection.close()


def in_background(function, *args) -> None:
    threading.Thread(target=function, args=args, name=function.__name__, daemon=True).start()


class Hub:
    """The process of rank 0 that has a connection to every rank and passes news on."""

    def __init__(self, size: int, host: str = "127.0.0.1"):
        self.size, self.token = size, secrets.token_hex(16)
        self.server = socket.create_server((host, 0), backlog=size)
        self.port = self.server.getsockname()[1]
        self.lines: dict[int, Line] = {}
        self.ended: set[int] = set()  # ranks that have ended
        self.answers: dict[int, dict] = {}  # rank -> its answer to the last "where"
        self.witness = None  # a process that outlives all ranks: see `mpi.start_witness`
        self.announced = False
        self.history: list[dict] = []  # every message so far, for ranks that connect later
        self.changed = threading.Condition()
        in_background(self.listen)

    def listen(self) -> None:
        while len(self.lines) < self.size:
            line = Line(self.server.accept()[0])
            hello = next(line.messages(), {})
            if hello.get("token") != self.token:
                line.close()
                continue
            with self.changed:
                for message in self.history:
                    line.say(**message)
                self.lines[hello["rank"]] = line
            in_background(self.hear, hello["rank"], line)
        self.server.close()

    def hear(self, rank: int, line: Line) -> None:
        """Handle the messages of one rank until its connection closes."""
        for message in line.messages():
            kind = message.pop("kind")
            if kind == "failed":
                self.announce_failure(rank, f"rank {rank} failed: {message['text']}")
            elif kind == "late":
                in_background(self.find_missing, message)
            elif kind == "here":
                with self.changed:
                    self.answers[rank] = message
                    self.changed.notify_all()
            elif kind == "over":
                self.ended.add(rank)
                self.broadcast(kind="over", rank=rank, counts=message["counts"])
        if rank not in self.ended:
            self.ended.add(rank)
            self.announce_failure(rank, f"rank {rank} died")
            self.broadcast(kind="over", rank=rank, counts={})
        line.close()

    def announce_failure(self, rank: int, text: str, kind: str = "failed") -> None:
        """Tell all ranks of a failure. Only the first counts: it causes those that follow."""
        with self.changed:
            if not self.announced:
                self.announced = True
                self.broadcast(kind=kind, rank=rank, text=text)

    def broadcast(self, **message) -> None:
        with self.changed:
            self.history.append(message)
            for line in self.lines.values():
                line.say(**message)

    def find_missing(self, message: dict) -> None:
        """Ask all ranks where they are, and announce which ones are missing."""
        wanted, key, number = message["ranks"], message["key"], message["number"]
        with self.changed:
            self.answers.clear()
        self.broadcast(kind="where")
        with self.changed:
            self.changed.wait_for(lambda: len(self.answers) == self.size, ANSWER)
            answers = dict(self.answers)
        counts = {r: answers.get(r, {}).get("counts", {}) for r in wanted}
        missing = [r for r in wanted if counts[r].get(key, 0) < number]
        latest = {r: answers[r]["last"] if r in answers else SILENT for r in wanted}
        timeout = build_timeout(message["what"], message["timeout"], missing, latest)
        self.announce_failure(min(missing, default=-1), str(timeout), "timeout")


class Watch:
    """A rank's connection to the hub. `failure` is the first failure that the hub reported."""

    def __init__(self, rank: int, size: int, host: str, port: int, token: str):
        self.rank, self.size = rank, size
        self.failure: PeerFailed | None = None
        self.counts: dict[str, int] = {}  # group -> how many collectives this rank called
        self.last = ""  # the collective it called last
        self.ended: dict[int, dict] = {}  # rank that has ended -> its counts
        self.heard = threading.Event()
        self.line = Line(socket.create_connection((host, port), timeout=30))
        self.line.connection.settimeout(None)
        self.line.say(rank=rank, token=token)
        in_background(self.listen)

    def listen(self) -> None:
        for message in self.line.messages():
            kind = message["kind"]
            if kind == "where":
                self.line.say(kind="here", counts=self.counts, last=self.last)
            elif kind == "over":
                self.ended[message["rank"]] = message["counts"]
            else:
                self.fail(FAILURES[kind](message["text"]))
        if 0 not in self.ended:
            self.fail(PeerFailed("rank 0 died"))
        self.line.close()

    def fail(self, failure: PeerFailed) -> None:
        """Keep the first failure."""
        self.failure = self.failure or failure
        self.heard.set()

    def count_call(self, key: str, what: str) -> int:
        """Count a call of a collective of a group; return its number."""
        self.check()
        number = self.counts[key] = self.counts.get(key, 0) + 1
        self.last = f"{what} number {number}"
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

    def report_timeout(
        self, key: str, number: int, ranks, what: str, timeout: float
    ) -> CollectiveTimeout:
        """Raise the error of a rank that has waited too long; all other ranks raise it too."""
        self.line.say(
            kind="late", key=key, number=number, ranks=list(ranks), what=what, timeout=timeout
        )
        if not self.heard.wait(2 * ANSWER):
            self.fail(build_timeout(what, timeout, [0], {0: SILENT}))
        self.check()
        raise AssertionError("check() raised no failure")

    def report_failure(self, error: BaseException) -> None:
        """Tell the others that this rank failed, unless another rank's failure was the cause."""
        if not isinstance(error, PeerFailed):
            self.line.say(kind="failed", text=f"{type(error).__name__}: {error}")
            self.heard.wait(GRACE)  # the hub's echo

    def leave(self) -> None:
        """Say goodbye. After a failure, wait a moment: the others may still report it."""
        self.line.say(kind="over", counts=self.counts)
        deadline = time.monotonic() + GRACE
        while self.failure and len(self.ended) < self.size and time.monotonic() < deadline:
            time.sleep(0.01)


FAILURES = {"failed": PeerFailed, "timeout": CollectiveTimeout}
