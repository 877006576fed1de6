"""Accuracy, size and time of networks on few bits: `./run bench quantization`.

A convolutional network reads handwritten digits (UCI, 8 × 8 pixels; a fifth of them is held out),
or rendered letters. After training its weights, or weights and activations, are rounded (`PTQ`),
with one scale for a weight or one for each output; or it is trained on with rounded weights
(`QAT`), as long as the table says. The size is that of `paddle.save`; it counts a byte for each
number, also of fewer bits. Then the times of networks on 8 and 4 bits, beside ONNX Runtime.
"""

from __future__ import annotations

import os
import tempfile
from copy import deepcopy
from functools import cache
from string import ascii_uppercase

from rich.console import Console
from rich.table import Table

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.quantization import PTQ, QAT, QuantConfig
from minipaddle.quantization import observers as o
from minipaddle.quantization import quanters as q

from .letters import SIDE, letters
from .quantized_times import times_of_a_token, times_of_images, times_of_texts

EPOCHS, MORE = 20, 5
"""Epochs of training, and of training with rounded weights afterwards."""


def network(side: int = 8, kinds: int = 10) -> nn.Layer:
    """19,544 weights for digits of 8 × 8 pixels."""
    return nn.Sequential(
        nn.Conv2D(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Flatten(), nn.Linear(2 * side * side, 106), nn.ReLU(), nn.Linear(106, kinds),
    )  # fmt: skip


@cache
def digits(mode: str):
    """All images and labels of a part of the data."""
    data = paddle.vision.datasets.Digits(mode)
    return paddle.to_tensor(data.images), paddle.to_tensor(data.labels)


def train(net: nn.Layer, epochs: int, rate: float = 2e-3, data=digits) -> nn.Layer:
    net.train()
    images, labels = data("train")
    adam = paddle.optimizer.Adam(rate, parameters=net.parameters())
    for _ in range(epochs):
        for rows in paddle.randperm(len(labels)).split([64] * (len(labels) // 64) + [-1]):
            F.cross_entropy(net(images[rows]), labels[rows]).backward()
            adam.step()
            adam.clear_grad()
    return net.eval()


def trained(epochs: int = EPOCHS, seed: int = 1) -> nn.Layer:
    paddle.seed(seed)
    return train(network(), epochs)


def accuracy(net: nn.Layer, data=digits) -> float:
    """Per cent of the held-out images that are read right."""
    images, labels = data("test")
    with paddle.no_grad():
        return 100 * (net(images).argmax(1) == labels).astype("float32").mean().item()


def rounded(net: nn.Layer, bits: int, by_channel: bool, activation=None, data=digits) -> nn.Layer:
    """The network with rounded weights, after a look at some of the data."""
    kind = o.AbsMaxChannelWiseWeightObserver if by_channel else o.AbsmaxObserver
    ptq = PTQ(QuantConfig(activation=activation, weight=kind(quant_bits=bits)))
    observed = ptq.quantize(net)
    with paddle.no_grad():
        observed(data("train")[0][:256])
    return ptq.convert(observed)


def trained_on(
    net: nn.Layer, bits: int, by_channel: bool, epochs: int = MORE, data=digits
) -> nn.Layer:
    """The network after some more epochs with rounded weights, on whole numbers."""
    kind = q.FakeQuanterChannelWiseAbsMax if by_channel else q.FakeQuanterWithAbsMaxObserver
    qat = QAT(QuantConfig(activation=None, weight=kind(bit_length=bits)))
    return qat.convert(train(qat.quantize(deepcopy(net).train()), epochs, 1e-3, data))


def size_of(net: nn.Layer) -> int:
    """Bytes of the file that `paddle.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.pdparams")
        paddle.save(net.state_dict(), path)
        return os.path.getsize(path)


def run(threads: int, arguments) -> None:
    Console(width=100).print(table_of("Digits", trained(), digits))
    paddle.seed(2)
    net = train(network(SIDE, len(ascii_uppercase)), EPOCHS, data=letters)
    Console(width=100).print(table_of("Rendered letters", net, letters))
    for times in (times_of_images, times_of_texts, times_of_a_token):
        Console(width=110).print(times(threads))


def table_of(title: str, net: nn.Layer, data) -> Table:
    """Accuracy and size of a network on few bits. A control trains on as long, in float32, before
    its weights are rounded.
    """
    table = Table("", "accuracy, %", "bytes", title=f"{title} on fewer bits")
    table.add_row("float32", f"{accuracy(net, data):.1f}", f"{size_of(net):,}")
    longer = train(deepcopy(net), MORE, 1e-3, data)
    table.add_row(f"float32, {MORE} epochs on", f"{accuracy(longer, data):.1f}", "")
    for name, kind in (("largest", o.AbsmaxObserver), ("KL", o.KLObserver),
                       ("percentile", o.HistObserver), ("mean square", o.MSEObserver),
                       ("zero point", o.MinMaxObserver)):  # fmt: skip
        small = rounded(net, 8, True, kind(), data)
        name = f"weights and activations 8 bits, {name}"
        table.add_row(name, f"{accuracy(small, data):.1f}", f"{size_of(small):,}")
    for bits in (8, 6, 4, 3, 2):
        for by_channel in (False, True):
            where = "a scale for each output" if by_channel else "one scale"
            small = rounded(net, bits, by_channel, None, data)
            found = f"{accuracy(small, data):.1f}", f"{size_of(small):,}"
            table.add_row(f"weights {bits} bits, {where}", *found)
            if bits > 4:
                continue
            for how, made in (
                ("rounded in training", trained_on(net, bits, by_channel, MORE, data)),
                ("rounded after it", rounded(longer, bits, by_channel, None, data)),
            ):
                name = f"weights {bits} bits, {where}, {MORE} epochs on, {how}"
                table.add_row(name, f"{accuracy(made, data):.1f}", "")
    return table
