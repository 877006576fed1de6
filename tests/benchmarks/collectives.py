"""Collectives on threads and on MPI processes beside PyTorch's gloo: latency and bandwidth.

Each engine is started anew in each round, one after the other; the table shows medians over the
rounds of rank 0's median time. Bandwidth is the size of the array over that time.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SIZES = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26]
NAMES = ("all_reduce", "broadcast", "all_gather")
ROUNDS, SECONDS = 3, 0.15
ENGINES = ("threads", "mpi", "gloo")


# ---- in a rank -------------------------------------------------------------------------------


def measured(call, barrier, times) -> float:
    """The median seconds of a call, of as many as `times` says."""
    took = []
    for _ in range(times):
        barrier()
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def figures(barrier, calls) -> dict:
    """{collective: seconds for each size}; `calls(name, array)` gives what is called."""
    found = {"barrier": [measured(barrier, barrier, 200)]}
    for name in NAMES:
        found[name] = []
        for size in SIZES:
            call = calls(name, np.ones(size // 4, "float32"))
            times = int(min(300, max(5, SECONDS / (2e-5 + size / 1e9))))  # the same in all ranks
            call()
            found[name].append(measured(call, barrier, times))
    return found


def ours() -> dict:
    from minipaddle import distributed as dist

    group = dist.init_parallel_env()
    return figures(group.barrier, lambda name, array: lambda: getattr(group, name)(array))


def gloo() -> dict:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dist.init_process_group("gloo")

    def calls(name, array):
        x = torch.from_numpy(array)
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        return {
            "all_reduce": lambda: dist.all_reduce(x),
            "broadcast": lambda: dist.broadcast(x, 0),
            "all_gather": lambda: dist.all_gather(parts, x),
        }[name]

    found = figures(dist.barrier, calls)
    found = found if dist.get_rank() == 0 else {}
    dist.destroy_process_group()
    return found


def main(engine: str, ranks: int) -> None:
    """Be an engine, or one rank of it; rank 0 prints."""
    if engine == "threads":
        from minipaddle.distributed import spawn

        found = spawn(ours, nprocs=ranks).results[0]
    else:
        found = {"mpi": ours, "gloo": gloo}[engine]()
    if int(os.environ.get("PMI_RANK", os.environ.get("RANK", 0))) == 0:
        print(json.dumps(found), flush=True)


# ---- who starts them -------------------------------------------------------------------------


def started(engine: str, ranks: int) -> dict:
    """The figures of one start of an engine."""
    own = ["-m", "tests.benchmarks.collectives", engine, str(ranks)]
    if engine == "gloo":
        return of_processes(own, ranks)
    python = [sys.executable, *own]
    if engine == "mpi":
        mpiexec = Path(sys.executable).parent / "mpiexec"
        python = [str(mpiexec), "-n", str(ranks), sys.executable, "-m", "mpi4py", *own]
    return json.loads(subprocess.run(python, check=True, capture_output=True, text=True).stdout)


def of_processes(own: list[str], ranks: int) -> dict:
    """The figures of processes that meet at a port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    processes = [
        subprocess.Popen(
            [sys.executable, *own],
            env=os.environ | where | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(ranks)
    ]
    said = [p.communicate()[0] for p in processes]
    return json.loads(said[0])


def run(threads: int, arguments) -> None:
    """Print the tables for two and for four ranks."""
    for ranks in (2, 4):
        rounds: dict[str, list] = {engine: [] for engine in ENGINES}
        for _ in range(ROUNDS):
            for engine, found in rounds.items():
                found.append(started(engine, ranks))
        print(f"\n{ranks} ranks, medians of {ROUNDS} rounds; µs (GB/s)")
        print(f"{'':<12}{'bytes':>10}" + "".join(f"{engine:>20}" for engine in rounds))
        for name in ("barrier", *NAMES):
            for k, size in enumerate(SIZES if name != "barrier" else [0]):
                row = [statistics.median(f[name][k] for f in found) for found in rounds.values()]
                texts = [f"{t * 1e6:.0f} ({size / t / 1e9:.2f})" for t in row]
                print(f"{name:<12}{size:>10}" + "".join(f"{text:>20}" for text in texts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
