"""Mixed precision on several ranks: all leave out the same steps."""

import math

import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.amp import GradScaler, auto_cast, decorate


def train(net, optimizer, batch, convert, level="O1"):
    """(scales, the sum of the weights) of a training whose second batch is infinite on rank 1."""
    scaler, scales = dist.shard_scaler(GradScaler(init_loss_scaling=8.0)), []

    def step(x):
        with auto_cast(level=level, dtype="bfloat16"):
            loss = net(x).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()

    step = paddle.jit.to_static(step) if convert else step
    for value in (1.0, math.inf, 2.0):
        step(batch(value))
        scales.append(scaler.get_loss_scaling().item())
    return scales, net.parameters()[0].astype("float32").sum().item()


def data_parallel(level, convert):
    paddle.seed(0)
    net = nn.Linear(4, 4)
    optimizer = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    if level == "O2":
        net, optimizer = decorate(net, optimizer, level, "bfloat16", master_grad=True)
    batch = lambda value: paddle.ones([2, 4]) * (value if dist.get_rank() else 1.0)
    return train(paddle.DataParallel(net), optimizer, batch, convert, level)


def in_pieces(convert):
    paddle.seed(0)
    mesh, net = dist.ProcessMesh([0, 1], ["x"]), nn.Linear(4, 4)
    optimizer = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    optimizer = dist.shard_optimizer(optimizer, dist.ShardingStage1("x", mesh))

    def batch(value):
        x = paddle.ones([4, 4])
        x[2:] = value
        return dist.shard_tensor(x, mesh, [dist.Shard(0)])

    return train(net, optimizer, batch, convert)


WORK = {
    "O1": lambda convert: data_parallel("O1", convert),
    "O2": lambda convert: data_parallel("O2", convert),
    "in pieces": in_pieces,
}


@pytest.mark.parametrize("name", WORK)
def test_all_ranks_agree(name):
    found = []
    for convert in (False, True):
        found += dist.spawn(WORK[name], (convert,), nprocs=2).results
    assert found[0][0] == [8.0, 4.0, 4.0]
    assert math.isfinite(found[0][1])
    assert found == found[:1] * 4
