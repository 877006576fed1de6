"""Training on tensors in pieces gives the numbers of one process, whatever lies where."""

from functools import cache

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.nn import functional as F

from .models import GPT, R, first_axis, megatron, mlp, replicated

pytestmark = pytest.mark.sweep(one_in=3)

WAYS = {
    "data, 2 ranks": ([0, 1], replicated, [dist.Shard(0)]),
    "data, 3 ranks": ([0, 1, 2], replicated, [dist.Shard(0)]),
    "tensor": ([0, 1], megatron, []),
    "data x tensor": (
        [[0, 1], [2, 3]],
        lambda name, spec: megatron(name, spec, [R]),
        [dist.Shard(0)],
    ),
    "weights in pieces": ([0, 1, 2], first_axis, [dist.Shard(0)]),
}


def batch(kind: str):
    rng = np.random.default_rng(0)
    if kind == "mlp":
        return rng.normal(size=(13, 6)).astype("float32"), rng.integers(0, 5, 13)
    return rng.integers(0, 32, (4, 8)), rng.integers(0, 32, (4, 8))


def train(kind: str, static: bool, mesh=None, place=None, inputs=None, steps=5):
    """The losses of some steps, and the weights at the end."""
    paddle.seed(3)
    net = mlp() if kind == "mlp" else GPT()
    x, y = map(paddle.to_tensor, batch(kind))
    if mesh is not None:
        mesh = dist.ProcessMesh(mesh)
        for name, p in net.named_parameters():
            dist.shard_tensor(p, mesh, place(name, p.spec))
        x, y = (dist.shard_tensor(each, mesh, inputs) for each in (x, y))
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    optimizer = paddle.optimizer.AdamW(  # (the gradient of the keys' bias is nothing but rounding)
        0.01, epsilon=1e-4, parameters=net.parameters(), grad_clip=clip
    )

    def step(x, y):
        scores = net(x)
        loss = F.cross_entropy(scores.reshape([-1, scores.shape[-1]]), y.reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = paddle.jit.to_static(step) if static else step
    losses = [float(step(x, y)) for _ in range(steps)]
    return losses, {name: p.numpy() for name, p in net.named_parameters()}


one_process = cache(train)


MODES = [("gpt", True), ("mlp", False)]
CASES = [(way, *mode) for way in WAYS for mode in MODES]
CASES += [("data x tensor", "gpt", False), ("data x tensor", "mlp", True)]


@pytest.mark.parametrize(("way", "kind", "static"), CASES)
def test_training(way, kind, static):
    """Each way on each model, each way eagerly and as a program."""
    losses, weights = one_process(kind, static)
    mesh, place, inputs = WAYS[way]
    args = kind, static, mesh, place, inputs
    results = dist.spawn(train, args=args, nprocs=np.size(mesh)).results
    for own, found in results:
        assert own == results[0][0]
        np.testing.assert_allclose(own, losses, rtol=1e-6)
        for name, value in found.items():
            np.testing.assert_array_equal(value, results[0][1][name])
            np.testing.assert_allclose(value, weights[name], rtol=1e-4, atol=2e-6)
