"""A GPT that answers a token at a time: keys and values stay in caches, and a step writes its own.

`decode` is a loop that tensors end, which runs such steps and takes the likeliest token of each;
`token` is one step that changes its caches, for one text and for eight at once.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .workload import SEED, Target, Workload, is_torch, module

LAYERS, HEADS, WORDS = 4, 4, 256


def cache_shape(n: int, width: int, tokens: int) -> tuple:
    return n, HEADS, tokens, width // HEADS


def net(framework, width, tokens, texts=0):
    nn, F = framework.nn, framework.nn.functional
    scale = 1 / math.sqrt(width // HEADS)

    class Block(module(framework)):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x, at, bias, keys, values):
            n = x.shape[0]
            qkv = self.qkv(x).reshape([n, 3, HEADS, width // HEADS])
            keys[:, :, at], values[:, :, at] = qkv[:, 1], qkv[:, 2]
            scores = framework.matmul(keys, qkv[:, 0].unsqueeze(-1)).squeeze(-1) * scale + bias
            mixed = F.softmax(scores, -1).unsqueeze(2) @ values
            return self.out(mixed.reshape([n, width]))

        def forward(self, x, *caches):
            x = x + self.attend(self.norm1(x), *caches)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Decoder(module(framework)):
        def __init__(self):
            super().__init__()
            self.word, self.place = nn.Embedding(WORDS, width), nn.Embedding(tokens, width)
            blocks = nn.ModuleList if is_torch(framework) else nn.LayerList
            self.blocks = blocks([Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)
            for k in range(2 * LAYERS if texts else 0):
                empty = framework.zeros(cache_shape(texts, width, tokens))
                self.register_buffer(f"cache{k}", empty)

        def forward(self, ids, at, *caches):
            """The logits of the next token; the caches hold what was written before `at`."""
            x = self.word(ids) + self.place(at)
            bias = (framework.arange(tokens) > at) * -1e9
            for k, block in enumerate(self.blocks):
                x = block(x, at, bias, caches[2 * k], caches[2 * k + 1])
            return self.head(self.norm(x))

    return Decoder()


def loop(framework, width, tokens):
    def decode(net, ids, end):
        shape = cache_shape(ids.shape[0], width, tokens)
        caches = [framework.zeros(shape) for _ in range(2 * LAYERS)]
        told = framework.zeros([ids.shape[0], tokens], dtype=framework.int64)
        at = framework.zeros([], dtype=framework.int64)
        while at < end:
            ids = framework.argmax(net(ids, at, *caches), -1)
            told[:, at] = ids
            at = at + 1
        return told

    return decode


def torch_loop(torch, width, tokens):
    """The step is compiled: `torch.compile` splits a function at a loop that a tensor ends."""
    decode, compiled = loop(torch, width, tokens), {}

    def apply(net, ids, end):
        net = compiled.setdefault(net, torch.compile(net, dynamic=False))
        return decode(net, ids, end)

    return apply


def jax_step(jax, width, tokens):
    jnp, lax = jax.numpy, jax.lax
    scale = 1 / math.sqrt(width // HEADS)

    def norm(w, name, x):
        x = x - x.mean(-1, keepdims=True)
        return (
            x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"]
            + w[name + ".bias"]
        )

    def linear(w, name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def attend(w, name, x, at, bias, keys, values):
        n = x.shape[0]
        q, k, v = linear(w, name + ".qkv", x).reshape(n, 3, HEADS, 1, -1).swapaxes(0, 1)
        keys = lax.dynamic_update_slice(keys, k, (0, 0, at, 0))
        values = lax.dynamic_update_slice(values, v, (0, 0, at, 0))
        scores = (keys @ q.swapaxes(2, 3))[..., 0] * scale + bias
        mixed = jax.nn.softmax(scores, -1)[:, :, None] @ values
        return linear(w, name + ".out", mixed.reshape(n, width)), keys, values

    def step(w, ids, at, *caches):
        x, written = w["word.weight"][ids] + w["place.weight"][at], []
        bias = jnp.where(jnp.arange(tokens) > at, -1e9, 0.0)
        for k in range(LAYERS):
            name, own = f"blocks.{k}", caches[2 * k : 2 * k + 2]
            mixed, *own = attend(w, name, norm(w, name + ".norm1", x), at, bias, *own)
            written += own
            x = x + mixed
            up = linear(w, name + ".up", norm(w, name + ".norm2", x))
            x = x + linear(w, name + ".down", jax.nn.gelu(up, approximate=False))
        return linear(w, "head", norm(w, "norm", x)), *written

    return step


def jax_loop(jax, width, tokens):
    jnp, step = jax.numpy, jax_step(jax, width, tokens)

    def decode(w, ids, end):
        def turn(carried):
            at, ids, told, *caches = carried
            logits, *caches = step(w, ids, at, *caches)
            ids = logits.argmax(-1)
            return at + 1, ids, told.at[:, at].set(ids), *caches

        shape = cache_shape(ids.shape[0], width, tokens)
        caches = [jnp.zeros(shape) for _ in range(2 * LAYERS)]
        told = jnp.zeros((ids.shape[0], tokens), ids.dtype)
        first = jnp.zeros((), ids.dtype), ids, told, *caches
        return jax.lax.while_loop(lambda carried: carried[0] < end, turn, first)[2]

    return decode


def prompt(n: int, at: int) -> list[np.ndarray]:
    """A token of each text, and the place where a loop ends, or a token stands."""
    return [np.random.default_rng(SEED).integers(0, WORDS, n), np.array(at)]


def step(framework):
    """A token for each text; the caches are buffers of the net."""

    def tell(net, ids, at):
        return net(ids, at, *(getattr(net, f"cache{k}") for k in range(2 * LAYERS)))

    return tell


def decoding(n: int, width: int, tokens: int) -> Workload:
    sizes = {"width": width, "tokens": tokens}
    return Workload(
        title=f"GPT of {LAYERS} × {width}: a loop that tells {tokens} tokens",
        target=Target(0.6, "jax", 4.91e-3),
        batch=lambda: prompt(n, tokens),
        net=partial(net, **sizes),
        apply=partial(loop, **sizes),
        jax=partial(jax_loop, **sizes),
        kind="predict",
        torch_compile=partial(torch_loop, **sizes),
    )


def one_token(n: int, width: int = 256, tokens: int = 128) -> Workload:
    sizes = {"width": width, "tokens": tokens}
    return Workload(
        title=f"GPT of {LAYERS} × {width}: a token, batch {n}, caches of {tokens}",
        target=Target(0.9, "jax", n * 0.65e-3),
        batch=lambda: prompt(n, tokens // 2),
        net=partial(net, texts=n, **sizes),
        apply=step,
        jax=partial(jax_step, **sizes),
        kind="predict",
        states=lambda: [np.zeros(cache_shape(n, **sizes), "float32")] * (2 * LAYERS),
    )


DECODE = decoding(1, 128, 64)
TOKEN, TOKENS = one_token(1), one_token(8)
