"""Data parallel on 8 to 4,096 devices, simulated from the program that two ranks run here.

The program, partitioned and compiled, says what travels, and how long its kernels take on a core.
(Other placements move other bytes on more ranks: which move is the cheaper one changes with them.)
Weak scaling: a device is many times as fast as the core, and has as many times its batch, so its
kernels take as long. Eight devices have NVLink among them, machines are joined by InfiniBand. Shown
is the share of linear scaling: what is missing is lost to communication.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from minipaddle import distributed as dist
from minipaddle.distributed.simulator import INFINIBAND, NVLINK, Cluster, pieces_of, simulate
from minipaddle.executors.timing import with_timers

from .sharding import NETS, ours_step

STEPS, ROUNDS = 5, 7
DEVICES = (8, 64, 512, 4096)


def pieces(net: str, way: str):
    """The pieces of a step's program in rank 0, and the bytes that travel, after some steps."""
    dist.init_parallel_env()
    step, run = ours_step(net, way)
    run()
    cache = step.concrete_program.executables
    ((part, _),) = cache.parts.values()
    found = next(k for k, e in cache.compiled.items() if k[0] is part)
    timed = cache.compiled[found] = with_timers(cache.compiled[found])
    run()
    rounds = []
    for _ in range(ROUNDS):
        before = [seconds for seconds, _ in timed.times()]
        for _ in range(STEPS):
            run()
        after = timed.times()
        rounds.append([(s - b) / STEPS for (s, _), b in zip(after, before, strict=True)])
    middle = np.median(rounds, 0).tolist()
    times = [(seconds, record) for seconds, (_, record) in zip(middle, after, strict=True)]
    return pieces_of(timed.program, times)


def run(threads: int, arguments=()) -> None:
    table = Table(title="The share of linear scaling on so many devices")
    for head in ("", "ms", "MB that travel", *map(str, DEVICES)):
        table.add_column(head, justify="right" if head else "left")
    for net in NETS:
        found, sizes = dist.spawn(pieces, (net, "data"), nprocs=2).results[0]
        shares = []
        for devices in DEVICES:
            cluster = Cluster(devices // 8, 8, NVLINK, INFINIBAND)
            shares.append(f"{simulate(found, sizes, cluster).efficiency:.0%}")
        alone = sum(p.seconds for p in found)
        table.add_row(net, f"{alone * 1e3:.3g}", f"{np.sum(sizes) / 1e6:.3g}", *shares)
    Console().print(table)
