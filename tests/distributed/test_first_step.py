"""What the first data-parallel step costs: Python calls of one rank, from trace to C."""

import pytest

from minipaddle.engine.executors.compiler import compiler
from tests.jit.first_calls import printed_by

pytestmark = pytest.mark.sweep

STEP = """
import threading

from minipaddle.nn import Linear, ReLU

started = threading.Event()

def see(code):
    # All but waiting for the other rank, which begins when this one sends a gradient.
    if code.co_name == "start_reduction":
        started.set()
    return not code.co_filename.endswith("thread_group.py")

def rank():
    net = paddle.nn.Sequential(Linear(8, 16), ReLU(), Linear(16, 4))
    parallel = paddle.DataParallel(net)
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    def step(x, y):
        loss = ((parallel(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    static = paddle.jit.to_static(step, backend="native")
    x, y = paddle.ones([4, 8]), paddle.ones([4, 4])
    if paddle.distributed.get_rank() == 0:
        print(*counted(lambda: static(x, y), see))
    else:
        started.wait()
        static(x, y)

paddle.distributed.spawn(rank, nprocs=2)
"""


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_calls_of_the_first_step(tmp_path):
    """(There were 39,500 when passes walked records and regions that they leave as they are.)"""
    calls, _ = printed_by(STEP, tmp_path)
    assert calls < 24_200
