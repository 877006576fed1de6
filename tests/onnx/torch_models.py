"""Ten models of PyTorch, small, which its exporters write as ONNX."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class LeNet(nn.Module):
    """Convolutions, pooling, linear layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Tanh(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10))

    def forward(self, x):
        return self.head(torch.flatten(self.features(x), 1))


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.down = None
        if stride != 1 or inner != outer:
            self.down = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    """The plan of ResNet-18, an eighth as wide."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        widths = [(8, 8, 1), (8, 8, 1), (8, 16, 2), (16, 16, 1),
                  (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]  # fmt: skip
        self.blocks = nn.Sequential(*(Residual(*w) for w in widths))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class Inverted(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        wide = 4 * inner
        self.same = stride == 1 and inner == outer
        self.body = nn.Sequential(
            nn.Conv2d(inner, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide),
            nn.Hardswish(), nn.Conv2d(wide, outer, 1, bias=False), nn.BatchNorm2d(outer),
        )  # fmt: skip

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


class MobileNet(nn.Module):
    """Depthwise convolutions, relu6 and hardswish, a mean over the image."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Inverted(3, 8, 2), Inverted(8, 8, 1), Inverted(8, 16, 2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return F.log_softmax(self.head(self.body(x).mean([2, 3])), -1)


class VGG(nn.Module):
    """Plain stacks, an adaptive mean, dropout."""

    def __init__(self):
        super().__init__()
        layers, inner = [], 3
        for outer in (8, 8, 0, 16, 16, 0):
            layers += [nn.MaxPool2d(2, ceil_mode=True)] if not outer else [
                nn.Conv2d(inner, outer, 3, padding=1), nn.LeakyReLU(0.1)
            ]  # fmt: skip
            inner = outer or inner
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2))
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 10), nn.Sigmoid())

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class DenseNet(nn.Module):
    """Each layer reads all before it; grouped norms and transitions."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(2, 4 * k), nn.ELU(), nn.Conv2d(4 * k, 4, 3, padding=1))
            for k in range(1, 4)
        )
        self.first = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
        self.transition = nn.Sequential(nn.InstanceNorm2d(16, affine=True), nn.AvgPool2d(2))

    def forward(self, x):
        found = [self.first(x)]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return self.transition(torch.cat(found, 1)).amax((2, 3))


class Encoder(nn.Module):
    """A Transformer encoder of PyTorch's own layers."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            16, 4, 32, dropout=0.0, activation="gelu", batch_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.body(x)


class GPT(nn.Module):
    """Embeddings, causal attention, tied weights."""

    def __init__(self, vocab=17, width=16, heads=2, context=12):
        super().__init__()
        self.heads = heads
        self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 32), nn.GELU(approximate="tanh"), nn.Linear(32, width)
        )

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.token(tokens) + self.place(torch.arange(length))
        q, k, v = self.qkv(self.norm1(x)).split(x.shape[-1], -1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool))
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, -1))
        return (x + self.mlp(self.norm2(x))) @ self.token.weight.T


class LSTM(nn.Module):
    """Two layers in both directions, and a gated unit after them."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(12, 4, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, last = self.gru(y)
        return z, h, c, last


class UNet(nn.Module):
    """Down and up again, with a transposed convolution and an interpolation."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.SiLU())
        self.bottom = nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.PReLU())
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        first = self.down(x)
        joined = torch.cat([first, self.up(self.bottom(first))], 1)
        return F.interpolate(self.last(joined), scale_factor=2, mode="bilinear")


class ViT(nn.Module):
    """Patches, a class token, attention of PyTorch's own."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 17, 16))
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head(x[:, 0])


MODELS = {
    "LeNet": (LeNet, (2, 1, 28, 28)),
    "ResNet18": (ResNet18, (2, 3, 32, 32)),
    "MobileNet": (MobileNet, (2, 3, 16, 16)),
    "VGG": (VGG, (2, 3, 16, 16)),
    "DenseNet": (DenseNet, (2, 3, 8, 8)),
    "Encoder": (Encoder, (2, 5, 16)),
    "GPT": (GPT, (2, 7)),
    "LSTM": (LSTM, (2, 4, 5)),
    "UNet": (UNet, (2, 1, 8, 8)),
    "ViT": (ViT, (2, 3, 16, 16)),
}


def build(name: str):
    """(a model in evaluation mode whose norms have moved, its input)."""
    torch.manual_seed(0)
    kind, shape = MODELS[name]
    model = kind()
    x = torch.randint(0, 17, shape) if kind is GPT else torch.randn(shape)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_(0, 0.1)
                layer.running_var.uniform_(0.5, 1.5)
    return model.eval(), x


RECORDED = ("VGG", "Encoder", "GPT", "LSTM", "ViT")
"""Those that tests/data/onnx holds as the newer exporter writes them."""
