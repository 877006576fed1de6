"""`python -m minipaddle.distributed.launch --nproc 4 train.py`: run a script as several processes.

With `--server_num 1 --trainer_num 2` they are parameter servers, then workers, and the environment
gives each its role, which `fleet.PaddleCloudRoleMaker` reads.

The process becomes MPI's `mpiexec`; between it and each rank is a keeper (see `keeper.py`). With
`--max_restart` it stays: MPI's world is fixed, so when a rank is lost the world ends, and it starts
another one (see `failures/restarting.py`). Source: Paddle API `paddle.distributed.launch`.
"""

import argparse
import os
import re
import shutil
import sys
from functools import partial
from itertools import groupby
from pathlib import Path

from .failures import keeper, restarting
from .parallel import seconds_to_wait
from .ranks.spawning import count_available


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m minipaddle.distributed.launch")
    add = parser.add_argument
    add("--nproc", "--nproc_per_node", type=int, help="how many processes; else one for each core")
    add("--devices", "--gpus", default="", help="the GPUs to use, as 0,1: a process for each")
    add("--ips", default="", help="machines, as 10.0.0.1,10.0.0.2; else this one")
    add("--nnodes", default="", help="how many of these, or the least and the most, as 1:4")
    add("--server_num", "--servers", type=int, default=0, help="how many parameter servers")
    add("--trainer_num", "--workers", type=int, default=1, help="how many workers they have")
    waits = "the seconds that ranks wait for each other, and for one that is stopped"
    add("--timeout", type=float, default=seconds_to_wait(), help=waits)
    again = "how often a job that failed is started again, unless it was by an error of the script "
    again += "before the first step of fleet.elastic.steps or checkpoint of save_state_dict"
    add("--max_restart", type=int, default=0, help=again)
    levels = "with as many ranks (1), or with those that were not killed (2)"
    add("--elastic_level", type=int, choices=(1, 2), default=1, help=levels)
    waits = "the seconds in which machines must answer to be used again"
    add("--elastic_timeout", type=float, default=30.0, help=waits)
    add("script")
    add("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    machines = options.ips.split(",") if options.ips else [""]
    if not re.fullmatch(r"(\d+(:\d+)?)?", options.nnodes):
        parser.error(f"--nnodes {options.nnodes}: expected a number, or two as 1:4")
    counts = [int(n) for n in options.nnodes.split(":") if n] or [1, len(machines)]
    options.least, options.machines = counts[0], machines[: counts[-1]]
    if options.server_num and options.max_restart:
        parser.error("--max_restart with --server_num: start it again, on the servers' folder")
    if not 1 <= options.least <= len(options.machines):
        parser.error(f"--nnodes {options.nnodes}, and --ips lists {len(machines)}")
    return options


def places_of(options: argparse.Namespace) -> list[str]:
    """The machine of each rank; "" where `mpiexec` chooses it."""
    devices = options.devices.split(",") if options.devices else ()
    count = options.nproc or len(devices) or count_available()
    return [machine for machine in options.machines for _ in range(count)]


def program_of(options: argparse.Namespace) -> list[str]:
    """The command of each rank; `import paddle` finds MiniPaddle there if it does here."""
    through = ["-m", "minipaddle", "run"] if "paddle" in sys.modules else []
    return [sys.executable, keeper.__file__, *through, options.script, *options.arguments]


def build_call(mpiexec: str, places: list[str], program: list[str]) -> list[str]:
    """The call of `mpiexec` that runs a program on each of some places."""
    runs = [f"{machine}:{len([*ranks])}" for machine, ranks in groupby(places)]
    hosts = ["-hosts", ",".join(runs)] if places[0] else []
    return [mpiexec, *hosts, "-n", str(len(places)), *program]


def build_server_call(options: argparse.Namespace, mpiexec: str) -> list[str]:
    """The call of `mpiexec` for a job with parameter servers."""
    hosts = ["-hosts", options.ips] if options.ips else []
    roles = assign_roles(options.server_num, options.trainer_num, program_of(options))
    return [mpiexec, *hosts, *roles]


def assign_roles(servers: int, workers: int, rank: list[str]) -> list[str]:
    """`mpiexec`'s arguments for parameter servers, then workers, each with its role in the
    environment. Addresses are names: MPI carries the bytes. Ray starts servers itself.
    """
    ports = [str(k) for k in range(servers)]
    common = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(f"server:{port}" for port in ports)}
    common |= {"PADDLE_TRAINERS_NUM": str(workers), "POD_IP": "server"}
    if os.environ.get("MINIPADDLE_PS_CARRIER") == "ray":
        ports = []
    roles = [{"TRAINING_ROLE": "PSERVER", "PADDLE_PORT": port} for port in ports]
    roles += [{"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(k)} for k in range(workers)]
    arguments: list[str] = []
    for role in roles:
        settings = [word for pair in (common | role).items() for word in ("-env", *pair)]
        arguments += [*([":"] if arguments else []), "-n", "1", *settings, *rank]
    return arguments


def find_mpiexec() -> str:
    """The path of `mpiexec`: beside this Python, or on PATH. If it is missing, exit with advice."""
    beside = Path(sys.executable).parent / "mpiexec"
    path = str(beside) if beside.exists() else shutil.which("mpiexec")
    if path is None:
        sys.exit('launch needs mpiexec: pip install "minipaddle[mpi]" (mpi4py and MPICH)')
    return path


def main(arguments: list[str] | None = None) -> None:
    """Become `mpiexec`, or start it until the job succeeds."""
    options = parse(arguments)
    if options.devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = options.devices
    os.environ["PADDLE_PG_TIMEOUT"] = str(options.timeout * 1e3)
    start, places, program = (
        partial(build_call, find_mpiexec()),
        places_of(options),
        program_of(options),
    )
    if options.max_restart:
        sys.exit(restarting.run(options, places, program, start))
    call = start(places, program)
    if options.server_num:
        call = build_server_call(options, call[0])
    os.execv(call[0], call)


if __name__ == "__main__":
    main()
