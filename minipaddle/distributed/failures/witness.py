"""The process that learns which ranks fail, die or are late, and tells all others.

The messages of a collective do not report a rank that is gone: the others would wait forever. So
each rank holds a connection (TCP) to this process. The system closes the connections of ranks that
die, however they die, and in the order in which they die. A rank that fails reports itself. When
one has waited too long, the witness asks all for their last collective, and names the ranks that
did not call it. Ranks that have waited for some seconds report it: if all of them wait for others,
it is a deadlock. As soon as one rank has ended, the witness asks the others again and again: a
stopped one, which does not answer, would keep the others from their end for ever.

Rank 0 starts it by its path. It is not a rank and has a session of its own, so `mpiexec`, which
kills all ranks within milliseconds when one dies, leaves it alone; it ends with the last rank. This
file imports nothing from the package, so it starts at once.

A connection begins with a token that only the ranks of one job know, and the number of the rank.
Until then the witness interprets nothing of it; it has some seconds for that. Then messages are
JSON, a line each. As a program: `witness.py SOCKET SIZE LIMIT`; its standard input is the token, a
line, and ends when rank 0 does: everybody on the machine could read a command line.
"""

import hmac
import json
import math
import selectors
import socket
import sys
import time
from contextlib import suppress

ANSWER = 1.0
"""The seconds that ranks have to answer."""

GREETING = 10.0
"""The seconds that a connection has to send the token."""

STRANGERS = 64
"""The most connections without the token at a time; one more, and the first is closed."""


class Witness:
    """A listener to the ranks: a greeting at the start, then messages that have a "kind".

    limit: the seconds in which a rank must answer when others have ended
    """

    def __init__(self, server: socket.socket, size: int, token: str, limit: float):
        self.server, self.size, self.token, self.limit = server, size, token, limit
        self.ears = selectors.DefaultSelector()
        self.ranks: dict[socket.socket, int] = {}
        self.strangers: dict[socket.socket, float] = {}  # without the token yet -> until when
        self.new: list[socket.socket] = []  # connections to welcome
        self.ended: set[int] = set()
        self.history: list[dict] = []  # every message to all so far, for ranks that connect later
        self.announced = False  # whether the first failure was announced
        self.late: dict | None = None  # the message of a rank that has waited too long
        self.answers: dict[int, dict] = {}  # rank -> its last collective
        self.waiting: dict[int, dict] = {}  # rank -> its wait, after some seconds
        self.deadline = math.inf  # when the ranks must have answered
        self.asked: dict[int, float] = {}  # rank that has not ended -> time of the first question
        self.next = math.inf  # the time of the next question

    def watch(self, first) -> None:
        """Watch until `first` has ended and all connections are closed.

        The system reports events in their order, except that it looks first at a connection that
        was just read. So a rank gets its welcome, and continues, only when its connection was seen
        to be quiet.
        """
        for each in (self.server, first):
            self.ears.register(each, selectors.EVENT_READ)
        while self.ranks or first.fileno() in self.ears.get_map():
            left = min(*self.strangers.values(), self.deadline, self.next) - time.monotonic()
            timeout = max(0.0, left) if left < math.inf else None
            while events := self.ears.select(timeout):
                for key, _ in events:
                    self.notice(key, first)
                timeout = 0
            while self.new:
                send(self.new.pop(), {"kind": "welcome"})
            for line in [s for s, end in self.strangers.items() if time.monotonic() > end]:
                self.cut(line)
            if self.late and (len(self.answers) == self.size or time.monotonic() > self.deadline):
                self.announce_timeout(**self.late)
            if time.monotonic() > self.next:
                self.ask_again()

    def notice(self, key: selectors.SelectorKey, first) -> None:
        """Handle an event of a socket."""
        if key.fileobj is self.server:
            with suppress(OSError):  # it may be gone again
                self.admit(self.server.accept()[0])
        elif key.fileobj is first:
            self.ears.unregister(first)
        elif key.fileobj in self.strangers:
            self.greet(key.fileobj, key.data)
        elif key.fileobj in self.ranks:
            self.read(key.fileobj, key.data)

    def admit(self, line: socket.socket) -> None:
        """Wait for the token of a connection."""
        if len(self.strangers) == STRANGERS:
            self.cut(next(iter(self.strangers)))
        self.strangers[line] = time.monotonic() + GREETING
        self.ears.register(line, selectors.EVENT_READ, bytearray())

    def greet(self, line: socket.socket, unread: bytearray) -> None:
        """Read a greeting, and no more: with the token it is a rank, without it the connection
        closes. The full token is compared, so that nobody can guess it byte by byte.
        """
        size = len(greeting(0, self.token))
        data = receive(line, size - len(unread))
        unread += data
        if len(unread) == size and hmac.compare_digest(unread[:-DIGITS], self.token.encode()):
            del self.strangers[line]
            for each in self.history:
                send(line, each)
            self.ranks[line] = int(unread[-DIGITS:])
            self.new.append(line)
            unread.clear()
        elif not data or len(unread) == size:
            self.cut(line)

    def read(self, line: socket.socket, unread: bytearray) -> None:
        """Read the messages of a rank, or notice that its connection was closed."""
        unread += (data := receive(line, 4096))
        *texts, unread[:] = unread.split(b"\n")
        try:
            for message in map(json.loads, texts):
                self.hear(line, message)
        except ValueError:
            data = b""
        if not data:
            self.cut(line)

    def hear(self, line: socket.socket, message) -> None:
        """Handle a message."""
        rank = self.ranks[line]
        self.asked.pop(rank, None)
        match message:
            case {"kind": "failed", "text": text}:
                self.announce(kind="failed", text=f"rank {rank} failed: {text}")
            case {"kind": "late"} if self.late is None:
                del message["kind"]
                self.late, self.deadline = message, time.monotonic() + ANSWER
                self.answers.clear()
                self.tell_all(kind="where")
            case {"kind": "here"}:
                self.answers[rank] = message
            case {"kind": "waiting"}:
                self.waiting[rank] = message
                self.announce_deadlock()
            case {"kind": "working"}:
                self.waiting.pop(rank, None)
            case {"kind": "over", "counts": counts}:
                self.end(rank, counts)

    def cut(self, line: socket.socket) -> None:
        """Close and forget a connection."""
        self.ears.unregister(line)
        line.close()
        self.strangers.pop(line, None)
        rank = self.ranks.pop(line, None)
        self.asked.pop(rank, None)
        if rank is not None and rank not in self.ended:
            if self.announce(kind="failed", text=f"rank {rank} died"):
                print(f"rank {rank} of {self.size} died", file=sys.stderr, flush=True)
            self.ended.add(rank)

    def end(self, rank: int, counts: dict) -> None:
        """Tell all that a rank has left, after how many collectives of each group."""
        self.ended.add(rank)
        self.tell_all(kind="over", rank=rank, counts=counts)
        self.next = time.monotonic() if len(self.ended) < self.size else math.inf

    def ask_again(self) -> None:
        """Ask the ranks that have not ended for an answer. Announce one that does not answer."""
        now = time.monotonic()
        self.next = now + ANSWER
        for line, rank in self.ranks.items():
            if rank not in self.ended and rank not in self.asked:
                self.asked[rank] = now
                send(line, {"kind": "where"})
        for rank in [rank for rank, since in self.asked.items() if now - since > self.limit]:
            report = f"rank {rank} has not answered for {self.limit:g} s, and others have ended: "
            report += "it is stopped, or in code that is not Python"
            if self.announce(kind="failed", text=report):
                print(report, file=sys.stderr, flush=True)

    def announce_timeout(self, key: str, number: int, ranks: list, what: str, timeout: float):
        """Announce which of some ranks did not call a collective, and the last call of each."""
        missing = self.missing(key, number, ranks)
        who = range(self.size) if missing else ranks
        latest = [(rank, self.answers.get(rank, {}).get("last")) for rank in who]
        waiting = [(rank, answer["waiting"]) for rank, answer in self.answers.items()]
        waits = [(rank, self.missing(*call)) for rank, call in waiting if call]
        facts = {"missing": missing, "latest": latest, "waits": waits}
        self.announce(kind="timeout", what=what, timeout=timeout, **facts)
        self.late, self.deadline = None, math.inf

    def missing(self, key: str, number: int, ranks: list) -> list:
        """The ranks that have not called a collective."""
        counts = {rank: self.answers.get(rank, {}).get("counts", {}) for rank in ranks}
        return [rank for rank in ranks if counts[rank].get(key, 0) < number]

    def announce_deadlock(self) -> None:
        """Announce a deadlock if every rank waits for one that waits elsewhere."""
        if len(self.waiting.keys() | self.ended) < self.size:
            return
        for each in self.waiting.values():
            others = [self.waiting[rank] for rank in each["ranks"] if rank in self.waiting]
            if all(other["counts"].get(each["key"], 0) >= each["number"] for other in others):
                return  # all have called it, and their messages are on the way
        lines = [f"\n  rank {rank}: {each['what']}" for rank, each in sorted(self.waiting.items())]
        title = "the ranks wait for each other: they do not ask for the same"
        self.announce(kind="failed", text=title + "".join(lines))

    def announce(self, **message) -> bool:
        """Tell all of a failure if it is the first, which causes later ones. Was it?"""
        if not (before := self.announced):
            self.announced = True
            self.tell_all(**message)
        return not before

    def tell_all(self, **message) -> None:
        self.history.append(message)
        for line in self.ranks:
            send(line, message)


DIGITS = 8
"""The digits of a rank's number in its greeting."""


def greeting(rank: int, token: str) -> bytes:
    """The first message of a rank."""
    return f"{token}{rank:0{DIGITS}}".encode()


def receive(line: socket.socket, most: int) -> bytes:
    """The bytes that have arrived; none if the connection is closed or broken."""
    with suppress(OSError):
        return line.recv(most)
    return b""


def send(line: socket.socket, message: dict) -> None:
    """Send a message; nothing happens if the other end is gone."""
    with suppress(OSError):
        line.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    descriptor, size = map(int, sys.argv[1:3])
    token = sys.stdin.buffer.readline().decode().strip()
    witness = Witness(socket.socket(fileno=descriptor), size, token, float(sys.argv[3]))
    witness.watch(sys.stdin.buffer)
