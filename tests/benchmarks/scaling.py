"""Every way to lay a GPT on 8 to 4,096 devices, simulated; data parallel from measured kernels.

First the GPT as one rank of so many would run it: its program is written here, for the mesh, and
its kernels take what the data sheet of an A100 says at best (`simulator.planning`). Weak scaling:
each device counts as `BATCH` rows of a batch. `tensor` cuts weights among the eight devices of a
machine; ZeRO-3 cuts all along the rest of the mesh, up to 512 ranks, beyond which it is repeated.

Then data parallel, from kernels measured on a core here: a device is many times as fast, and has as
many times the batch, so its kernels take as long.

Eight devices have NVLink among them, machines are joined by InfiniBand. Shown is the share of
linear scaling: of one device's time alone with its rows. What is missing is lost to communication
and to what each device computes again.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import minipaddle as paddle
from minipaddle import distributed as dist
from minipaddle.distributed.simulator import (
    A100,
    INFINIBAND,
    NVLINK,
    Cluster,
    StepPlan,
    pieces_of,
    plan_step,
    pretend,
    simulate,
)
from minipaddle.executors.native.timing import add_timers
from minipaddle.nn import functional as F
from tests.sharding.models import GPT, R, megatron

from .sharding import NETS, ours_step

STEPS, ROUNDS = 5, 7
DEVICES = (8, 64, 512, 4096)
NEAR, CUT = 8, 512
"""The devices of a machine; the most ranks that weights of this size are cut among."""
MODEL = {"words": 16384, "width": 1024, "heads": 16, "blocks": 4, "time": 512, "dropout": 0.0}
BATCH = 32
ROWS = dist.Shard(0)

WAYS = {  # of n devices: the mesh, how a batch lies, along which axis weights lie as ZeRO-3's
    "data": lambda n: ((n,), [ROWS], None),
    "ZeRO-3": lambda n: ((n // min(n, CUT), min(n, CUT)), [ROWS, ROWS], 1),
    "data × tensor": lambda n: ((n // NEAR, NEAR), [ROWS, R], None),
    "ZeRO-3 × tensor": lambda n: ((n // NEAR, NEAR), [ROWS, R], 0),
}
"""Where the batch is whole, weights are cut as Megatron's."""


# ---- by the data sheet ------------------------------------------------------------------------


def plan(way: str, n: int, model=MODEL, batch: int = BATCH) -> StepPlan:
    """What rank 0 of n does in a step; to be called in it."""
    shape, rows, stored = WAYS[way](n)
    mesh = dist.ProcessMesh(np.arange(n).reshape(shape))
    net = GPT(**model)
    for name, p in net.named_parameters() if R in rows else ():
        line = megatron(name, p.spec)[0]
        dist.shard_tensor(p, mesh, [line if r is R else R for r in rows])
    dist.shard_layer(net, mesh)
    adam = paddle.optimizer.Adam(parameters=net.parameters())
    if stored is not None:
        adam = dist.shard_optimizer(adam, dist.ShardingStage3(stored, mesh))
    x, y = (
        dist.shard_tensor(paddle.zeros([batch * n, model["time"]], "int64"), mesh, rows)
        for _ in range(2)
    )

    @paddle.jit.to_static
    def step(x, y):
        scores = net(x)
        loss = F.cross_entropy(scores.reshape([-1, scores.shape[-1]]), y.reshape([-1]))
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return plan_step(step, [x, y], A100)


def planned_table(devices=DEVICES, model=MODEL, batch: int = BATCH) -> Table:
    """A row for each way and number of devices."""
    table = Table(title="A step of a GPT, by the data sheet of an A100")
    for head in ("", "devices", "ms", "of linear", "MB received", "GB held"):
        table.add_column(head, justify="right" if head else "left")
    alone = None
    for way, n in [("data", 1), *((way, n) for way in WAYS for n in devices)]:
        found = pretend(plan, (way, n, model, batch), ranks=n)
        took = found.on(Cluster(-(-n // NEAR), min(n, NEAR), NVLINK, INFINIBAND)).seconds
        alone = alone or took
        figures = took * 1e3, alone / took, found.received / 1e6, found.held / 1e9
        cells = (f.format(x) for f, x in zip(("{:.4g}", "{:.0%}", "{:.4g}", "{:.3g}"), figures))
        table.add_row(way if n > 1 else "alone", str(n), *cells)
    return table


# ---- from measured kernels --------------------------------------------------------------------


def pieces(net: str, way: str):
    """The pieces of a step's program in rank 0, and the bytes that travel, after some steps."""
    dist.init_parallel_env()
    step, run = ours_step(net, way)
    run()
    cache = step.concrete_program.executables
    ((part, _),) = cache.parts.values()
    found = next(k for k, e in cache.compiled.items() if k[0] is part)
    timed = cache.compiled[found] = add_timers(cache.compiled[found])
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


def measured_table() -> Table:
    """A row for each net in data parallel."""
    table = Table(title="Data parallel, from measured kernels: of linear on so many devices")
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
    return table


def run(threads: int, arguments=()) -> None:
    """Print both tables."""
    for table in (planned_table, measured_table):
        Console().print(table())
