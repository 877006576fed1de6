"""The parent process of a rank, between it and `mpiexec`. `launch` starts it by its path.

`mpiexec` kills all ranks at once when one dies, before they can report which one it was. A keeper
outlives its rank for a few seconds, so that they can, and prints how its rank ended. When the
keeper dies, its rank dies too, even a stopped one. This file imports nothing from the package, so
keepers start at once.
"""

import ctypes
import os
import signal
import sys
import time

GRACE = 3.0
"""The seconds that the other ranks have to learn of a rank that has failed."""

DIE_WITH_PARENT = 1
"""Linux's `prctl(PR_SET_PDEATHSIG)`: the signal to get when the parent ends."""

KILLED = "was killed by"
"""What `launch` looks for in the lines of keepers."""


def main() -> None:
    """Start the rank in a process of its own, and wait for it."""
    rank = os.fork()
    if rank == 0:
        die_with_parent(signal.SIGKILL)
        os.execv(sys.executable, [sys.executable, "-m", "mpi4py", *sys.argv[1:]])
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1])
    if code:  # it was killed, or has failed before MPI could tell the others: end them all
        report(code)
        time.sleep(GRACE)
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


def die_with_parent(number: int) -> None:
    """Let this process get a signal when its parent ends (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, number)


def report(code: int) -> None:
    """Print that the rank was killed, in one write; of an error it has printed more itself."""
    if code < 0:
        rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK", "?")
        os.write(2, f"rank {rank} {KILLED} {name_of(-code)}\n".encode())


def name_of(number: int) -> str:
    """The name of a signal: SIGKILL of 9."""
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")


if __name__ == "__main__":
    main()
