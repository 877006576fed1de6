"""Eager mode on the device: operators, walks back and optimizers as few kernels of ours."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from tests.gpu.fake_cupy import KERNELS


class Block(nn.Layer):
    """Attention and a network of two layers, each after a norm."""

    def __init__(self, width=16):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, 10)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape([n, t, 3, 2, c // 2]).transpose([2, 0, 3, 1, 4])
        x = x + (F.softmax(q @ k.transpose([0, 1, 3, 2]), -1) @ v).transpose([0, 2, 1, 3]).flatten(
            2
        )
        return self.out(x + self.down(F.gelu(self.up(self.norm2(x))))).mean(1)


class Residual(nn.Layer):
    """A convolution with its norm, beside what it is given; and pooling."""

    def __init__(self):
        super().__init__()
        self.first, self.conv = nn.Conv2D(1, 4, 3, padding=1), nn.Conv2D(4, 4, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2D(4), nn.Linear(4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        return self.head((x + F.relu(self.norm(self.conv(x)))).mean([2, 3]))


NETS = {
    "attention": (Block, (4, 6, 16), lambda p: paddle.optimizer.AdamW(0.01, parameters=p)),
    "convolution": (Residual, (2, 1, 8, 8), lambda p: paddle.optimizer.Momentum(0.1, 0.9, p)),
}


def train(where: str, name: str, steps: int = 5, change=lambda net: None):
    """Losses, and the kernels of each step: forward, backward, update."""
    losses, kernels = [], []
    kind, shape, make_optimizer = NETS[name]
    with paddle.device.device_guard(where):
        paddle.seed(0)
        net, rng = kind(), np.random.default_rng(0)
        for p in net.parameters():
            p.set_value(rng.normal(size=p.shape).astype("float32") * 0.3)
        x = paddle.to_tensor(rng.normal(size=shape).astype("float32"))
        labels = paddle.to_tensor(rng.integers(0, 10, shape[0]))
        optimizer = make_optimizer(net.parameters())

        def count(function):
            KERNELS.clear()
            y = function()
            kernels.append(KERNELS.total())
            return y

        for k in range(steps):
            if k == steps - 2:
                change(net)
            loss = count(lambda: F.cross_entropy(net(x), labels))
            count(loss.backward)
            count(optimizer.step)
            optimizer.clear_grad()
            losses.append(loss.item())
    return losses, kernels


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("attention", 500, (30, 20, 15)), ("convolution", 200, (35, 20, 10))],
)
def test_a_step_is_few_kernels(gpu, device, name, first, last):
    """From the third on: a kernel for each operator, a program for the walk back, and one for the
    step of the optimizer.
    """
    losses, kernels = train("gpu", name)
    wanted, _ = train("cpu", name)
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    if gpu == "stand-in":
        assert sum(kernels[:3]) > first
        assert all(n <= most for n, most in zip(kernels[-3:], last, strict=True))


def test_weights_that_are_replaced_are_used(gpu, device):
    def halve(net):
        for p in net.parameters():
            p.set_value(p * 0.5)

    losses, _ = train("gpu", "attention", change=halve)
    wanted, _ = train("cpu", "attention", change=halve)
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)


def test_a_label_out_of_range_has_the_same_message(gpu, device):
    x = paddle.ones([4, 3])
    for _ in range(4):
        F.cross_entropy(x, paddle.to_tensor([0, 1, 2, 0]))
    with pytest.raises(IndexError, match="3"):
        F.cross_entropy(x, paddle.to_tensor([0, 1, 3, 0]))
    assert float(F.cross_entropy(x, paddle.to_tensor([0, 1, 2, 0]))) == pytest.approx(np.log(3))


def test_a_walk_that_hooks_change_is_not_compiled(gpu, device):
    for k in range(4):
        x = paddle.ones([3])
        x.stop_gradient = False
        y = F.gelu(x)
        y.register_hook(lambda g, k=k: g * float(k))
        y.sum().backward()
        assert x.grad.numpy() == pytest.approx(1.0833155 * k)
