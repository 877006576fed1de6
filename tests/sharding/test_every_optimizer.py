"""States of every optimizer in pieces: ZeRO's stages give the numbers of one process."""

from functools import cache

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn
from minipaddle.nn import functional as F
from minipaddle.optimizer import Optimizer

pytestmark = pytest.mark.sweep(one_in=3)

NOT_BY_PARAMETER = {"LBFGS", "Optimizer"}
RULES = sorted(
    name
    for name, kind in vars(paddle.optimizer).items()
    if isinstance(kind, type) and issubclass(kind, Optimizer) and name not in NOT_BY_PARAMETER
)
OPTIONS = {
    "ASGD": {"batch_num": 2},
    "Adadelta": {"learning_rate": 0.05},
    "Rprop": {"learning_rate_range": (1e-4, 1.0)},
}


class Tied(nn.Layer):
    """Words whose table is the last layer too."""

    def __init__(self):
        super().__init__()
        self.words, self.hidden = nn.Embedding(7, 6), nn.Linear(6, 6)

    def forward(self, x):
        return F.tanh(self.hidden(self.words(x))) @ self.words.weight.t()


def train(stage: int = 0, ranks: int = 1) -> dict:
    """For each optimizer the losses of some steps, and the weights after them."""
    found = {}
    for rule in RULES:
        paddle.seed(3)
        net = Tied()
        x = paddle.to_tensor(np.arange(5) % 7)
        optimizer = getattr(paddle.optimizer, rule)(
            **{"learning_rate": 0.02} | OPTIONS.get(rule, {}),
            parameters=net.parameters(),
            grad_clip=nn.ClipGradByGlobalNorm(0.3),
        )
        if stage:
            mesh = dist.ProcessMesh([*range(ranks)], dim_names=["dp"])
            config = {"dp_config": {"sharding_level": stage}}
            net, optimizer = dist.parallelize(net, optimizer, mesh, config)
            x = dist.shard_tensor(x, mesh, [dist.Shard(0)])
        losses = []
        for _ in range(3):
            loss = F.cross_entropy(net(x), (x + 1) % 7)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(float(loss))
        found[rule] = losses, [p.numpy() for p in net.parameters()]
    return found


one_process = cache(train)


def test_there_are_many():
    assert len(RULES) >= 12


@pytest.mark.parametrize(("stage", "ranks"), [(1, 3), (2, 2), (3, 3), (3, 4)])
def test_training(stage, ranks):
    """On 3 ranks the pieces are unequal; on 4 the last has no row of the batch."""
    results = dist.spawn(train, args=(stage, ranks), nprocs=ranks).results
    for rule, (losses, weights) in one_process().items():
        for found in results:
            np.testing.assert_allclose(found[rule][0], losses, rtol=2e-6, err_msg=rule)
            for own, same, expected in zip(found[rule][1], results[0][rule][1], weights):
                np.testing.assert_array_equal(own, same, err_msg=rule)
                np.testing.assert_allclose(own, expected, rtol=2e-4, atol=2e-6, err_msg=rule)
