"""The models that are measured, written once for Paddle's names and once for PyTorch's.

A step is a function without arguments that trains once and returns the loss as a float. All
frameworks start from the same weights and see the same data.
"""

from __future__ import annotations

import itertools
import math

import numpy as np


def seeded_weights(shapes: dict[str, tuple]) -> dict[str, np.ndarray]:
    """Weights by name: scaled normals for matrices and kernels, ones and zeros for the rest."""
    rng = np.random.default_rng(0)
    out = {}
    for name, shape in sorted(shapes.items()):
        if len(shape) > 1:
            fan = int(np.prod(shape[1:])) if len(shape) > 2 else max(shape)
            out[name] = (rng.normal(size=shape) * math.sqrt(1 / fan)).astype("float32")
        else:
            out[name] = np.full(shape, float(name.endswith("weight")), "float32")
    return out


def share_weights(framework, net) -> None:
    """Give `net` the weights its names stand for; PyTorch's Linear holds the transpose."""
    torch = framework.__name__ == "torch"
    turned = {
        f"{name}.weight"
        for name, layer in (net.named_modules() if torch else net.named_sublayers())
        if type(layer).__name__ == "Linear"
    }
    shapes = {
        name: tuple(p.shape)[::-1] if torch and name in turned else tuple(p.shape)
        for name, p in net.named_parameters()
    }
    weights = seeded_weights(shapes)
    for name, p in net.named_parameters():
        value = weights[name].T if torch and name in turned else weights[name]
        if torch:
            p.data.copy_(framework.tensor(np.ascontiguousarray(value)))
        else:
            p.set_value(value)


def training_step(framework, net, optimizer, batch, loss_of, style="eager"):
    """One step of training, written as each framework's users write it.

    In the style "network" the network alone is converted by `to_static`, in the style "step" the
    whole step is.
    """
    if style == "network":
        net = framework.jit.to_static(net, full_graph=True)

    def train(*batch):
        loss = loss_of(net, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad() if framework.__name__ == "torch" else optimizer.clear_grad()
        return loss

    if style == "step":
        train = framework.jit.to_static(train)
    return lambda: float(train(*batch).item())


def tensors(framework, *arrays):
    make = framework.tensor if framework.__name__ == "torch" else framework.to_tensor
    return [make(a) for a in arrays]


def sgd(framework, net, rate: float):
    if framework.__name__ == "torch":
        return framework.optim.SGD(net.parameters(), lr=rate)
    return framework.optimizer.SGD(learning_rate=rate, parameters=net.parameters())


def classify(framework):
    """Cross entropy of the network's answer."""
    entropy = framework.nn.functional.cross_entropy
    return lambda net, x, y: entropy(net(x), y)


def mlp(framework, **how):
    """64-32-32-10 on a batch of 32."""
    nn = framework.nn
    net = nn.Sequential(
        nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)
    )
    share_weights(framework, net)
    rng = np.random.default_rng(1)
    batch = rng.normal(size=(32, 64)).astype("float32"), rng.integers(0, 10, 32)
    batch = tensors(framework, *batch)
    return training_step(
        framework, net, sgd(framework, net, 0.01), batch, classify(framework), **how
    )


def module(framework):
    """The base class of models."""
    return framework.nn.Module if framework.__name__ == "torch" else framework.nn.Layer


def gpt(framework, layers=4, width=128, heads=4, tokens=64, batch=8, words=256, **how):
    """A small GPT: pre-norm blocks, causal attention written out."""
    nn, F = framework.nn, framework.nn.functional
    torch = framework.__name__ == "torch"

    def swap(x, a, b):
        order = list(range(x.ndim))
        order[a], order[b] = order[b], order[a]
        return x.permute(order) if torch else x.transpose(order)

    class Block(module(framework)):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x, mask):
            n, t, c = x.shape
            qkv = self.qkv(x).reshape([n, t, 3, heads, c // heads])
            q, k, v = (swap(qkv[:, :, i], 1, 2) for i in range(3))
            scores = q @ swap(k, 2, 3) * (1 / math.sqrt(c // heads)) + mask
            return self.out(swap(F.softmax(scores, -1) @ v, 1, 2).reshape([n, t, c]))

        def forward(self, x, mask):
            x = x + self.attend(self.norm1(x), mask)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(module(framework)):
        def __init__(self):
            super().__init__()
            self.word, self.place = nn.Embedding(words, width), nn.Embedding(tokens, width)
            blocks = nn.ModuleList if torch else nn.LayerList
            self.blocks = blocks([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

        def forward(self, x, places, mask):
            x = self.word(x) + self.place(places)
            for block in self.blocks:
                x = block(x, mask)
            return self.head(self.norm(x))

    net = GPT()
    share_weights(framework, net)
    text = np.random.default_rng(2).integers(0, words, (batch, tokens + 1))
    mask = np.triu(np.full((tokens, tokens), -1e9, "float32"), 1)
    data = tensors(framework, text[:, :-1].copy(), text[:, 1:].copy(), np.arange(tokens), mask)

    def loss_of(net, x, y, places, mask):
        return F.cross_entropy(net(x, places, mask).reshape([-1, words]), y.reshape([-1]))

    return training_step(framework, net, sgd(framework, net, 0.01), data, loss_of, **how)


def resnet(framework, widths=(16, 32, 64), blocks=2, batch=32, size=32, **how):
    """A small ResNet on 32×32 images (He et al. 2015, section 4.2)."""
    nn, F = framework.nn, framework.nn.functional
    torch = framework.__name__ == "torch"

    def conv(a, b, k, stride):
        no_bias = {"bias": False} if torch else {"bias_attr": False}
        return (
            nn.Conv2d(a, b, k, stride, k // 2, **no_bias)
            if torch
            else nn.Conv2D(a, b, k, stride, k // 2, **no_bias)
        )

    norm = nn.BatchNorm2d if torch else nn.BatchNorm2D

    class Block(module(framework)):
        def __init__(self, a, b, stride):
            super().__init__()
            self.conv1, self.norm1 = conv(a, b, 3, stride), norm(b)
            self.conv2, self.norm2 = conv(b, b, 3, 1), norm(b)
            self.short = conv(a, b, 1, stride) if a != b else None

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + (self.short(x) if self.short else x))

    class ResNet(module(framework)):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = conv(3, widths[0], 3, 1), norm(widths[0])
            ends = [widths[0], *widths]
            pairs = list(itertools.pairwise(ends))
            self.body = nn.Sequential(
                *[
                    Block(a if k == 0 else b, b, 2 if a != b and k == 0 else 1)
                    for a, b in pairs
                    for k in range(blocks)
                ]
            )
            self.head = nn.Linear(widths[-1], 10)

        def forward(self, x):
            x = self.body(F.relu(self.norm(self.stem(x))))
            return self.head(x.mean([2, 3]))

    net = ResNet()
    share_weights(framework, net)
    rng = np.random.default_rng(3)
    images = rng.normal(size=(batch, 3, size, size)).astype("float32")
    data = tensors(framework, images, rng.integers(0, 10, batch))
    return training_step(
        framework, net, sgd(framework, net, 0.01), data, classify(framework), **how
    )


STEPS = {
    "MLP 64-32-32-10, batch 32": mlp,
    "GPT, 4 layers of 128, 8 × 64 tokens": gpt,
    "ResNet 16/32/64, 32 images of 32×32": resnet,
}
