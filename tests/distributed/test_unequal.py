"""Unequal batches: against the joined batch."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.distributed import spawn
from minipaddle.distributed.collectives.unequal_batches import joined_mean


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("counts", [(3, 1), (1, 4, 2), (5, 0), (2, 2)])
def test_the_gradient_is_that_of_the_joined_batch(counts, static):
    rng = np.random.default_rng(len(counts))
    x = rng.standard_normal((sum(counts), 4), "float32")
    w = rng.standard_normal((4, 1), "float32")
    bounds = np.cumsum([0, *counts])

    def rank():
        me = paddle.distributed.get_rank()
        net = paddle.nn.Linear(4, 1, bias_attr=False)
        net.weight.set_value(w)
        net = paddle.DataParallel(net)
        own = paddle.to_tensor(x[bounds[me] : bounds[me + 1]])

        def step(own):
            loss = net(own).pow(2).mean() if counts[me] else net(own).sum()
            joined_mean(loss, counts[me]).backward()
            return net.parameters()[0].grad

        return (paddle.jit.to_static(step) if static else step)(own).numpy()

    expected = 2 / len(x) * x.T @ (x @ w)
    for found in spawn(rank, nprocs=len(counts)).results:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
