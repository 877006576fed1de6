"""Models, and how their parameters lie: what the tests of training in pieces share."""

import minipaddle as paddle
from minipaddle import nn
from minipaddle.distributed import Replicate, Shard
from minipaddle.nn import functional as F

R = Replicate()


class Block(nn.Layer):
    """A block of a GPT: the heads come first among the columns, so that they can be cut."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape([batch, time, self.heads, 3, width // self.heads])
        q, k, v = qkv.transpose([3, 0, 2, 1, 4]).unbind(0)
        mask = paddle.triu(paddle.full([time, time], -1e9), 1)
        scores = q @ k.transpose([0, 1, 3, 2]) / (width // self.heads) ** 0.5 + mask
        y = F.dropout(F.softmax(scores, -1), self.dropout) @ v
        x = x + self.out(y.transpose([0, 2, 1, 3]).reshape([batch, time, width]))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Layer):
    """A GPT whose last layer is its embedding: tied weights."""

    def __init__(self, words=32, width=16, heads=4, blocks=1, time=8, dropout=0.1):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(time, width)
        self.blocks = nn.LayerList([Block(width, heads, dropout) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.words(x) + self.places(paddle.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y)
        return self.norm(y) @ self.words.weight.t()


def mlp():
    """A perceptron with one hidden layer."""
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))


def megatron(name: str, spec, first=()):
    """Tensor parallel on the last axis of the mesh: columns, then rows; the words' rows."""
    layer, what = name.split(".")[-2:]
    if layer in ("qkv", "up", "0"):
        return [*first, Shard(1 if what == "weight" else 0)]
    cut = layer in ("out", "down", "words", "2") and what == "weight"
    return [*first, Shard(0) if cut else R]


def replicated(name: str, spec):
    """Data parallel: each rank has all weights."""
    return []


def first_axis(name: str, spec):
    """ZeRO-3: pieces of every weight."""
    return [Shard(0)]
