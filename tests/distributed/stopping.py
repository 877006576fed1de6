"""A rank that is stopped where the others do not wait for it in a collective.

As a program: `stopping.py HOW`, started by `launch`. HOW: "early" is before the ranks have met,
"late" after their last collective; "sync" and "async" are a worker of a parameter server, which in
"async hung" is not stopped: it waits for something that never happens.
"""

import os
import signal
import sys
import threading

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import fleet


def stop() -> None:
    """Stop this process."""
    os.kill(os.getpid(), signal.SIGSTOP)


def collective(early: bool) -> None:
    if early and os.environ["PMI_RANK"] == "1":
        stop()
    dist.init_parallel_env()
    dist.all_reduce(paddle.ones([2]))
    if dist.get_rank() == 1:
        stop()


def with_servers(a_sync: bool, stop) -> None:
    """Worker 1 stops after two steps."""
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = a_sync
    fleet.init(strategy=strategy)
    if fleet.is_server():
        return fleet.run_server()
    net = paddle.nn.Linear(2, 1)
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    optimizer = fleet.distributed_optimizer(sgd, strategy)
    fleet.init_worker()
    for step in range(4):
        if (step, fleet.worker_index()) == (2, 1):
            stop()
        net(paddle.ones([1, 2])).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    fleet.stop_worker()


if __name__ == "__main__":
    how = sys.argv[1]
    if how in ("early", "late"):
        collective(how == "early")
    else:
        with_servers(how != "sync", threading.Event().wait if how == "async hung" else stop)
