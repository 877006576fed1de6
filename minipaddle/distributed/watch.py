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

from ..engine.distributed.group import CollectiveTimeout, PeerFailed
from ..engine.distributed.threads import SILENT, late

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
    """The rank 0's ear: a line to each rank."""

    def __init__(self, size: int, host: str = "127.0.0.1"):
        self.size, self.token = size, secrets.token_hex(16)
        self.server = socket.create_server((host, 0), backlog=size)
        self.port = self.server.getsockname()[1]
        self.lines: dict[int, Line] = {}
        self.over: set[int] = set()  # ranks that said goodbye
        self.said: dict[int, dict] = {}  # rank -> where it is, since the hub asked
        self.witness = None  # a process that outlives all ranks: see `mpi.witnessed`
        self.told = False
        self.news: list[dict] = []  # what all were told: who comes late hears it then
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
                for message in self.news:
                    line.say(**message)
                self.lines[hello["rank"]] = line
            in_background(self.hear, hello["rank"], line)
        self.server.close()

    def hear(self, rank: int, line: Line) -> None:
        """What one rank says, until its line is cut."""
        for message in line.messages():
            kind = message.pop("kind")
            if kind == "failed":
                self.tell(rank, f"rank {rank} failed: {message['text']}")
            elif kind == "late":
                in_background(self.find, message)
            elif kind == "here":
                with self.changed:
                    self.said[rank] = message
                    self.changed.notify_all()
            elif kind == "over":
                self.over.add(rank)
                self.all_told(kind="over", rank=rank, counts=message["counts"])
        if rank not in self.over:
            self.over.add(rank)
            self.tell(rank, f"rank {rank} died")
            self.all_told(kind="over", rank=rank, counts={})
        line.close()

    def tell(self, rank: int, text: str, kind: str = "failed") -> None:
        """Let all know of a failure: the first is the cause of those that follow."""
        with self.changed:
            if not self.told:
                self.told = True
                self.all_told(kind=kind, rank=rank, text=text)

    def all_told(self, **message) -> None:
        with self.changed:
            self.news.append(message)
            for line in self.lines.values():
                line.say(**message)

    def find(self, message: dict) -> None:
        """Ask all where they are, and name those who are waited for."""
        wanted, key, number = message["ranks"], message["key"], message["number"]
        with self.changed:
            self.said.clear()
        self.all_told(kind="where")
        with self.changed:
            self.changed.wait_for(lambda: len(self.said) == self.size, ANSWER)
            said = dict(self.said)
        behind = [r for r in wanted if said.get(r, {}).get("counts", {}).get(key, 0) < number]
        last = {r: said[r]["last"] if r in said else SILENT for r in wanted}
        timeout = late(message["what"], message["timeout"], behind, last)
        self.tell(min(behind, default=-1), str(timeout), "timeout")


class Watch:
    """A rank's end of the line to the hub. `failure` is what it heard."""

    def __init__(self, rank: int, size: int, host: str, port: int, token: str):
        self.rank, self.size = rank, size
        self.failure: PeerFailed | None = None
        self.counts: dict[str, int] = {}  # of each group: the collectives this rank came to
        self.last = ""  # the one it came to last
        self.over: dict[int, dict] = {}  # rank that has ended -> its counts
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
                self.over[message["rank"]] = message["counts"]
            else:
                self.fail(FAILURES[kind](message["text"]))
        if 0 not in self.over:
            self.fail(PeerFailed("rank 0 died"))
        self.line.close()

    def fail(self, failure: PeerFailed) -> None:
        """The first failure that is heard of counts."""
        self.failure = self.failure or failure
        self.heard.set()

    def came_to(self, key: str, what: str) -> int:
        """This rank comes to the next collective of a group; its number."""
        self.check()
        number = self.counts[key] = self.counts.get(key, 0) + 1
        self.last = f"{what} number {number}"
        return number

    def check(self) -> None:
        """Raise what was heard of."""
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args)

    def check_ended(self, key: str, number: int, ranks, what: str) -> None:
        """Raise PeerFailed if one of `ranks` has ended and never comes to a collective."""
        for rank in ranks:
            counts = self.over.get(rank)
            if counts is not None and counts.get(key, 0) < number:
                time.sleep(0.05)  # if it failed, that is on its way
                self.check()
                raise PeerFailed(f"{what}: rank {rank} has ended")

    def late(self, key: str, number: int, ranks, what: str, timeout: float) -> CollectiveTimeout:
        """The error of one who has waited too long; all the others will raise it too."""
        self.line.say(
            kind="late", key=key, number=number, ranks=list(ranks), what=what, timeout=timeout
        )
        if not self.heard.wait(2 * ANSWER):
            self.fail(late(what, timeout, [0], {0: SILENT}))
        self.check()
        raise AssertionError("a failure was heard of")

    def failed(self, error: BaseException) -> None:
        """This rank failed: tell the others. What another's failure has caused is not told."""
        if not isinstance(error, PeerFailed):
            self.line.say(kind="failed", text=f"{type(error).__name__}: {error}")
            self.heard.wait(GRACE)  # the hub's echo

    def leave(self) -> None:
        """This rank ends. After a failure the others may tell of it before all are ended."""
        self.line.say(kind="over", counts=self.counts)
        deadline = time.monotonic() + GRACE
        while self.failure and len(self.over) < self.size and time.monotonic() < deadline:
            time.sleep(0.01)


FAILURES = {"failed": PeerFailed, "timeout": CollectiveTimeout}
