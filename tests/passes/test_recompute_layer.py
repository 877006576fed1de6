"""`recompute(function, *args)`: the same values and gradients, less kept; also in programs."""

# ruff: noqa: B023 (functions are called in the round of the loop that makes them)

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.distributed.fleet.utils import recompute
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.passes.memory import plan

nn = paddle.nn


class Block(nn.Layer):
    """Everything that is hard to compute twice: random numbers, statistics, two inputs."""

    def __init__(self, width=8):
        super().__init__()
        self.one = nn.Linear(width, 4 * width)
        # a bias before a norm follows nothing but rounding
        self.two = nn.Linear(4 * width, width, bias_attr=False)
        self.norm, self.drop = nn.BatchNorm1D(width), nn.Dropout(0.5)

    def forward(self, x, y):
        return x + self.norm(self.two(self.drop(nn.functional.gelu(self.one(x * y))))), y * 2


class Net(nn.Layer):
    def __init__(self, again: bool, depth=3):
        super().__init__()
        self.blocks = nn.LayerList([Block() for _ in range(depth)])
        self.again = again

    def forward(self, x):
        y = x * 0.5
        for block in self.blocks:
            x, y = recompute(block, x, y) if self.again else block(x, y)
        return (x * y).mean()


def trained(net):
    return [w for w in net.parameters() if not w.stop_gradient]


def made(again: bool) -> Net:
    paddle.seed(3)
    net = Net(again)
    rng = np.random.default_rng(0)
    for w in trained(net):
        w.set_value(rng.normal(size=w.shape).astype("float32"))
    return net


def inputs():
    x = paddle.to_tensor(np.random.default_rng(1).normal(size=(4, 8)).astype("float32"))
    x.stop_gradient = False
    return x


def state_of(net):
    return [x.numpy() for x in [*net.parameters(), *net.buffers()]]


def close(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_values_gradients_and_statistics_are_those_of_the_layers():
    found = []
    for again in (False, True):
        net, x = made(again), inputs()
        paddle.seed(5)
        loss = net(x * 1)
        loss.backward()
        grads = [w.grad.numpy() for w in trained(net)]
        after = paddle.rand([2]).numpy()  # the generator is where it would be
        found.append([loss.numpy(), x.grad.numpy(), *grads, *state_of(net), after])
    close(*found)


def test_a_captured_step_trains_alike_and_computes_the_blocks_twice():
    found, programs = [], []
    for again in (False, True):
        net = made(again)
        opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())

        def step(x):
            loss = net(x)
            loss.backward()
            opt.step()
            opt.clear_grad()
            return loss

        static = paddle.jit.to_static(step)
        paddle.seed(5)
        losses = [static(inputs().detach()).numpy() for _ in range(5)]
        found.append([*losses, *state_of(net)])
        programs.append(static.concrete_program.program)
    close(*found)
    plain, twice = ([r.op.name for r in p.records] for p in programs)
    assert twice.count("erf") >= 2 * plain.count("erf") or twice.count("gelu") == 6
    assert "after" in twice


def test_a_converted_network_keeps_the_arguments_alone():
    found = []
    for again in (False, True):
        net, x = paddle.jit.to_static(made(again)), inputs()
        paddle.seed(5)
        loss = net(x)
        loss.backward()
        found.append([loss.numpy(), x.grad.numpy(), *(w.grad.numpy() for w in trained(net))])
    close(*found)


def test_second_derivatives():
    found = []
    for again in (False, True):
        w = paddle.to_tensor([1.5], stop_gradient=False)
        x = paddle.to_tensor([0.3, -0.7], stop_gradient=False)
        f = lambda x: paddle.tanh(x * w) * w
        h = x * w
        y = recompute(f, h) if again else f(h)
        (g,) = paddle.grad(y.sum(), x, create_graph=True)
        gx, gw = paddle.grad((g * g).sum(), [x, w])
        found.append([y.numpy(), g.numpy(), gx.numpy(), gw.numpy()])
    close(*found)


def test_a_tensor_that_comes_in_by_an_argument_and_by_itself():
    found = []
    for again in (False, True):
        w = paddle.to_tensor([1.5, 2.0], stop_gradient=False)
        h = w * w
        f = lambda a, b: a * h + b * w * a
        y = recompute(f, h, w) if again else f(h, w)
        y.sum().backward()
        found.append([y.numpy(), w.grad.numpy()])
    close(*found)


def test_less_is_kept():
    import tracemalloc

    def peak(again):
        x = paddle.ones([64, 64])
        x.stop_gradient = False
        tracemalloc.start()
        y = x
        for _ in range(8):
            f = lambda y: paddle.sin(paddle.cos(paddle.sin(paddle.cos(y))))
            y = recompute(f, y) if again else f(y)
        now = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        y.sum().backward()
        return now

    assert peak(True) < 0.4 * peak(False)


def test_the_program_needs_less_memory():
    def program(again):
        def step(x):
            x.stop_gradient = False
            y = x
            for _ in range(8):
                f = lambda y: paddle.sin(paddle.cos(paddle.sin(paddle.cos(y))))
                y = recompute(f, y) if again else f(y)
            return paddle.grad(y.sum(), [x])

        return trace(step, [paddle.ones([64, 64]).spec]).program

    assert plan(program(True)).live < 0.5 * plan(program(False)).live


def test_an_argument_that_was_overwritten_is_told():
    x = paddle.ones([2])
    x.stop_gradient = False
    h = x * 2
    y = recompute(paddle.tanh, h)
    with paddle.no_grad():
        h.add_(h)
    with pytest.raises(RuntimeError, match="overwritten"):
        y.sum().backward()


def test_without_a_gradient_it_is_a_call():
    with paddle.no_grad():
        assert recompute(paddle.tanh, paddle.zeros([1]), preserve_rng_state=False).item() == 0
    assert recompute(paddle.tanh, paddle.zeros([1]), use_reentrant=False).stop_gradient
