"""Servers that are ranks of an MPI job: each waits for requests of any worker, and answers.

A request is one message with a tag of its own, its answer a message back with the same tag. Both
are written as `paddle.save` writes files: nothing in them is executed. MPI cannot bring a rank back
that died, and ends the job; the next one begins from the servers' files.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import count

from ...engine.core.errors import teach
from ...io.serialization import encode
from ..ranks.mpi import PAUSE, SPIN, TAGS, mpi
from .journal import decode
from .server import RowServer, ServerLost


class Pause:
    """A wait that grows each time, from yielding the processor to a millisecond."""

    def __init__(self):
        self.tries, self.seconds = 0, PAUSE[0]

    def wait(self) -> None:
        """Let other processes run."""
        self.tries += 1
        if self.tries < SPIN // 10:
            return time.sleep(0)
        time.sleep(self.seconds)
        self.seconds = min(2 * self.seconds, PAUSE[1])


def receive(communicator, source: int, tag: int):
    """Receive (rank, tag, object) of a message that has arrived, or None."""
    status = mpi().Status()
    message = communicator.improbe(source, tag, status)
    if message is None:
        return None
    data = bytearray(status.Get_count(mpi().BYTE))
    message.Recv([data, mpi().BYTE])
    return status.Get_source(), status.Get_tag(), decode(bytes(data))


class MPIAnswer:
    """The answer of a rank to a request."""

    def __init__(self, carrier: MPI, rank: int, tag: int, sent):
        self.carrier, self.rank, self.tag, self.sent = carrier, rank, tag, sent

    def result(self, timeout: float):
        """Wait for the answer; raise the server's error."""
        pause, deadline = Pause(), time.monotonic() + timeout
        while (message := receive(self.carrier.communicator, self.rank, self.tag)) is None:
            self.carrier.group.check()
            if time.monotonic() > deadline:
                raise TimeoutError
            pause.wait()
        self.sent[0].Wait()
        answer = message[2]
        if "error" in answer:
            kind = {"ValueError": ValueError}.get(answer["kind"], RuntimeError)
            raise kind(answer["error"])
        return answer["answer"]


class MPI:
    """A carrier of requests over a communicator of all ranks. `ranks` are the servers' ranks.

    All ranks make it together, as it duplicates the communicator of `group`.
    """

    def __init__(self, group, ranks: list[int]):
        self.group, self.ranks, self.servers = group, ranks, len(ranks)
        self.communicator = group.communicator.Dup()
        self.tags = count()

    def send(self, obj, rank: int, tag: int) -> tuple:
        """Start to send an object; return MPI's request, and the bytes that it reads."""
        data = encode(obj)
        return self.communicator.Isend([data, mpi().BYTE], rank, tag), data

    def ask(self, server: int, request: dict) -> MPIAnswer:
        """Send a request to a server."""
        rank, tag = self.ranks[server], next(self.tags) % TAGS
        return MPIAnswer(self, rank, tag, self.send(request, rank, tag))

    def recover(self, server: int) -> None:
        """Raise RuntimeError: MPI cannot restart a server."""
        raise ServerLost(
            teach(
                f"server {server} has died: MPI ends the job",
                hint="start it again with the same folder, or use Ray",
            )
        )

    def serve(self, server: RowServer) -> None:
        """Handle requests until all workers have stopped; TimeoutError if one hangs."""
        pause, sent = Pause(), []
        any_source, any_tag = mpi().ANY_SOURCE, mpi().ANY_TAG
        while not (server.ended.is_set() and not sent):
            message = receive(self.communicator, any_source, any_tag)
            sent = [s for s in sent if not s[0].Test()]
            if message is None:
                self.group.check()
                server.check_workers(self.group.timeout)
                pause.wait()
                continue
            pause, (rank, tag, request) = Pause(), message
            future = server.handle(request)
            future.add_done_callback(partial(self.reply, sent, rank, tag))

    def reply(self, sent: list, rank: int, tag: int, future) -> None:
        """Send the answer of a request, or its error."""
        error = future.exception()
        answer = {"answer": future.result()} if error is None else {
            "kind": type(error).__name__, "error": str(error),
        }  # fmt: skip
        sent.append(self.send(answer, rank, tag))
