"""A small language model that reads from left to right: a decoder of Transformer blocks.

Sources: Vaswani et al., "Attention is all you need" (2017); Radford et al., "Language models are
unsupervised multitask learners" (2019), for norms before each part; Press and Wolf, "Using the
output embedding to improve language models" (2017), for tied weights.
"""

import math

from .. import nn
from ..core.prelude import Recording, e, movement, value_error
from ..nn import functional as F
from ..tensor import creation, random, search
from ..tensor.reduce import argmax

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

    def forward(self, x):
        batch, length, _ = x.shape
        split = self.qkv(x).reshape([batch, length, 3, -1, self.size])
        query, key, value = split.unbind(2)
        mixed = F.scaled_dot_product_attention(
            query, key, value, None, self.dropout, is_causal=True, training=self.training
        )
        return self.out(mixed.flatten(2))


class Block(nn.Layer):
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

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


def linear(inputs, outputs, depth=1):
    """A linear layer with weights so small that a sum of `depth` outputs keeps its variance."""
    weights = nn.initializer.Normal(0.0, SPREAD / math.sqrt(depth))
    return nn.Linear(inputs, outputs, weight_attr=weights)


class GPT(nn.Layer):
    """Scores of the next token after each place: int64 [batch, length] to [batch, length, vocab].

    `width` numbers per place, `layers` blocks with `heads` heads, at most `context` places. With
    `tied` the scores are products with the embeddings of the tokens, else a linear layer's.
    Raises ValueError when heads do not divide width, or the text is longer than the context.

    A character-level model:

    >>> import minipaddle as paddle
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
        self.context = context
        spread = nn.initializer.Normal(0.0, SPREAD)
        self.tokens = nn.Embedding(vocab_size, width, weight_attr=spread)
        self.places = nn.Embedding(context, width, weight_attr=spread)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.LayerList(
            [Block(width, heads, dropout, 2 * layers) for _ in range(layers)]
        )
        self.norm = nn.LayerNorm(width)
        self.head = None if tied else nn.Linear(width, vocab_size, spread, bias_attr=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        if length > self.context:
            raise value_error(
                f"GPT was given {length} tokens",
                f"at most context={self.context}",
                hint="cut the text into pieces, or build the model with a longer context",
            )
        x = self.dropout(self.tokens(tokens) + self.places(creation.arange(length)))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return x @ self.tokens.weight.t() if self.head is None else self.head(x)

    def generate(self, tokens, n, temperature=1.0, top_k=None):
        """`tokens` [batch, length] with `n` more, drawn one by one by the model's probabilities.

        Scores are divided by `temperature` first: 0 always takes the likeliest. `top_k` leaves only
        that many of the likeliest to draw from. Only the last `context` tokens are looked at.

        >>> import minipaddle as paddle
        >>> net = paddle.text.GPT(5, width=8, layers=1, heads=2, context=4)
        >>> net.generate(paddle.to_tensor([[1, 2]]), 6).shape
        [1, 8]
        """
        if temperature < 0:
            raise value_error(f"generate at temperature {temperature}", "0 or more")
        was_training = self.training
        self.eval()
        try:
            with Recording(False):
                for _ in range(n):
                    scores = self(tokens[:, -self.context :])[:, -1]
                    chosen = choose(scores, temperature, top_k).astype(tokens.dtype)
                    tokens = movement.concat(tokens, chosen, axis=1)
        finally:
            self.train(was_training)
        return tokens


def choose(scores, temperature, top_k):
    """A token for each row of scores [batch, vocab]: [batch, 1]."""
    if temperature == 0:
        return argmax(scores, -1, keepdim=True)
    if top_k is not None:
        worst = search.topk(scores, min(top_k, scores.shape[-1]))[0][:, -1:]
        scores = e.where(scores < worst, -math.inf, scores)
    return random.multinomial(F.softmax(scores / temperature))
