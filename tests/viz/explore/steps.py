"""Programs whose pages are tested: training steps, control flow, ranks. The facts in a page."""

import base64
import json
import re
import zlib

import numpy as np

import minipaddle as paddle
import minipaddle.distributed as dist
import minipaddle.nn.functional as F
from minipaddle import nn


class ConvNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2D(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm2D(8)
        self.conv2 = nn.Conv2D(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x):
        h = F.relu(self.bn(self.conv1(x)))
        h = F.max_pool2d(h, 2)
        h = F.relu(self.conv2(h))
        h = F.max_pool2d(h, 2)
        return self.fc(h.flatten(1))


def training_step(net, x, y, backend="native"):
    """A captured Adam step of a network, called once."""
    optimizer = paddle.optimizer.Adam(1e-3, parameters=net.parameters())

    @paddle.jit.to_static(backend=backend)
    def step(x, y):
        logits = net(x)
        loss = F.cross_entropy(logits.reshape([-1, logits.shape[-1]]), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step(x, y)
    return step


def labels(shape, classes):
    return paddle.to_tensor(np.arange(np.prod(shape)).reshape(shape) % classes)


def mlp():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return training_step(net, paddle.ones([4, 8]), labels([4], 4))


def conv():
    return training_step(ConvNet(), paddle.ones([2, 1, 28, 28]), labels([2], 10))


def resnet18():
    net = paddle.vision.models.resnet18(num_classes=4)
    return training_step(net, paddle.ones([1, 3, 32, 32]), labels([1], 4))


def gpt(layers=2):
    net = paddle.text.GPT(17, width=16, layers=layers, heads=2, context=8)
    return training_step(net, labels([2, 8], 17), labels([2, 8], 17))


def control():
    @paddle.jit.to_static(backend="native")
    def grow(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        while y.sum() < 100:
            y = y + x.exp()
        return y.tanh()

    grow(paddle.ones([4]))
    return grow


def two_ranks():
    net = nn.Linear(8, 8)

    @paddle.jit.to_static(backend="native")
    def total(x):
        y = net(x)
        return (y * y).mean()

    def work():
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        return total(dist.shard_tensor(paddle.ones([4, 8]), mesh, [dist.Shard(0)])).item()

    dist.spawn(work, nprocs=2)
    return total


STEPS = {
    "mlp": mlp, "conv": conv, "resnet18": resnet18, "gpt": gpt, "control": control,
    "two ranks": two_ranks,
}  # fmt: skip


def read_facts(text: str) -> dict:
    """The facts in a page."""
    packed = re.search(r'<script id="facts" type="text/plain">(.*?)</script>', text)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))
