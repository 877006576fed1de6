"""A rank that fails at a collective, and what the others hear of it.

As a program, in processes: `faulty.py FAULT COLLECTIVE`, started by `launch` or `mpiexec`.
"""

import os
import signal
import sys
import tempfile
import time

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist
from tests.distributed.saying import say

CALLS = {
    "all_reduce": lambda g, x: g.all_reduce(x),
    "all_reduce_begun": lambda g, x: g.all_reduce(x, wait=False).wait(),
    "reduce": lambda g, x: (g.reduce(x, 0), g.barrier()),  # who only sends may go on
    "broadcast": lambda g, x: g.broadcast(x, 1),
    "all_gather": lambda g, x: g.all_gather(x),
    "gather": lambda g, x: (g.gather(x, 0), g.barrier()),
    "reduce_scatter": lambda g, x: g.reduce_scatter(x),
    "scatter": lambda g, x: g.scatter(np.empty_like(x), np.tile(x, g.size), 1),
    "all_to_all": lambda g, x: g.all_to_all(x),
    "all_gather_begun": lambda g, x: g.all_gather(x, wait=False).wait(),
    "reduce_scatter_begun": lambda g, x: g.reduce_scatter(x, wait=False).wait(),
    "all_to_all_begun": lambda g, x: g.all_to_all(x, wait=False).wait(),
    "barrier": lambda g, x: g.barrier(),
    "recv": lambda g, x: g.send(x, (g.rank + 1) % g.size) or g.recv(x, 1 if g.rank != 1 else 0),
}
"""A call that no rank can come back from if rank 1 does not take part."""


def pieces(start, end):
    """A move of a tensor in pieces."""
    mesh = dist.ProcessMesh([*range(dist.get_world_size())])
    whole = paddle.ones([6, 6])
    x = dist.shard_tensor(whole, mesh, [start])
    return lambda: dist.reshard(x, mesh, [end])


def step():
    """A captured step of data parallel training."""
    mesh = dist.ProcessMesh([*range(dist.get_world_size())])
    net = paddle.nn.Linear(6, 2)
    for p in net.parameters():
        dist.shard_tensor(p, mesh, [dist.Shard(0)])
    x = dist.shard_tensor(paddle.ones([6, 6]), mesh, [dist.Shard(0)])

    @paddle.jit.to_static
    def run(x):
        loss = net(x).square().mean()
        loss.backward()
        return loss

    return lambda: run(x).numpy()


def saving(load: bool):
    """A checkpoint that is written, or read."""
    mesh = dist.ProcessMesh([*range(dist.get_world_size())])
    state = {"w": dist.shard_tensor(paddle.ones([6, 6]), mesh, [dist.Shard(0)])}
    found = []
    dist.all_gather_object(found, tempfile.mkdtemp())
    dist.save_state_dict(state, found[0])
    return lambda: (dist.load_state_dict if load else dist.save_state_dict)(state, found[0])


MADE = {
    "Shard to Replicate": lambda: pieces(dist.Shard(0), dist.Replicate()),
    "Shard to Shard": lambda: pieces(dist.Shard(0), dist.Shard(1)),
    "captured step": step,
    "save": lambda: saving(False),
    "load": lambda: saving(True),
}
"""What is made of collectives: functions that make a call like those of `CALLS`."""
FAULTS = ("raising", "killed", "hung", "returning")


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


def work(fault: str, name: str, size: int = 60) -> None:
    """Two rounds that go well; in the third rank 1 fails, and the others wait for it."""
    group, x = dist.get_group(), np.ones(size, "float32")
    made = MADE[name]() if name in MADE else None
    if made:
        made()
        group.barrier()
    for _ in range(2):
        CALLS["all_reduce"](group, x)
    if group.rank == 1:
        fail(fault)
    made() if made else CALLS[name](group, x)


if __name__ == "__main__":
    if sys.argv[1] == "early" and os.environ["PMI_RANK"] == "1":
        raise ValueError("a fault before the ranks have met")
    dist.init_parallel_env()
    began = time.time()
    try:
        work(*sys.argv[1:])
    except dist.PeerFailed as error:
        say(f"rank {dist.get_rank()} after {time.time() - began:.2f} s: {error}")
        raise
