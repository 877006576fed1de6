"""Gradients of micro-batches stay terms until the step: they travel once."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.tensors.dist_tensor import view_of

from .models import mlp

pytestmark = pytest.mark.sweep(one_in=3)

PARTS = 4


def train(captured: str, ranks: int):
    """The weights after two steps of four micro-batches, and the elements that rank 0 sent to be
    summed in the second.
    """
    mesh = dist.ProcessMesh([*range(ranks)])
    paddle.seed(3)
    net = mlp()
    for p in net.parameters():
        dist.shard_tensor(p, mesh, [dist.Replicate()])
    adam = paddle.optimizer.Adam(0.01, epsilon=1e-4, parameters=net.parameters())
    whole = np.random.default_rng(0).normal(size=(PARTS, 8, 6)).astype("float32")
    xs = [dist.shard_tensor(paddle.to_tensor(x), mesh, [dist.Shard(0)]) for x in whole]
    sent: list[int] = []
    group = dist.get_group(view_of(mesh).groups[0])
    reduce = group.all_reduce
    group.all_reduce = lambda x, *a, **k: (sent.append(x.size), reduce(x, *a, **k))[1]

    def part(x):
        ((net(x) ** 2).mean() / PARTS).backward()

    def update():
        adam.step()
        adam.clear_grad()

    def step(*xs):
        for x in xs:
            part(x)
        update()

    if captured == "micro-batches":
        part, update = (paddle.jit.to_static(f, backend="interpreter") for f in (part, update))
    elif captured == "step":
        step = paddle.jit.to_static(step, backend="interpreter")
    step(*xs)
    sent.clear()
    step(*xs)
    return [p.numpy() for p in net.parameters()], [n for n in sent if n > 1]


@pytest.mark.parametrize("captured", ["nothing", "micro-batches", "step"])
def test_gradients_travel_once(captured):
    alone, _ = dist.spawn(train, nprocs=1, args=("nothing", 1)).results[0]
    for weights, sent in dist.spawn(train, nprocs=3, args=(captured, 3)).results:
        assert sum(sent) == sum(w.size for w in weights)
        for a, b in zip(weights, alone, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
