"""The process that sees which rank died first, and says so. It is started by its path, by rank 0.

Plain `mpiexec` kills all ranks within milliseconds of one that dies: none is left to name it. This
process is no rank and in a session of its own, so nobody kills it. Each rank holds a line to it;
the system cuts those of the dead in the order in which they die. It ends with the last rank. This
file imports nothing of the package: it is there at once.

As a program: `witness.py SOCKET SIZE TOKEN`; its standard input ends when rank 0 does.
"""

import json
import selectors
import socket
import sys
from contextlib import suppress


class Witness:
    """Reads what ranks say when they come, {"rank", "token"}, and when they end, {"failed"}."""

    def __init__(self, server: socket.socket, size: int, token: str):
        self.server, self.size, self.token = server, size, token
        self.ears = selectors.DefaultSelector()
        self.ranks: dict[socket.socket, int] = {}
        self.ended: set[int] = set()  # ranks that said so
        self.new: list[socket.socket] = []  # to be welcomed
        self.known = False  # was the cause of what follows said, by a rank or here?

    def watch(self, first) -> None:
        """Until `first` has ended and all lines are cut.

        The system gives what happens in its order, but for a line that has just been read: it looks
        at that first. So a rank is welcomed, and goes on, when its line was seen to be quiet.
        """
        for each in (self.server, first):
            self.ears.register(each, selectors.EVENT_READ)
        while self.ranks or first.fileno() in self.ears.get_map():
            timeout = None
            while events := self.ears.select(timeout):
                for key, _ in events:
                    self.notice(key.fileobj, first)
                timeout = 0
            while self.new:
                with suppress(OSError):
                    self.new.pop().sendall(b"{}\n")  # welcome

    def notice(self, source, first) -> None:
        """Something has happened there."""
        if source is self.server:
            self.ears.register(self.server.accept()[0], selectors.EVENT_READ)
        elif source is first:
            self.ears.unregister(first)
        else:
            self.hear(source)

    def hear(self, line: socket.socket) -> None:
        """Messages of a line, or that it was cut."""
        try:
            said = [json.loads(text) for text in line.recv(4096).splitlines()]
        except (OSError, ValueError):
            said = []
        for message in said:
            if line in self.ranks:
                self.ended.add(self.ranks[line])
                self.known = self.known or message["failed"]
            elif isinstance(message, dict) and message.get("token") == self.token:
                self.ranks[line] = message["rank"]
                self.new.append(line)
        if not said or line not in self.ranks:
            self.cut(line)

    def cut(self, line: socket.socket) -> None:
        """A line that is no more, or a stranger's."""
        self.ears.unregister(line)
        line.close()
        rank = self.ranks.pop(line, None)
        if rank is not None and rank not in self.ended and not self.known:
            self.known = True
            print(f"rank {rank} of {self.size} died", file=sys.stderr, flush=True)


if __name__ == "__main__":
    place, size, token = sys.argv[1:]
    Witness(socket.socket(fileno=int(place)), int(size), token).watch(sys.stdin.buffer)
