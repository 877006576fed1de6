"""The parent process of a rank, between it and `mpiexec`. `launch` starts it by its path.

`mpiexec` kills all ranks at once when one dies, before they can report which one it was. A keeper
outlives its rank for a few seconds, so that they can, and prints how its rank ended. When the
keeper dies, its rank dies too, even a stopped one. A keeper kills a rank that stays stopped
(SIGSTOP) for as long as ranks wait for each other: the others then react as to a dead one. This
file imports nothing from the package, so keepers start at once.
"""

import ctypes
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

GRACE = 3.0
"""The seconds that the other ranks have to learn of a rank that has failed."""

DIE_WITH_PARENT = 1
"""Linux's `prctl(PR_SET_PDEATHSIG)`: the signal to get when the parent ends."""

LOOK = 0.1
"""The seconds between two looks at a stopped rank."""

KILLED = "was killed by"
"""The words that `launch` looks for in the lines of keepers."""


def main() -> None:
    """Start the rank in a process of its own, and wait for it."""
    stay_local()
    rank = os.fork()
    if rank == 0:
        die_with_parent(signal.SIGKILL)
        os.execv(sys.executable, [sys.executable, "-m", "mpi4py", *sys.argv[1:]])
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    code, why = wait(rank, float(os.environ["PADDLE_PG_TIMEOUT"]) / 1e3)
    if code:  # it was killed, or failed before MPI could tell the others: end them all
        report(code, why)
        time.sleep(GRACE)
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


def wait(rank: int, patience: float) -> tuple[int, str]:
    """The exit code of a rank, and why it was killed if it stayed stopped for `patience` seconds.
    They are counted in looks: who stops the keeper as well stops its clock.
    """
    left, why = None, ""  # the seconds in which a stopped rank must continue
    while True:
        looks = os.WUNTRACED | os.WCONTINUED | (0 if left is None else os.WNOHANG)
        pid, status = os.waitpid(rank, looks)
        if not pid and left > 0:
            time.sleep(min(LOOK, left))
            left -= LOOK
        elif not pid:
            why, left = f": it was stopped for {patience:g} s", None
            os.kill(rank, signal.SIGKILL)
        elif os.WIFSTOPPED(status):
            left = patience
        elif os.WIFCONTINUED(status):
            left = None
        else:
            return os.waitstatus_to_exitcode(status), why


def stay_local() -> None:
    """If all ranks are on this machine, let no other machine connect to them: MPICH uses shared
    memory, and the port that `mpiexec` leaves open accepts loopback only (on Linux).
    """
    here = os.environ.get("MPI_LOCALNRANKS")
    if here is None or here != os.environ.get("PMI_SIZE"):
        return
    os.environ.setdefault("UCX_TLS", "self,sm")
    with suppress(OSError, ValueError, AttributeError):  # no Linux; a parent that is not Hydra's
        parent = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
        port = int(parent[parent.index(b"--control-port") + 1].rpartition(b":")[2])
        for number in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError), socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as s:
                if s.getsockname()[1:2] == (port,):  # inherited: it is the socket of `mpiexec`
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")


def die_with_parent(number: int) -> None:
    """Let this process get a signal when its parent ends (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, number)


def report(code: int, why: str) -> None:
    """Print that the rank was killed, in one write; after an error it has printed more itself."""
    if code < 0:
        rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK", "?")
        os.write(2, f"rank {rank} {KILLED} {name_of(-code)}{why}\n".encode())


def name_of(number: int) -> str:
    """The name of a signal: SIGKILL of 9."""
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")


if __name__ == "__main__":
    main()
