"""Collectives on threads and on MPI processes beside PyTorch's gloo: latency and bandwidth.

Each engine is started anew in each round, one after the other; the table shows medians over the
rounds of rank 0's median time. Bandwidth is the size of the array over that time. Under it stands
how far the simulator is off for messages as large as buckets are: a ring, on the link that fits
all_reduce at all sizes but one, at that one (the fastest counts, for nothing else runs on a
simulated cluster). In half a minute is done:

    ./run bench collectives --ranks 2 --rounds 1 --seconds 0.05
"""

import argparse
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
BUCKETS = [1 << k for k in range(20, 27)]
SECONDS = float(os.environ.get("BENCH_SECONDS", 0.15))  # for each size
PATIENCE = 300
"""The seconds after which an engine that was started is given up."""
ENGINES = ("threads", "mpi", "gloo")


# ---- in a rank -------------------------------------------------------------------------------


def measured(call, barrier, times, middle=statistics.median) -> float:
    """The seconds of a call, the median of as many as `times` says."""
    took = []
    for _ in range(times):
        barrier()
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return middle(took)


def figures(barrier, calls) -> dict:
    """{collective: seconds for each size}; `calls(name, array)` gives what is called."""
    found = {"barrier": [measured(barrier, barrier, 200)]}
    for key, name, sizes in [
        *((name, name, SIZES) for name in NAMES),
        ("buckets", "all_reduce", BUCKETS),
    ]:
        found[key] = []
        for size in sizes:
            call = calls(name, np.full(size // 4, 0, "float32"))
            times = int(min(300, max(5, SECONDS / (2e-5 + size / 1e9))))  # the same in all ranks
            call()
            of = min if key == "buckets" else statistics.median
            found[key].append(measured(call, barrier, times, of))
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


def started(engine: str, ranks: int, module: str = "tests.benchmarks.collectives") -> dict:
    """The figures of one start of an engine: what `module` prints."""
    own = ["-m", module, engine, str(ranks)]
    if engine == "gloo":
        return of_processes(own, ranks)
    python = [sys.executable, *own]
    if engine == "mpi":
        mpiexec = Path(sys.executable).parent / "mpiexec"
        python = [str(mpiexec), "-n", str(ranks), sys.executable, "-m", "mpi4py", *own]
    run = subprocess.run(python, check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
    return json.loads(run.stdout)


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
    try:
        outputs = [p.communicate(timeout=PATIENCE)[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
    return json.loads(outputs[0])


def off(times: list[float], ranks: int) -> list[float]:
    """By how much the simulator misses each time, on the link that fits the others."""
    from minipaddle.distributed.simulator import Cluster, link_of, ring, seconds

    found, pairs = [], [*zip(BUCKETS, times)]
    for k, (size, took) in enumerate(pairs):
        link = link_of(*zip(*pairs[:k], *pairs[k + 1 :]), ranks)
        found.append(seconds(ring(ranks), size, Cluster(1, ranks, link)) / took - 1)
    return found


def table(ranks: int, rounds: dict[str, list]) -> None:
    """Print the medians of the rounds, and how far off the simulator is."""
    count = len(next(iter(rounds.values())))
    print(f"\n{ranks} ranks, medians of {count} rounds; µs (GB/s)")
    print(f"{'':<12}{'bytes':>10}" + "".join(f"{engine:>20}" for engine in rounds))
    middle = lambda found, name, k: statistics.median(f[name][k] for f in found)
    for name in ("barrier", *NAMES):
        for k, size in enumerate(SIZES if name != "barrier" else [0]):
            row = [middle(found, name, k) for found in rounds.values()]
            texts = [f"{t * 1e6:.0f} ({size / t / 1e9:.2f})" for t in row]
            print(f"{name:<12}{size:>10}" + "".join(f"{text:>20}" for text in texts))
    times = [[min(each) for each in zip(*(f["buckets"] for f in r))] for r in rounds.values()]
    for size, row in zip(BUCKETS, zip(*(off(each, ranks) for each in times))):
        print(f"{'model off by':<12}{size:>10}" + "".join(f"{share:>+20.0%}" for share in row))


def run(threads: int, arguments) -> None:
    """Print a table for each number of ranks."""
    parser = argparse.ArgumentParser(prog="./run bench collectives", description=__doc__)
    add = parser.add_argument
    add("--ranks", type=int, nargs="+", default=[2, 4])
    add("--rounds", type=int, default=3)
    add("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    add("--seconds", type=float, default=SECONDS, help="for each size")
    options = parser.parse_args(arguments)
    os.environ["BENCH_SECONDS"] = str(options.seconds)
    for ranks in options.ranks:
        rounds: dict[str, list] = {engine: [] for engine in options.engines}
        for _ in range(options.rounds):
            for engine, found in rounds.items():
                found.append(started(engine, ranks))
        table(ranks, rounds)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
