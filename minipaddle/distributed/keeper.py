"""The parent process of a rank, between it and `mpiexec`. `launch` starts it by its path.

`mpiexec` kills all ranks at once when one dies, before they can report which one it was. A keeper
outlives its rank for a few seconds, so that they can. When the keeper dies, its rank dies too, even
a stopped one. This file imports nothing from the package, so keepers start at once.
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


def main() -> None:
    """Start the rank in a process of its own, and wait for it."""
    rank = os.fork()
    if rank == 0:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        os.execv(sys.executable, [sys.executable, "-m", "mpi4py", *sys.argv[1:]])
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1])
    if code:  # it was killed, or has failed before MPI could tell the others: end them all
        time.sleep(GRACE)
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
