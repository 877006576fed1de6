"""`python -m minipaddle.distributed.launch --nproc 4 train.py`: a script as several processes.

It becomes MPI's `mpiexec`; between that and each rank is a keeper (see `keeper.py`).
Source: Paddle API `paddle.distributed.launch`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from . import keeper
from .spawning import available


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m minipaddle.distributed.launch")
    add = parser.add_argument
    add("--nproc", "--nproc_per_node", type=int, help="how many processes; else one for each core")
    add("--devices", "--gpus", default="", help="the GPUs to use, as 0,1: a process for each")
    add("--ips", default="", help="machines, as 10.0.0.1,10.0.0.2; else this one")
    add("--timeout", type=float, help="the seconds that ranks wait for each other")
    add("script")
    add("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def command(options: argparse.Namespace, mpiexec: str) -> list[str]:
    """The call of `mpiexec`."""
    count = options.nproc or (len(options.devices.split(",")) if options.devices else available())
    hosts = ["-hosts", options.ips] if options.ips else []
    machines = len(options.ips.split(",")) if options.ips else 1
    rank = [sys.executable, keeper.__file__, options.script, *options.arguments]
    return [mpiexec, *hosts, "-n", str(count * machines), *rank]


def find_mpiexec() -> str:
    """Where `mpiexec` is: beside this Python, or on the path. Exits with what to do if nowhere."""
    beside = Path(sys.executable).parent / "mpiexec"
    where = str(beside) if beside.exists() else shutil.which("mpiexec")
    if where is None:
        sys.exit('launch needs mpiexec: pip install "minipaddle[mpi]" (mpi4py and MPICH)')
    return where


def main(arguments: list[str] | None = None) -> None:
    """Become `mpiexec`."""
    options = parse(arguments)
    if options.devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = options.devices
    if options.timeout:
        os.environ["PADDLE_PG_TIMEOUT"] = str(options.timeout * 1e3)
    call = command(options, find_mpiexec())
    os.execv(call[0], call)


if __name__ == "__main__":
    main()
