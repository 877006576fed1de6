"""Servers in this process, which threads ask: the embedded default."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future

from ...engine.core.errors import runtime_error, teach
from .server import RowServer, ServerLost


class Threads:
    """`servers` servers for `workers` workers, with their files in `folder`. Those with a number in
    `absent` are added later, by `add`: other threads host them.
    """

    def __init__(self, servers: int = 1, workers: int = 1, folder=None, absent: Iterable = ()):
        self.servers, self.workers, self.folder = servers, workers, folder
        self.lock = threading.Lock()
        self.hosted: dict[int, RowServer | None] = {}
        self.arrived = threading.Condition()
        for index in {*range(servers)} - {*absent}:
            self.add(RowServer(index, servers, workers, folder))

    def add(self, server: RowServer) -> None:
        """Host a server."""
        with self.arrived:
            self.hosted[server.index] = server
            self.arrived.notify_all()

    def wait_for_all(self, timeout: float) -> None:
        """Wait until all servers are added."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: len(self.hosted) == self.servers, timeout):
                missing = sorted({*range(self.servers)} - {*self.hosted})
                raise runtime_error(
                    f"no server {missing} after {timeout} s", hint="fleet.run_server()"
                )

    def ask(self, server: int, request: dict) -> Future:
        """Let a server handle a request, on this thread."""
        return self.hosted[server].handle(request)

    def kill(self, server: int) -> None:
        """Drop a server with all its tables."""
        self.hosted[server].die()

    def recover(self, server: int) -> None:
        """Restore a dead server from its files."""
        with self.lock:
            dead = self.hosted[server]
            if not dead.dead:
                return  # another worker was faster
            if dead.journal is None:
                raise ServerLost(
                    teach(f"server {server} has died, and it had no files", hint="give a folder")
                )
            again = RowServer(server, self.servers, self.workers, dead.journal.folder, anew=False)
            if again.ended.is_set():
                dead.ended.set()
            again.ended = dead.ended  # a thread may wait for it
            self.add(again)
