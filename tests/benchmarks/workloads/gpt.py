"""A small GPT: pre-norm blocks, causal attention written out, Adam; and its answer to one text.

For a long text every framework uses its own causal attention, which stores no matrix of scores.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .workload import SEED, Target, Workload, is_torch, jax_entropy, module

LAYERS, WIDTH, HEADS, TOKENS, WORDS = 4, 128, 4, 64, 256
LONG = 2048
"""Tokens of a long text."""
SCALE = 1 / math.sqrt(WIDTH // HEADS)


def net(framework, layers=LAYERS, tokens=TOKENS, width=WIDTH, heads=HEADS):
    nn, F = framework.nn, framework.nn.functional
    torch, scale = is_torch(framework), 1 / math.sqrt(width // heads)

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
            if tokens > TOKENS:
                q, k, v = (swap(qkv[:, :, i], 1, 2) if torch else qkv[:, :, i] for i in range(3))
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                return self.out((swap(y, 1, 2) if torch else y).reshape([n, t, c]))
            q, k, v = (swap(qkv[:, :, i], 1, 2) for i in range(3))
            scores = q @ swap(k, 2, 3) * scale + mask
            return self.out(swap(F.softmax(scores, -1) @ v, 1, 2).reshape([n, t, c]))

        def forward(self, x, mask):
            x = x + self.attend(self.norm1(x), mask)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(module(framework)):
        def __init__(self):
            super().__init__()
            self.word, self.place = nn.Embedding(WORDS, width), nn.Embedding(tokens, width)
            blocks = nn.ModuleList if torch else nn.LayerList
            self.blocks = blocks([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)

        def forward(self, x, places, mask):
            x = self.word(x) + self.place(places)
            for block in self.blocks:
                x = block(x, mask)
            return self.head(self.norm(x))

    return GPT()


def loss_of(framework):
    entropy = framework.nn.functional.cross_entropy

    def loss(net, x, y, places, mask):
        return entropy(net(x, places, mask).reshape([-1, WORDS]), y.reshape([-1]))

    return loss


def logits_of(framework):
    return lambda net, *batch: net(*batch)


def jax_logits(jax, layers=LAYERS):
    def norm(w, name, x):
        x = x - x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * scale * w[name + ".weight"] + w[name + ".bias"]

    def linear(w, name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def attend(w, name, x, mask):
        n, t, c = x.shape
        qkv = linear(w, name + ".qkv", x).reshape(n, t, 3, HEADS, c // HEADS)
        if t > TOKENS:
            mixed = jax.nn.dot_product_attention(*(qkv[:, :, i] for i in range(3)), is_causal=True)
            return linear(w, name + ".out", mixed.reshape(n, t, c))
        q, k, v = (qkv[:, :, i].swapaxes(1, 2) for i in range(3))
        scores = q @ k.swapaxes(2, 3) * SCALE + mask
        mixed = jax.nn.softmax(scores, -1) @ v
        return linear(w, name + ".out", mixed.swapaxes(1, 2).reshape(n, t, c))

    def logits(w, x, places, mask):
        x = w["word.weight"][x] + w["place.weight"][places]
        for k in range(layers):
            name = f"blocks.{k}"
            x = x + attend(w, name, norm(w, name + ".norm1", x), mask)
            up = jax.nn.gelu(
                linear(w, name + ".up", norm(w, name + ".norm2", x)), approximate=False
            )
            x = x + linear(w, name + ".down", up)
        return linear(w, "head", norm(w, "norm", x))

    return logits


def jax_loss(jax, layers=LAYERS):
    logits = jax_logits(jax, layers)

    def loss(w, x, y, places, mask):
        predicted = logits(w, x, places, mask).reshape(-1, WORDS)
        return jax_entropy(jax, predicted, y.reshape(-1)), {}

    return loss


def long_text(tokens: int) -> list[np.ndarray]:
    text = np.random.default_rng(SEED).integers(0, WORDS, (1, tokens + 1))
    return [text[:, :-1].copy(), text[:, 1:].copy(), np.arange(tokens), np.zeros(1, "float32")]


def texts(count: int, tokens: int = TOKENS) -> list[np.ndarray]:
    text = np.random.default_rng(SEED).integers(0, WORDS, (count, tokens + 1))
    mask = np.triu(np.full((tokens, tokens), -1e9, "float32"), 1)
    return [text[:, :-1].copy(), text[:, 1:].copy(), np.arange(tokens), mask]


def one_text():
    x, _, places, mask = texts(1)
    return [x, places, mask]


GPT = Workload(
    title="GPT step, 4 layers of 128, 8 × 64 tokens, Adam",
    target=Target(0.85, "torch.compile", 41.7e-3),
    batch=lambda: texts(8),
    net=net,
    apply=loss_of,
    jax=jax_loss,
    optimizer=("Adam", 1e-3),
)
GPT_PREDICTS = Workload(
    title="GPT inference, one text of 64",
    target=Target(0.85, "jax", 1.62e-3),
    batch=one_text,
    net=net,
    apply=logits_of,
    jax=jax_logits,
    kind="predict",
)


def trained_on(tokens: int) -> Workload:
    """A step on one long text; the target is that of `LONG` tokens."""
    return Workload(
        title=f"GPT step, 2 layers of 128, {tokens:,} tokens, Adam",
        target=Target(0.9, "torch", 0.213),
        batch=partial(long_text, tokens),
        net=partial(net, layers=2, tokens=tokens),
        apply=loss_of,
        jax=partial(jax_loss, layers=2),
        optimizer=("Adam", 1e-3),
    )


GPT_LONG = trained_on(LONG)
