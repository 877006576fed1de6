"""Layers and models with open sizes: one program for all batches, lengths and image sizes."""

import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.vision import models
from tests.static.open_sizes import compare, spec

pytestmark = pytest.mark.sweep(one_in=4)

F = nn.functional
N = [{"b": 3}, {"b": 1}, {"b": 7}, {"b": 2}]
CASES = []


def case(name, make, specs, sizes=N, tol=1e-5, programs=1):
    CASES.append(pytest.param(make, specs, sizes, programs, tol, id=name))


case(
    "mlp",
    lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 3)),
    [spec("b", 8)],
)


class LeNet(nn.Layer):
    def __init__(s):
        super().__init__()
        s.f = nn.Sequential(
            nn.Conv2D(1, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
        )
        s.fc = nn.Linear(400, 10)

    def forward(s, x):
        x = s.f(x)
        x = paddle.flatten(x, 1)
        return s.fc(x)


case("lenet", LeNet, [spec("b", 1, 28, 28)])
case("lenet reshape", lambda: lambda x: x.reshape([x.shape[0], -1]) * 2, [spec("b", 3, 4)])
case(
    "resnet18",
    lambda: models.resnet18(num_classes=4),
    [spec("b", 3, 32, 32)],
    [{"b": 2}, {"b": 1}],
    tol=1e-3,
)
case(
    "resnet18 hw",
    lambda: models.resnet18(num_classes=4),
    [spec("b", 3, "h", "w")],
    [{"b": 2, "h": 32, "w": 40}, {"b": 1, "h": 33, "w": 32}],
    tol=1e-3,
)
case(
    "mobilenetv2",
    lambda: models.mobilenet_v2(num_classes=4),
    [spec("b", 3, 32, 32)],
    [{"b": 2}, {"b": 1}],
    tol=1e-3,
)
case(
    "lstm",
    lambda: nn.LSTM(4, 5, 2),
    [spec("b", "t", 4)],
    [{"b": 2, "t": 3}, {"b": 1, "t": 1}, {"b": 3, "t": 6}],
)
case(
    "lstm b",
    lambda: nn.LSTM(4, 5, 2, direction="bidirect"),
    [spec("b", 6, 4)],
    [{"b": 2}, {"b": 1}],
)
case(
    "gru",
    lambda: nn.GRU(4, 5),
    [spec("b", "t", 4)],
    [{"b": 2, "t": 3}, {"b": 1, "t": 1}, {"b": 3, "t": 6}],
)
case(
    "encoder",
    lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2),
    [spec("b", "t", 8)],
    [{"b": 2, "t": 3}, {"b": 1, "t": 1}, {"b": 3, "t": 6}],
)


class UNet(nn.Layer):
    def __init__(s):
        super().__init__()
        s.d1 = nn.Conv2D(2, 4, 3, padding=1)
        s.d2 = nn.Conv2D(4, 8, 3, padding=1)
        s.p = nn.MaxPool2D(2)
        s.up = nn.Conv2DTranspose(8, 4, 2, stride=2)
        s.o = nn.Conv2D(8, 1, 1)

    def forward(s, x):
        a = F.relu(s.d1(x))
        b = F.relu(s.d2(s.p(a)))
        c = s.up(b)
        return s.o(paddle.concat([a, c], 1))


case("unet b", UNet, [spec("b", 2, 16, 16)])
case(
    "unet hw",
    UNet,
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 16, "w": 8}, {"b": 1, "h": 4, "w": 2}, {"b": 1, "h": 32, "w": 32}],
)
for mode in ("nearest", "bilinear", "bicubic"):
    case(
        "upsample " + mode,
        lambda mode=mode: nn.Upsample(scale_factor=2, mode=mode),
        [spec("b", 2, "h", "w")],
        [{"b": 2, "h": 3, "w": 4}, {"b": 1, "h": 1, "w": 1}, {"b": 1, "h": 5, "w": 2}],
    )
case(
    "interp to size",
    lambda: lambda x, y: F.interpolate(x, size=y.shape[2:]),
    [spec("b", 2, "h", "w"), spec("b", 2, "k", "l")],
    [{"b": 2, "h": 3, "w": 4, "k": 6, "l": 7}, {"b": 1, "h": 1, "w": 1, "k": 2, "l": 2}],
    programs=1,
)
case(
    "adaptive1",
    lambda: nn.AdaptiveAvgPool2D(1),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 3, "w": 4}, {"b": 1, "h": 1, "w": 1}],
)
case(
    "adaptive2",
    lambda: nn.AdaptiveAvgPool2D(2),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "adaptivemax",
    lambda: nn.AdaptiveMaxPool2D(1),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "pads",
    lambda: (
        lambda x: [
            F.pad(x, [1, 2, 0, 1], mode=m) for m in ("constant", "replicate", "reflect", "circular")
        ]
    ),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "avgpool",
    lambda: nn.AvgPool2D(3, 2, padding=1),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "same conv",
    lambda: nn.Conv2D(2, 3, 3, stride=2, padding="SAME"),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "bn eval",
    lambda: nn.BatchNorm2D(2),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "groupnorm",
    lambda: nn.GroupNorm(2, 4),
    [spec("b", 4, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "instnorm",
    lambda: nn.InstanceNorm2D(4),
    [spec("b", 4, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 7, "w": 5}],
)
case(
    "emb",
    lambda: nn.Embedding(6, 3),
    [spec("b", "t", dtype="int64")],
    [{"b": 2, "t": 3}, {"b": 1, "t": 1}],
)
case(
    "mha",
    lambda: nn.MultiHeadAttention(8, 2),
    [spec("b", "t", 8)],
    [{"b": 2, "t": 3}, {"b": 1, "t": 1}],
)
case(
    "sdpa causal",
    lambda: lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
    [spec("b", "t", 2, 4)],
    [{"b": 2, "t": 3}, {"b": 1, "t": 1}],
)
case("ce", lambda: lambda x, y: F.cross_entropy(x, y), [spec("b", 5), spec("b", 1, dtype="int64")])
case(
    "ce3",
    lambda: lambda x, y: F.cross_entropy(x, y, soft_label=False, ignore_index=2, reduction="mean"),
    [spec("b", "t", 5), spec("b", "t", dtype="int64")],
    [{"b": 2, "t": 3}, {"b": 1, "t": 1}],
)
case(
    "bce",
    lambda: lambda x: F.binary_cross_entropy_with_logits(x, paddle.ones_like(x)),
    [spec("b", 5)],
)
case(
    "pixel_shuffle",
    lambda: nn.PixelShuffle(2),
    [spec("b", 8, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 1, "w": 5}],
)
case(
    "unfold",
    lambda: nn.Unfold(2),
    [spec("b", 2, "h", "w")],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 2, "w": 5}],
)
case(
    "grid",
    lambda: lambda x, g: F.grid_sample(x, g),
    [spec("b", 2, "h", "w"), spec("b", 3, 3, 2)],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 2, "w": 5}],
    tol=1e-4,
)
case(
    "affinegrid",
    lambda: lambda x, t: F.affine_grid(t, x.shape),
    [spec("b", 2, "h", "w"), spec("b", 2, 3)],
    [{"b": 2, "h": 4, "w": 4}, {"b": 1, "h": 2, "w": 5}],
    tol=1e-4,
)


@pytest.mark.parametrize(("make", "specs", "sizes", "programs", "tol"), CASES)
def test_one_program(make, specs, sizes, programs, tol):
    compare(make, specs, sizes, programs, tol)
