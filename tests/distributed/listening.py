"""A witness in a thread of this process."""

import socket
import threading

from minipaddle.distributed.failures.watch import FailureWatch
from minipaddle.distributed.failures.witness import Witness

TOKEN = "secret"


class Listening(Witness):
    """A witness of `size` ranks that runs at once; `first` is what rank 0 holds open."""

    def __init__(self, size: int, limit: float = 60.0):
        super().__init__(socket.create_server(("127.0.0.1", 0)), size, TOKEN, limit)
        self.port = self.server.getsockname()[1]
        self.first, self.ear = socket.socketpair()
        self.thread = threading.Thread(target=self.watch, args=[self.ear], daemon=True)
        self.thread.start()

    def meet(self, rank: int, token: str = TOKEN) -> FailureWatch:
        """The end of a rank that meets this witness."""
        return FailureWatch(rank, self.size, "127.0.0.1", self.port, token)

    def stop(self) -> None:
        """End rank 0, and wait for the witness: it ends once the ranks have."""
        self.first.close()
        self.thread.join(5)
        assert not self.thread.is_alive()
        for each in (self.server, self.ear, self.ears, *self.strangers):
            each.close()
