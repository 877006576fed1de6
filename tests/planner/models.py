"""The models of published runs: decoders as GPT-3's and as LLaMA's, with heads that can be cut."""

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn import functional as F


class Attention(nn.Layer):
    """Causal attention; `turned` turns queries and keys by their place (rotary embeddings)."""

    def __init__(self, width: int, heads: int, turned: bool, bias):
        super().__init__()
        self.size, self.turned = width // heads, turned
        self.qkv = nn.Linear(width, 3 * width, bias_attr=bias)  # head by head, to be cut
        self.out = nn.Linear(width, width, bias_attr=bias)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).reshape([batch, length, -1, 3, self.size]).unbind(3)
        if self.turned:
            q, k = turn(q), turn(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.reshape([batch, length, -1]))


def turn(x):
    """Rotary embeddings: each half of a head is mixed with the other by the angle of its place."""
    length, size = x.shape[1], x.shape[3]
    places = paddle.arange(length, dtype="float32").reshape([1, length, 1, 1])
    rates = 10000.0 ** (-paddle.arange(0, size, 2, dtype="float32") / size)
    angle = places * rates.reshape([1, 1, 1, -1])
    cos, sin, (a, b) = angle.cos(), angle.sin(), paddle.split(x, 2, -1)
    return paddle.concat([a * cos - b * sin, b * cos + a * sin], -1)


class Feed(nn.Layer):
    """GPT's two layers with GELU, or LLaMA's three with a gate."""

    def __init__(self, width: int, inner: int, gated: bool, bias):
        super().__init__()
        self.up, self.down = (
            nn.Linear(*sizes, bias_attr=bias) for sizes in ((width, inner), (inner, width))
        )
        self.gate = nn.Linear(width, inner, bias_attr=bias) if gated else None

    def forward(self, x):
        y = self.up(x)
        return self.down(F.gelu(y) if self.gate is None else F.silu(self.gate(x)) * y)


class Block(nn.Layer):
    def __init__(self, width: int, heads: int, inner: int, llama: bool):
        super().__init__()
        norm, bias = (nn.RMSNorm, False) if llama else (nn.LayerNorm, None)
        self.norm1, self.norm2 = norm(width), norm(width)
        self.attention = Attention(width, heads, llama, bias)
        self.feed = Feed(width, inner, llama, bias)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Decoder(nn.Layer):
    """A decoder of so many blocks; `inner` is 4 × width if absent."""

    def __init__(self, words, width, heads, blocks, inner=None, llama=False):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.LayerList(
            [Block(width, heads, inner or 4 * width, llama) for _ in range(blocks)]
        )
        self.norm = nn.RMSNorm(width) if llama else nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias_attr=False)

    def forward(self, x):
        y = self.words(x)
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))
