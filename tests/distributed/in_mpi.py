"""What the ranks of an MPI job run for the tests: `python -m tests.distributed.in_mpi NAME …`."""

import re
import socket
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import numpy as np
import psutil
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import fleet
from tests.distributed import sequences
from tests.distributed.conformance import (
    conformance,
    disagreements,
    models_that_differ,
    named_nan,
)
from tests.distributed.saying import say


def conforming():
    return conformance(dist.get_group(), dist.new_group)


def disagreeing():
    found = disagreements(dist.new_group), named_nan(dist.new_group())
    return *found, models_that_differ(dist.get_rank())


def playing():
    return sequences.check(range(40))


def talking():
    """Paddle's functions on tensors; the group is what carries them, and is tested by itself."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = paddle.to_tensor([1.0, rank])
    task = dist.all_reduce(x, sync_op=False)
    task.wait()
    assert x.tolist() == [size, size * (size - 1) / 2]
    found = []
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": r, "text": "x" * r} for r in range(size)]
    x = paddle.to_tensor([float(rank)])
    x.stop_gradient = False
    y = x * 2
    dist.all_reduce(y)
    y.backward()
    assert x.grad.item() == 2.0 * size
    with pytest.raises(ValueError, match="backend='nccl' of ranks that talk by mpi"):
        dist.new_group([0], backend="nccl")
    assert dist.is_initialized()
    assert dist.get_backend() == "MPI"
    return size


def merging():
    """Two backwards are one update, captured or not: by the mean over steps and ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    strategy = fleet.DistributedStrategy()
    strategy.gradient_merge, strategy.gradient_merge_configs = True, {"k_steps": 2}
    fleet.init(is_collective=True, strategy=strategy)
    for wrap in (lambda step: step, paddle.jit.to_static):
        w = paddle.create_parameter([1], "float32", is_bias=True)
        opt = fleet.distributed_optimizer(paddle.optimizer.SGD(1.0, [w]))

        @wrap
        def step(x, w=w, opt=opt):
            (w * x).backward()
            opt.step()

        found = []
        for slope in (1.0, 3.0, 5.0, 7.0):
            step(paddle.to_tensor([slope + rank]))
            found.append(w.item())
        mean = (size - 1) / 2
        np.testing.assert_allclose(found, [0, -2 - mean, -2 - mean, -8 - 2 * mean])
    return size


def private():
    """On one machine nobody else can connect, and no command line has the token."""
    job = dist.get_group().job
    around = [psutil.Process(), *psutil.Process().parents()[:2]]  # Hydra's proxy, and mpiexec
    around += [psutil.Process(job.witness.pid)] if job.witness else []
    words = [word for each in around for word in each.cmdline()]
    assert not [word for word in words if re.fullmatch("[0-9a-f]{32}", word)]
    if sys.platform == "linux":
        ports = {c.laddr for p in around for c in p.net_connections("inet") if c.status == "LISTEN"}
        assert {port for ip, port in ports if ip != "127.0.0.1"} <= ports_of_loopback()
        assert ports or not job.witness
    return dist.get_world_size()


def ports_of_loopback() -> set[int]:
    """Those ports that this process has inherited and that are bound to the device of loopback."""
    found = set()
    for number in map(int, (each.name for each in Path("/proc/self/fd").iterdir())):
        with suppress(OSError), socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as each:
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).startswith(b"lo"):
                found.add(each.getsockname()[1])
    return found


def impatient():
    """A group with a time-out of its own; rank 0 is late for it, and all are told."""
    group = dist.new_group(timeout=timedelta(seconds=0.3))
    if group.rank == 0:
        time.sleep(1)
    with pytest.raises(dist.CollectiveTimeout, match=r"waited 0\.3 s: rank 0 did not come"):
        group.all_reduce(np.ones(2))
    return "told"


if __name__ == "__main__":
    dist.init_parallel_env()
    for name in sys.argv[1:]:
        say(f"{name}: {globals()[name]()}")
