"""One network in four stages: float32, half precision, 8 bits, fewer channels on 8 bits.

This is what a user writes: a function for each stage, a file for each result.
`python -m tests.benchmarks.compression_stages FOLDER` reads the files of a folder in a process that
knows nothing of the networks, and leaves there the scores that each gives the held-out letters.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import numpy as np

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import amp, nn, slim
from minipaddle.quantization import PTQ, QuantConfig
from minipaddle.quantization import observers as o
from minipaddle.quantization.imperative.fuse_utils import fuse_layers
from minipaddle.vision.models.resnet import BasicBlock

from .letters import letters

CHECKED = 256
"""Images that the observers of a quantized network look at."""


def network(width: int = 32, kinds: int = 26) -> nn.Layer:
    """A small residual network for images [n, 1, height, width]; 311,482 weights."""

    def block(before: int, after: int) -> BasicBlock:
        down = nn.Sequential(nn.Conv2D(before, after, 1, 2, bias_attr=False), nn.BatchNorm2D(after))
        return BasicBlock(before, after, 2, down)

    return nn.Sequential(
        nn.Conv2D(1, width, 3, padding=1, bias_attr=False), nn.BatchNorm2D(width), nn.ReLU(),
        nn.MaxPool2D(2), BasicBlock(width, width), block(width, 2 * width),
        block(2 * width, 4 * width), nn.AdaptiveAvgPool2D(1), nn.Flatten(),
        nn.Linear(4 * width, kinds),
    )  # fmt: skip


def fit(net: nn.Layer, data, epochs: int, rate: float, level: str = "O0") -> nn.Layer:
    """Train a network in place; a step, in mixed precision or not, is one program."""
    images, labels = data
    count = len(labels) // 64
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(rate, epochs * count)
    adam = paddle.optimizer.Adam(schedule, parameters=net.train().parameters())
    if level == "O2":
        net, adam = amp.decorate(net, adam, level="O2", dtype="bfloat16")
    scaler = amp.GradScaler(enable=level == "O2", init_loss_scaling=1024)

    @paddle.jit.to_static
    def step(x, y):
        with amp.auto_cast(level=level, dtype="bfloat16"):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(adam)
        scaler.update()
        adam.clear_grad()

    for _ in range(epochs):
        for rows in paddle.randperm(len(labels))[: 64 * count].split(count):
            step(images[rows], labels[rows])
            schedule.step()
    return net.eval()


class Half(nn.Layer):
    """A network whose operators compute in bfloat16 where that is safe."""

    def __init__(self, net: nn.Layer):
        super().__init__()
        self.net = net

    def forward(self, x):
        with amp.auto_cast(level="O2", dtype="bfloat16"):
            return self.net(x).astype("float32")


def in_half_precision(net: nn.Layer, data, epochs: int) -> nn.Layer:
    """The network with weights in bfloat16, after some epochs at level O2."""
    return Half(fit(deepcopy(net), data, epochs, 5e-4, level="O2")).eval()


def pairs_of(net: nn.Layer) -> list:
    """The names of convolutions and of the norms that follow them."""
    kinds = nn.Conv2D, nn.BatchNorm2D
    named = [pair for pair in net.named_sublayers() if isinstance(pair[1], kinds)]
    return [[a, b] for (a, x), (b, y) in pairwise(named) if isinstance(y, nn.BatchNorm2D)]


def in_eight_bits(net: nn.Layer, *xs) -> nn.Layer:
    """The network whose products are those of whole numbers, after one look at some inputs."""
    net = fuse_layers(net, pairs_of(net))
    config = QuantConfig(activation=None, weight=None)
    by_output = o.AbsMaxChannelWiseWeightObserver()
    config.add_type_config([nn.Conv2D, nn.Linear], o.AbsmaxObserver(), by_output)
    ptq = PTQ(config)
    observed = ptq.quantize(net)
    with paddle.no_grad():
        observed(*xs)
    return ptq.convert(observed)


def with_fewer_channels(net: nn.Layer, data, epochs: int, align: int, part=0.5) -> nn.Layer:
    """The network without the channels that matter least: a part of the work is gone. Kernels
    compute several channels at once, so a multiple of `align` is left.
    """
    net = deepcopy(net)
    some = [x[:CHECKED] for x in data]
    pruner = slim.L1NormFilterPruner(net, some[0][:1])
    pruner.sensitive(lambda: accuracy(net(some[0]), some[1]), ratios=(0.25, 0.5, 0.75))
    pruner.sensitive_prune(part, align=align)
    return fit(net, data, epochs, 1e-3)


def stages(net: nn.Layer, data, epochs=8, more=6, align=8) -> dict[str, nn.Layer]:
    """All stages of a network, which is trained here."""
    some = data[0][:CHECKED]
    full = fit(net, data, epochs, 4e-3)
    narrow = with_fewer_channels(full, data, more, align)
    return {
        "float32": full,
        "O2": in_half_precision(full, data, 1),
        "int8": in_eight_bits(full, some),
        "pruned": narrow,
        "pruned int8": in_eight_bits(narrow, some),
    }


def save(net: nn.Layer, path, shape) -> None:
    """The program and the weights, for a batch of any size."""
    paddle.jit.save(net, str(path), input_spec=[paddle.static.InputSpec([None, *shape])])


def read(path, images):
    """The scores that a saved network gives."""
    with paddle.no_grad():
        return paddle.jit.load(str(path))(images)


def accuracy(scores, labels) -> float:
    """The part of the images that is read right."""
    return (scores.argmax(1) == labels).astype("float32").mean().item()


if __name__ == "__main__":
    for file in sorted(Path(sys.argv[1]).glob("*.pdmodel")):
        path = file.with_suffix("")
        np.save(f"{path}.npy", read(path, letters("test")[0]).numpy())
