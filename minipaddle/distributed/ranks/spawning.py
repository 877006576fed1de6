"""`spawn`: run a function as several ranks, threads of this process."""

import ctypes
import os
import threading
import time
from typing import NamedTuple

from ...engine.core.errors import type_error, value_error
from ...engine.core.rank import own_settings
from ...engine.distributed.process_group import PeerFailed
from ...engine.distributed.thread_group import World
from ...engine.eager.device import current_place
from ..parallel import count_gpus, init_parallel_env, seconds_to_wait
from . import known_groups
from .mpi import is_started_by_mpi

GRACE = 2.0
"""The seconds that ranks have to notice a failure before they are given up."""


class Stopped(BaseException):
    """The error in a rank that still computes when the others have failed."""


class SpawnContext:
    """Running ranks. `results` are the return values of the function in each."""

    def __init__(self, function, args, world: World):
        self.world, self.results = world, [None] * world.size
        self.error: tuple[int, BaseException] | None = None
        names = [f"rank {rank}" for rank in range(world.size)]
        self.processes = [
            threading.Thread(target=self.run, args=(k, function, args), name=name, daemon=True)
            for k, name in enumerate(names)
        ]
        for thread in self.processes:
            thread.start()

    def run(self, rank: int, function, args) -> None:
        try:
            own_settings()
            known_groups.enter(self.world.group(rank))
            self.results[rank] = function(*args)
            for last in known_groups.current_groups().before_end:
                last()
            self.world.end(rank)
        except BaseException as error:
            if isinstance(error, SystemExit) and not error.code:
                return self.world.end(rank)
            if self.error is None or (is_caused(self.error[1]) and not is_caused(error)):
                self.error = rank, error
            self.world.end(rank, error)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all ranks; raise the error of the first that failed. False after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while self.running() and not self.world.failure:
                if deadline is not None and time.monotonic() > deadline:
                    return False
                self.wait_for_change(0.1)
        except BaseException as error:  # an interrupt: no rank continues alone
            self.world.fail(PeerFailed(f"interrupted: {type(error).__name__}"))
            self.end()
            raise
        if self.world.failure:
            self.end()
        if self.error is not None:
            rank, error = self.error
            error.add_note(f"(in rank {rank} of {self.world.size})")
            raise error
        return True

    def wait_for_change(self, seconds: float) -> None:
        """Wait until something happens in the world, at most `seconds`."""
        with self.world.changed:
            if not self.world.failure and len(self.world.ended) < self.world.size:
                self.world.changed.wait(seconds)

    def running(self) -> list[int]:
        """The ranks that have not ended."""
        return [k for k, thread in enumerate(self.processes) if thread.is_alive()]

    def end(self) -> None:
        """Wait a little for the ranks to notice a failure, then stop those that compute on."""
        deadline = time.monotonic() + GRACE
        for k, thread in enumerate(self.processes):
            thread.join(max(0, deadline - time.monotonic()))
            if thread.is_alive():
                stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
                stop(ctypes.c_ulong(thread.ident), ctypes.py_object(Stopped))
                self.error = self.error or (k, self.world.failure)


def is_caused(error: BaseException) -> bool:
    """Is the error a consequence of another rank's?"""
    return isinstance(error, PeerFailed | Stopped)


def spawn(func, args=(), nprocs=-1, join=True, daemon=False, **options):
    """Run `func(*args)` as `nprocs` ranks; -1: one for each core, or each GPU.

    The ranks are threads of this process: `func` may be a closure or a function of a notebook. If
    this process itself is one of several ranks (started by `mpiexec` or `launch`), `func` runs as
    that rank, so that one script serves both. `timeout` is the number of seconds that a rank waits
    for the others. Returns a context; with `join` after all have ended, its `results` are the
    return values of `func` in each. Raises the error of the first rank that failed. Threads end
    with the process for any value of `daemon`.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     x = paddle.to_tensor([1.0 + dist.get_rank()])
    ...     dist.all_reduce(x)
    ...     return x.item()
    >>> dist.spawn(work, nprocs=3).results
    [6.0, 6.0, 6.0]
    """
    timeout = options.pop("timeout", seconds_to_wait())
    if options:
        raise type_error(
            f"spawn with {', '.join(options)}", expected="timeout, the seconds to wait"
        )
    if is_started_by_mpi() and init_parallel_env().size > 1:
        return FinishedRank(func(*args))
    nprocs = count_available() if nprocs == -1 else nprocs
    if nprocs < 1:
        raise value_error(f"spawn of {nprocs} ranks", expected="1 or more, or -1")
    context = SpawnContext(func, args, World(nprocs, timeout))
    if join:
        context.join()
    return context


class FinishedRank(NamedTuple):
    """The result of `spawn` in a process that is one rank itself."""

    result: object

    @property
    def results(self) -> list:
        """The result of this rank."""
        return [self.result]

    def join(self, timeout: float | None = None) -> bool:
        """Return True: it has ended."""
        return True


def count_available() -> int:
    """The number of ranks that this machine has room for."""
    if current_place().kind == "gpu":
        return count_gpus()
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
