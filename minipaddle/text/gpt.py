"""A small language model that reads from left to right: a decoder of Transformer blocks.

Sources: Vaswani et al., "Attention is all you need" (2017); Radford et al., "Language models are
unsupervised multitask learners" (2019), for norms before each part; Press and Wolf, "Using the
output embedding to improve language models" (2017), for tied weights.
"""

import math

import numpy as np

from .. import nn
from ..core.prelude import Recording, value_error
from ..generation import Decoder, KeyValueCache, Sampler, search_beams
from ..nn import functional as F
from ..tensor import creation, random

__all__ = ["GPT"]

SPREAD = 0.02
"""Standard deviation of fresh weights (Radford et al. 2018, section 4.1)."""


class Attention(nn.Layer):
    """Every position attends to itself and the positions before it: [batch, length, width] to the
    same.
    """

    def __init__(self, width, heads, dropout, depth):
        super().__init__()
        self.size, self.dropout = width // heads, dropout  # of a head: heads may be cut off
        self.qkv = linear(width, 3 * width)
        self.out = linear(width, width, depth)

    def forward(self, x, block=0, cache=None):
        batch, length, _ = x.shape
        split = self.qkv(x).reshape([batch, length, 3, -1, self.size])
        query, key, value = split.unbind(2)
        if cache is None:
            mixed = F.scaled_dot_product_attention(
                query, key, value, None, self.dropout, is_causal=True, training=self.training
            )
        else:
            key, value = cache.extend(block, key, value)
            mixed = F.scaled_dot_product_attention(query, key, value, cache.mask)
        return self.out(mixed.flatten(2))


class GPTBlock(nn.Layer):
    """x + attention(norm(x)), then x + mlp(norm(x)): norms first keep the sum of parts clean."""

    def __init__(self, width, heads, dropout, depth):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout, depth)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            linear(width, 4 * width), nn.GELU(), linear(4 * width, width, depth)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, *cache):
        x = x + self.dropout(self.attention(self.norm1(x), *cache))
        return x + self.dropout(self.mlp(self.norm2(x)))


def linear(inputs, outputs, depth=1):
    """A linear layer with weights so small that a sum of `depth` outputs keeps its variance."""
    weights = nn.initializer.Normal(0.0, SPREAD / math.sqrt(depth))
    return nn.Linear(inputs, outputs, weight_attr=weights)


class KeptDecoder:
    """The decoder of a model, and what it was made for. Copies of the model have none."""

    key = decoder = None

    def __reduce__(self):
        return KeptDecoder, ()


class GPT(nn.Layer):
    """Scores of the next token after each place: int64 [batch, length] to [batch, length, vocab].

    `width` numbers per place, `layers` blocks with `heads` heads, at most `context` places. With
    `tied` the scores are products with the embeddings of the tokens, else a linear layer's.
    Raises ValueError when heads do not divide width, or the text is longer than the context.

    A character-level model:

    >>> seed = paddle.seed(0)
    >>> text = "abcab" * 8
    >>> letters = sorted(set(text))
    >>> tokens = paddle.to_tensor([[letters.index(c) for c in text]])
    >>> net = paddle.text.GPT(len(letters), width=16, layers=1, heads=2, context=40)
    >>> optimizer = paddle.optimizer.AdamW(0.02, parameters=net.parameters())
    >>> for _ in range(60):
    ...     loss = paddle.nn.functional.cross_entropy(net(tokens[:, :-1]), tokens[:, 1:])
    ...     loss.backward()
    ...     optimizer.step()
    ...     optimizer.clear_grad()
    >>> "".join(letters[i] for i in net.generate(tokens[:, :4], 11, temperature=0)[0].tolist())
    'abcababcababcab'
    """

    def __init__(self, vocab_size, width, layers, heads, context, dropout=0.0, tied=True):
        super().__init__()
        if width % heads:
            raise value_error(f"GPT of width {width}", f"a multiple of heads={heads}")
        self.context, self.kept = context, KeptDecoder()
        spread = nn.initializer.Normal(0.0, SPREAD)
        self.tokens = nn.Embedding(vocab_size, width, weight_attr=spread)
        self.places = nn.Embedding(context, width, weight_attr=spread)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.LayerList(
            [GPTBlock(width, heads, dropout, 2 * layers) for _ in range(layers)]
        )
        self.norm = nn.LayerNorm(width)
        self.head = None if tied else nn.Linear(width, vocab_size, spread, bias_attr=False)

    def forward(self, tokens, cache=None):
        """The scores; with a `generation.View` of a cache, of tokens that follow its contents."""
        length = tokens.shape[1]
        if length > self.context:
            raise value_error(
                f"GPT was given {length} tokens",
                f"at most context={self.context}",
                hint="cut the text into pieces, or build the model with a longer context",
            )
        places = creation.arange(length) if cache is None else cache.places
        x = self.dropout(self.tokens(tokens) + self.places(places))
        for k, block in enumerate(self.blocks):
            x = block(x, k, cache)
        x = self.norm(x)
        return x @ self.tokens.weight.t() if self.head is None else self.head(x)

    def make_cache(self, slots, context=None):
        """An empty `generation.Cache` for this many texts of at most `context` tokens."""
        width = self.places.weight.shape[1]
        return KeyValueCache(len(self.blocks), slots, context or self.context, width)

    def generate(self, tokens, n, temperature=1.0, top_k=None, top_p=None, beams=1, end=None):
        """`tokens` [batch, length] with `n` more, drawn one by one by the model's probabilities.

        Scores are divided by `temperature` first: 0 always takes the likeliest. `top_k` leaves only
        that many of the likeliest to draw from, `top_p` the fewest that together are so likely.
        `beams` above 1 searches for the likeliest text instead. After the token `end` a row is
        filled up with it. Keys and values are cached; once a text is longer than the context, only
        its last `context` tokens are looked at, and read again for each new one.

        >>> net = paddle.text.GPT(5, width=8, layers=1, heads=2, context=4)
        >>> net.generate(paddle.to_tensor([[1, 2]]), 6).shape
        [1, 8]
        """
        was_training = self.training
        try:
            if beams > 1:
                decoder, rows = self.decoder(beams), []
                for row in tokens.tolist():
                    text = [*row, *search_beams(decoder, row, n, end)]
                    rows.append(text + [end] * (len(row) + n - len(text)))
                return creation.to_tensor(rows, dtype=tokens.dtype)
            seeds = random.randint(0, 2**31 - 1, [len(tokens)]).tolist()
            samplers = [Sampler(temperature, top_k, top_p, seed) for seed in seeds]
            return creation.to_tensor(self.write(tokens.numpy(), n, samplers, end), tokens.dtype)
        finally:
            self.train(was_training)

    def write(self, tokens, n, samplers, end):
        """The array [batch, length + n] of texts: see `generate`."""
        decoder, (batch, length) = self.decoder(len(tokens)), tokens.shape
        held, done = 0, np.zeros(batch, bool)
        for m in range(length, length + n):
            if m > self.context:
                with Recording(False):
                    last = creation.to_tensor(tokens[:, -self.context :])
                    scores = self(last)[:, -1].numpy()
            else:
                scores = decoder.read_together(tokens[:, held:], [held] * batch)[:, -1]
                held = m
            new = [end if over else s.draw(x) for s, x, over in zip(samplers, scores, done)]
            tokens = np.column_stack([tokens, new])
            done |= tokens[:, -1] == end
        return tokens

    def decoder(self, slots):
        """A `generation.Decoder` of this model, which is kept until its layers are others."""
        key, kept = (slots, [id(layer) for layer in self.sublayers()]), self.kept
        if kept.key != key:
            kept.key, kept.decoder = key, Decoder(self, slots)
        self.eval()
        return kept.decoder
