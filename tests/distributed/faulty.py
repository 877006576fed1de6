"""A rank that fails at a collective, and what the others hear of it.

As a program, in processes: `faulty.py FAULT COLLECTIVE`, started by `launch` or `mpiexec`.
"""

import os
import signal
import sys
import tempfile
import time
from functools import partial, reduce
from math import inf

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.distributed import fleet
from minipaddle.distributed.ranks.known_groups import current_groups
from tests.distributed.saying import say

R = dist.Replicate()
CALLS = {
    "all_reduce": lambda g, x: g.all_reduce(x),
    "all_reduce_begun": lambda g, x: g.all_reduce(x, wait=False).wait(),
    "reduce": lambda g, x: g.reduce(x, 0),
    "broadcast": lambda g, x: g.broadcast(x, 1),
    "all_gather": lambda g, x: g.all_gather(x),
    "gather": lambda g, x: g.gather(x, 0),
    "reduce_scatter": lambda g, x: g.reduce_scatter(x),
    "scatter": lambda g, x: g.scatter(np.empty_like(x), np.tile(x, g.size), 1),
    "all_to_all": lambda g, x: g.all_to_all(x),
    "all_gather_begun": lambda g, x: g.all_gather(x, wait=False).wait(),
    "reduce_scatter_begun": lambda g, x: g.reduce_scatter(x, wait=False).wait(),
    "all_to_all_begun": lambda g, x: g.all_to_all(x, wait=False).wait(),
    "barrier": lambda g, x: g.barrier(),
    "recv": lambda g, x: g.send(x, (g.rank + 1) % g.size) or g.recv(x, 1 if g.rank != 1 else 0),
}
"""Calls; a rank that only sends may go on without rank 1."""


def mesh(shape=(-1,)):
    """All ranks in a grid."""
    ranks = np.arange(dist.get_world_size()).reshape(shape)
    return dist.ProcessMesh(ranks, ["x", "y"][: ranks.ndim])


def moves(first, *others):
    """A tensor in pieces that comes to lie otherwise, once or more often."""
    x = dist.shard_tensor(paddle.ones([6, 6]), line := mesh(), [first])
    return lambda: reduce(lambda y, to: dist.reshard(y, line, [to]), others, x)


def step(way: str, captured: bool = True, shape=(-1,)):
    """A step of training; `way` is how the model lies."""
    net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6))
    adam = paddle.optimizer.Adam(parameters=net.parameters(), grad_clip=nn.ClipGradByNorm(1.0))
    grid, rows = mesh(shape), [dist.Shard(0)] * len(shape)
    model = net
    if way == "tensor":
        for p, cut in zip(net.parameters(), (dist.Shard(1), dist.Shard(0), dist.Shard(0), R)):
            dist.shard_tensor(p, grid, [*[R] * (grid.ndim - 1), cut])
        rows[-1] = R
    elif way in ("group_sharded", "recompute"):
        model, adam, _ = dist.group_sharded_parallel(net, adam, "p_g_os")
    else:
        dist.shard_layer(net, grid)
        adam = dist.shard_optimizer(adam, dist.ShardingStage3("x")) if way == "ZeRO-3" else adam
    if way == "recompute":
        model = partial(fleet.utils.recompute, model)
    x = dist.shard_tensor(paddle.ones([6, 6]), grid, rows)

    def run(x):
        loss = model(x).square().mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    run = paddle.jit.to_static(run) if captured else run
    return lambda: float(run(x))


def saving(load: bool):
    """A checkpoint that is written, or read."""
    state = {"w": dist.shard_tensor(paddle.ones([6, 6]), mesh(), [dist.Shard(0)])}
    found = []
    dist.all_gather_object(found, tempfile.mkdtemp())
    dist.save_state_dict(state, found[0])
    return lambda: (dist.load_state_dict if load else dist.save_state_dict)(state, found[0])


MADE = {
    "Shard to Replicate": lambda: moves(dist.Shard(0), R),
    "Shard to Shard": lambda: moves(dist.Shard(0), dist.Shard(1)),
    "Partial to Shard": lambda: moves(dist.Partial(), dist.Shard(0)),
    "Replicate to Partial to Replicate": lambda: moves(R, dist.Partial(), R),
    "data parallel": lambda: step("data"),
    "tensor parallel": lambda: step("tensor"),
    "ZeRO-3": lambda: step("ZeRO-3"),
    "eager ZeRO-3": lambda: step("ZeRO-3", captured=False),
    "group_sharded_parallel": lambda: step("group_sharded"),
    "recompute": lambda: step("recompute"),
    "two by two": lambda: step("tensor", shape=(2, 2)),
    "save": lambda: saving(False),
    "load": lambda: saving(True),
}
"""What is made of collectives: functions that make a call, of which rank 1 fails in the middle."""
RANKS = {"two by two": 4}
"""How many ranks it takes; all others are tried on three."""


def fail(fault: str) -> None:
    """What befalls rank 1."""
    if fault == "raising":
        raise ValueError("a fault of rank 1")
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "hung":
        while True:
            time.sleep(0.01)
    if fault == "returning":
        raise SystemExit(0)


def at_collective(number: float, act) -> list:
    """Let this rank `act` at the collective of a number. A list of those that it begins."""
    begun = []
    for group in filter(None, current_groups().groups.values()):

        def start(name, array, begin=group.start, **options):
            begun.append(name)
            if len(begun) == number:
                act()
            return begin(name, array, **options)

        group.start = start
    return begun


def work(fault: str, name: str, size: int = 60, part: float = 0.5, timeout: float = 0.5) -> None:
    """Two rounds that go well; in the third rank 1 fails, and the others wait for it. In a call of
    `MADE` it does so at a collective: the first is at `part` 0, the last at 1. The PeerFailed of
    the others has as `seconds` how long they took to hear of it.
    """
    group, x = dist.get_group(), np.ones(size, "float32")
    made = MADE[name]() if name in MADE else None
    if made:
        made()  # a program is captured, and groups are made
        begun = at_collective(inf, None)
        made()
        number = 1 + round(part * (len(begun) - 1))
    began = time.monotonic()
    try:
        for _ in range(2):
            CALLS["all_reduce"](group, x)
        for each in filter(None, current_groups().groups.values()):
            each.timeout = timeout
        if group.rank == 1:
            at_collective(number, lambda: fail(fault)) if made else fail(fault)
        made() if made else CALLS[name](group, x)
        group.barrier()
    except dist.PeerFailed as error:
        error.seconds = time.monotonic() - began
        raise


if __name__ == "__main__":
    if sys.argv[1] == "early" and os.environ["PMI_RANK"] == "1":
        raise ValueError("a fault before the ranks have met")
    dist.init_parallel_env()
    try:
        work(*sys.argv[1:])
    except dist.PeerFailed as error:
        say(f"rank {dist.get_rank()} after {error.seconds:.2f} s: {error}")
        raise
