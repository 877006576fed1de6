"""The process that reports which rank died first. Rank 0 starts it by its path.

When one rank dies, plain `mpiexec` kills all others within milliseconds: none is left to name it.
This process is not a rank and has a session of its own, so `mpiexec` does not kill it. Each rank
holds a connection to it, and the system closes the connections in the order in which ranks die. It
ends with the last rank. This file imports nothing from the package, so it starts at once.

As a program: `witness.py SOCKET SIZE TOKEN`; its standard input ends when rank 0 does.
"""

import json
import selectors
import socket
import sys
from contextlib import suppress


class Witness:
    """Reads the messages of ranks: {"rank", "token"} at their start, {"failed"} at their end."""

    def __init__(self, server: socket.socket, size: int, token: str):
        self.server, self.size, self.token = server, size, token
        self.ears = selectors.DefaultSelector()
        self.ranks: dict[socket.socket, int] = {}
        self.ended: set[int] = set()  # ranks that said they end
        self.new: list[socket.socket] = []  # connections to welcome
        self.known = False  # whether the first failure was reported, by a rank or here

    def watch(self, first) -> None:
        """Watch until `first` has ended and all connections are closed.

        The system reports events in their order, except that it looks first at a connection that
        was just read. So a rank is welcomed, and goes on, only when its connection was seen to be
        quiet.
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
        """Handle an event of a socket."""
        if source is self.server:
            self.ears.register(self.server.accept()[0], selectors.EVENT_READ)
        elif source is first:
            self.ears.unregister(first)
        else:
            self.hear(source)

    def hear(self, line: socket.socket) -> None:
        """Read the messages of a connection, or notice that it was closed."""
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
        """Forget a connection that was closed, or that is not of a rank."""
        self.ears.unregister(line)
        line.close()
        rank = self.ranks.pop(line, None)
        if rank is not None and rank not in self.ended and not self.known:
            self.known = True
            print(f"rank {rank} of {self.size} died", file=sys.stderr, flush=True)


if __name__ == "__main__":
    place, size, token = sys.argv[1:]
    Witness(socket.socket(fileno=int(place)), int(size), token).watch(sys.stdin.buffer)
