"""Training steps to try the data-parallel pass on: small networks, captured whole."""

from __future__ import annotations

import numpy as np

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.text import GPT


def mlp():
    return nn.Sequential(
        nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)
    )


class Block(nn.Layer):
    """relu(x + norm(conv(relu(norm(conv(x))))))"""

    def __init__(self, a, b, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(a, b, 3, stride, 1, bias_attr=False), nn.BatchNorm2D(b), nn.ReLU(),
            nn.Conv2D(b, b, 3, 1, 1, bias_attr=False), nn.BatchNorm2D(b),
        )  # fmt: skip
        self.short = nn.Conv2D(a, b, 1, stride, bias_attr=False) if a != b else nn.Identity()

    def forward(self, x):
        return F.relu(self.short(x) + self.body(x))


def resnet():
    stem = [nn.Conv2D(3, 8, 3, 1, 1), nn.BatchNorm2D(8), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(16, 10)]
    return nn.Sequential(*stem, Block(8, 8, 1), Block(8, 16, 2), *head)


def gpt():
    return GPT(50, 32, 2, 2, 16)


def plain(net, opt):
    def step(x, y):
        loss = F.cross_entropy(net(x).reshape([-1, net_classes(net)]), y.reshape([-1]))
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step


def net_classes(net) -> int:
    return 50 if isinstance(net, GPT) else 10


def accumulating(net, opt):
    """Half of the batch, then the other half, one update."""

    def step(x, y):
        total = 0.0
        n = x.shape[0] // 2
        for a, b in ((x[:n], y[:n]), (x[n:], y[n:])):
            loss = F.cross_entropy(net(a), b) / 2
            loss.backward()
            total = total + loss
        opt.step()
        opt.clear_grad()
        return total

    return step


def twice(net, opt):
    """Two updates in one program: the second gradients are made with the first averages."""

    def step(x, y):
        for _ in range(2):
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
        return loss

    return step


def batches(kind: str, count: int = 3, size: int = 8, seed: int = 0) -> list:
    """Pairs (x, y) of arrays."""
    rng = np.random.default_rng(seed)
    if kind == "gpt":
        return [tuple(rng.integers(0, 50, (2, size, 16))) for _ in range(count)]
    shape = (3, 12, 12) if kind == "resnet" else (16,)
    return [
        (rng.standard_normal((size, *shape), "float32"), rng.integers(0, 10, size))
        for _ in range(count)
    ]


NETS = {"mlp": mlp, "gpt": gpt, "resnet": resnet}


def optimizer(kind: str, net):
    if kind == "mlp":
        return paddle.optimizer.Adam(0.01, parameters=net.parameters())
    clip = nn.ClipGradByGlobalNorm(0.5)
    return paddle.optimizer.Momentum(0.1, 0.9, net.parameters(), grad_clip=clip)
