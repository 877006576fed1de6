"""The worker processes of one DataLoader, seen from the process that trains."""

import multiprocessing
import os
import signal
import sys
import warnings
import weakref
from collections import deque

from ..engine.core.errors import runtime_error
from ..tensor.generator import GENERATOR
from . import channel
from . import worker as w
from .worker_loop import serve


def context():
    """How processes are started. A fork begins at once, with the data set where it lies in memory;
    it cannot use a GPU that its parent uses.
    """
    if sys.platform == "linux" and "cupy" not in sys.modules:
        return multiprocessing.get_context("fork")
    from loky.backend import get_context, reduction

    reduction.register(channel.Tensor, channel.reduce_tensor)
    return get_context("loky")


class WorkerPool:
    """Worker processes that make the batches of a task, each with a connection of its own.

    `timeout` is the number of seconds that a batch may take, or 0.
    """

    def __init__(self, task: w.WorkerTask, timeout: float):
        self.timeout = timeout
        self.processes, self.connections = [], []
        self.dismiss = weakref.finalize(
            self, dismiss, self.processes, self.connections, os.getpid()
        )
        self.waiting = deque()  # (worker, request), in the order of the requests
        seed, start = GENERATOR.draw() % 2**31, context()
        for k in range(task.num_workers):
            here, there = start.Pipe()
            self.connections.append(here)
            process = start.Process(target=serve, args=(there, task, k, seed + k), daemon=True)
            with there, warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
                process.start()  # newer Pythons warn of a fork beside threads
            self.processes.append(process)
        for k in range(task.num_workers):
            self.result(k, "its start", 0)

    def restart(self) -> None:
        """Begin again; what an epoch that was left early still waits for is read and dropped."""
        while self.waiting:
            self.answer(*self.waiting.popleft(), self.timeout)
        for k in range(len(self.processes)):
            self.ask(k, "its restart", w.restart)
        for k in range(len(self.processes)):
            self.result(k, "its restart", self.timeout)

    def ask(self, k: int, request, *call) -> None:
        """Send worker `k` a function and its arguments."""
        try:
            data = channel.message(call)
        except Exception as error:
            what = f"{format_request(request)} cannot travel between processes: {error}"
            raise RuntimeError(f"DataLoader worker {k}: {what}") from error
        try:
            channel.send(self.connections[k], data)
        except OSError:
            raise self.death(k, request) from None

    def answer(self, k: int, request, timeout: float):
        """The next answer of worker `k`; raises RuntimeError if it died, or takes too long."""
        connection, what = self.connections[k], format_request(request)
        try:
            if timeout and not connection.poll(timeout):
                late = f"DataLoader worker {k} took more than {timeout} s for {what}"
                raise RuntimeError(late)
            return channel.receive(connection)
        except (EOFError, OSError):
            raise self.death(k, request) from None

    def result(self, k: int, request, timeout: float):
        """The same, and RuntimeError if the worker reports a failure."""
        answer = self.answer(k, request, timeout)
        if isinstance(answer, w.Failure):
            where = f"DataLoader worker {k} failed at {format_request(answer.sample)}"
            raise RuntimeError(f"{where}. The original traceback:\n\n{answer.traceback}")
        return answer

    def death(self, k: int, request) -> RuntimeError:
        """The error for a worker that is gone."""
        self.processes[k].join(1)
        code = self.processes[k].exitcode
        how = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        died = f"DataLoader worker {k} died while it worked on {format_request(request)}: {how}"
        cause = "it may have run out of memory or crashed in native code"
        return runtime_error(died, hint=f"{cause}; num_workers=0 shows where")

    def batches(self, requests, ahead: int):
        """The answers in the order of the requests, each worker up to `ahead` of them in advance.

        Request i goes to the next worker in turn; a worker whose stream is over leaves the turn.
        """
        turn, waiting = deque(range(len(self.processes))), self.waiting
        while True:
            while turn and len(waiting) < ahead * len(turn):
                request = next(requests, w.END)
                if request is w.END:
                    turn.clear()
                    break
                k = turn[0]
                turn.rotate(-1)
                self.ask(k, request, w.fetch, request)
                waiting.append((k, request))
            if not waiting:
                return
            k, request = waiting.popleft()
            answer = self.result(k, request, self.timeout)
            if isinstance(answer, w.StreamEnd):
                if k in turn:
                    turn.remove(k)
                continue
            yield answer


def dismiss(processes: list, connections: list, owner: int) -> None:
    """End the workers at once, whatever they are doing; in a fork of their owner, do nothing."""
    if os.getpid() != owner:
        return
    for process in processes:
        if process.exitcode is None:
            os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            process.join()
    for connection in connections:
        connection.close()


def format_request(request) -> str:
    """A request in words, for a message."""
    if request is None:
        return "the next batch of the stream"
    if isinstance(request, list):
        return f"the samples {request}"
    return f"sample {request}" if isinstance(request, int) else str(request)
