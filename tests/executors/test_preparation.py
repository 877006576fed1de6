"""At inference what is made of weights alone is computed once, and again after every change."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.executors.compiler import compiler
from minipaddle.executors.preparation import IN_A_ROW

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def picture(seed=0):
    data = np.random.default_rng(seed).normal(size=(1, 3, 8, 8)).astype("float32")
    return paddle.to_tensor(data)


def network():
    paddle.seed(5)
    net = nn.Sequential(nn.Conv2D(3, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU())
    for k, p in enumerate((net[1]._mean, net[1]._variance, net[1].weight, net[1].bias)):
        p.set_value(np.random.default_rng(k).uniform(0.5, 1.5, 16).astype("float32"))
    net.eval()
    return net


def native(net):
    return paddle.jit.to_static(lambda x: net(x), backend="native")


def same(f, net, x):
    with paddle.no_grad():
        np.testing.assert_allclose(f(x).numpy(), net(x).numpy(), rtol=2e-4, atol=2e-5)


def ops(f):
    (made,) = f.executables
    return [r.op.name for r in made.program.records]


def test_weights_are_prepared_and_changes_are_seen():
    net = network()
    f, x = native(net), picture()
    for _ in range(6):
        same(f, net, x)
    (made,) = f.executables
    assert made.prepared.prepared
    assert "transpose" in {cell.record.op.name for cell in made.prepared.prepared}
    changes = [
        lambda: net[0].weight.set_value(net[0].weight * 2),
        lambda: net[1]._mean.add_(paddle.ones([16])),
        lambda: setattr(net[1].bias, "data", paddle.full([16], 3.0)),
        lambda: net[0].bias.__setitem__(2, 9.0),
        lambda: net.set_state_dict({k: v + 1 for k, v in net.state_dict().items()}),
    ]
    for change in changes:
        before = f(x).numpy()
        with paddle.no_grad():
            change()
        same(f, net, x)
        assert not np.allclose(before, f(x).numpy())
        for seed in range(3):
            same(f, net, picture(seed))


def test_evaluation_between_native_training_steps_sees_each_of_them():
    net = network()
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    def step(x):
        net.train()
        loss = net(x).square().mean()
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    f, step, x = native(net), paddle.jit.to_static(step, backend="native"), picture()
    for _ in range(IN_A_ROW + 3):
        step(x)
        net.eval()
        same(f, net, x)
    (made, *_) = f.executables
    assert made.prepared.restless
    assert not made.unfrozen.prepared.sources


def test_a_gradient_or_a_word_of_the_strategy_forbids_it():
    net, x = network(), picture()
    f = native(net)
    f(x)
    assert not f.executables[0].prepared.sources
    g = paddle.jit.to_static(lambda x: net(x), backend="native", build_strategy={"frozen": False})
    with paddle.no_grad():
        g(x)
    assert not g.executables[0].prepared.sources
