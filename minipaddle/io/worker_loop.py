"""A worker process of the DataLoader: it answers requests until its parent is gone."""

import os
import signal
import threading
import time
from contextlib import suppress
from queue import SimpleQueue

from threadpoolctl import threadpool_limits

from ..executors.hot.background import compute_on_one_thread
from . import channel
from .worker import Failure, WorkerTask, install

SECONDS_BETWEEN_LOOKS_AT_THE_PARENT = 0.5
PATIENCE = 0.01
"""The seconds that a worker waits for a slow reader before it goes on to the next batch."""


def serve(connection, task: WorkerTask, worker: int, seed: int) -> None:
    """Be worker number `worker` of a DataLoader at the other end of `connection`.

    The first answer is `install`'s; then each request is a function and its arguments. A thread
    writes the answers, so the worker makes the next batch while nobody reads this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=die_with, args=[os.getppid()], daemon=True).start()
    compute_on_one_thread()  # the other cores are the other workers'
    threadpool_limits(1)
    writer = AnswerWriter(connection)
    writer.put(answer(install, task, worker, seed))
    with suppress(EOFError, OSError):  # the parent is gone
        while True:
            writer.put(answer(*channel.receive(connection)))


class AnswerWriter:
    """A thread that writes messages, one after the other."""

    def __init__(self, connection):
        self.connection, self.messages, self.idle = connection, SimpleQueue(), threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        with suppress(OSError):
            while True:
                channel.send(self.connection, self.messages.get())
                if self.messages.empty():
                    self.idle.set()

    def put(self, message: bytes) -> None:
        """Write a message, and return when it is written or PATIENCE is over: if this process dies
        of the next request, the parent should have the answers to all before.
        """
        self.idle.clear()
        self.messages.put(message)
        self.idle.wait(PATIENCE)


def answer(function, *arguments) -> bytes:
    """The message with the result of a function, or with the reason why it makes no message."""
    result = function(*arguments)
    try:
        return channel.message(result)
    except Exception as error:
        what = f"{type(result).__name__} cannot travel between processes: {error}"
        return channel.message(Failure(*arguments, what))


def die_with(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS_AT_THE_PARENT)
    os._exit(1)
