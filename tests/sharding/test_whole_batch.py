"""What depends on the whole batch is as in one process: statistics of batch norm, dropout."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.nn import functional as F

pytestmark = pytest.mark.sweep(one_in=3)

MESHES = {
    "2": ([0, 1], []),
    "3": ([0, 1, 2], []),
    "4": ([0, 1, 2, 3], []),
    "2 x 2": ([[0, 1], [2, 3]], [dist.Shard(0)]),
}
"""Ranks, and what lies on the second axis of the mesh."""


class Residual(nn.Layer):
    """relu(x + norm(conv(relu(norm(conv(x))))))"""

    def __init__(self, width: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(width, width, 3, padding=1), nn.BatchNorm2D(width), nn.ReLU(),
            nn.Conv2D(width, width, 3, padding=1), nn.BatchNorm2D(width),
        )  # fmt: skip

    def forward(self, x):
        return F.relu(x + self.body(x))


def resnet():
    """A ResNet of six layers with weights; its last features are dropped at random."""
    stem = [nn.Conv2D(3, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU()]
    blocks = [Residual(4), nn.MaxPool2D(2), Residual(4)]
    return nn.Sequential(
        *stem, *blocks, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Dropout(0.25), nn.Linear(4, 5)
    ).to(dtype="float64")


def train(mesh=None, second=(), steps=8):
    """The losses of some steps, and the weights and statistics at the end."""
    paddle.seed(3)
    net, rng = resnet(), np.random.default_rng(0)
    x, y = rng.normal(size=(13, 3, 8, 8)), rng.integers(0, 5, 13)
    x, y = map(paddle.to_tensor, (x, y))
    if mesh is not None:
        mesh = dist.ProcessMesh(mesh)
        for p in net.parameters():
            dist.shard_tensor(p, mesh, [dist.Replicate(), *second])
        for b in net.sublayers():
            for name, buffer in list(getattr(b, "_buffers", {}).items()):
                b._buffers[name] = dist.shard_tensor(buffer, mesh, [])
        x, y = (dist.shard_tensor(each, mesh, [dist.Shard(0)]) for each in (x, y))
    optimizer = paddle.optimizer.Momentum(0.05, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    losses = [float(step(x, y)) for _ in range(steps)]
    return losses, {name: x.numpy() for name, x in net.state_dict().items()}


@pytest.fixture(scope="module")
def alone():
    """Losses and state of one process."""
    return train()


@pytest.mark.parametrize("name", MESHES)
def test_a_resnet_has_the_losses_of_one_process(alone, name):
    """Statistics are those of all 13 images, masks those of one process, whatever the mesh."""
    mesh, second = MESHES[name]
    results = dist.spawn(train, args=(mesh, second), nprocs=np.size(mesh)).results
    for losses, state in results:
        np.testing.assert_allclose(losses, alone[0], rtol=1e-6)
        for key, value in state.items():
            np.testing.assert_array_equal(value, results[0][1][key])
            np.testing.assert_allclose(value, alone[1][key], rtol=1e-6, atol=1e-9)


def step_of_data_parallel(synchronised: bool):
    """The inputs, and for 1 and 2 ranks what each finds for its part: outputs, running mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 3)) + np.repeat([[0.0], [4.0]], 3, 0)

    def work():
        paddle.seed(3)
        norm = nn.BatchNorm1D(3, momentum=0.0)
        net = nn.Sequential(norm)
        if synchronised:
            net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
        net = paddle.DataParallel(net.to(dtype="float64"))
        rank, ranks = dist.get_rank(), dist.get_world_size()
        step = paddle.jit.to_static(lambda x: net(x))
        mine = paddle.to_tensor(x[rank * 6 // ranks : (rank + 1) * 6 // ranks])
        y = step(mine)
        return y.numpy(), net.state_dict()["0._mean"].numpy()

    return x, [dist.spawn(work, nprocs=n).results for n in (1, 2)]


def test_data_parallel_normalizes_each_batch_by_itself():
    x, ((_,), ranks) = step_of_data_parallel(False)
    for rank, (y, mean) in enumerate(ranks):
        own = x[3 * rank : 3 * rank + 3]
        np.testing.assert_allclose(y, (own - own.mean(0)) / np.sqrt(own.var(0) + 1e-5), rtol=1e-6)
        np.testing.assert_allclose(mean, own.mean(0), rtol=1e-6)


def test_synchronised_data_parallel_normalizes_the_joined_batch():
    _, (((alone, mean),), ranks) = step_of_data_parallel(True)
    np.testing.assert_allclose(np.concatenate([y for y, _ in ranks]), alone, rtol=1e-6)
    for _, found in ranks:
        np.testing.assert_allclose(found, mean, rtol=1e-6)
