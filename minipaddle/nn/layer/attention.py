"""Attention in several heads, with caches for step-by-step use.

Source: Vaswani et al. 2017, "Attention Is All You Need".
"""

from typing import NamedTuple

from ...core.prelude import dt, movement, value_error
from ...tensor import creation
from ..functional.attention import attend
from .common import Linear, require_positive
from .layers import Layer

__all__ = ["MultiHeadAttention"]


class Cache(NamedTuple):
    """Keys and values of all places so far [batch, heads, length, size]: it grows by each call."""

    k: object
    v: object


class StaticCache(NamedTuple):
    """Keys and values of a memory [batch, heads, length, size], computed once."""

    k: object
    v: object


def additive(mask, dtype):
    """A mask to be added: booleans and whole numbers allow where they are 1, as in Paddle."""
    if mask is None or mask.spec.dtype in dt.FLOATS:
        return mask
    return (mask.astype(dtype) - 1.0) * 1e9


class MultiHeadAttention(Layer):
    """Attention in `num_heads` heads: every query mixes the values by its similarity to the keys.

    `forward(query, key=None, value=None, attn_mask=None, cache=None)`: query [batch, length,
    embed_dim], key and value the query if absent, with sizes `kdim` and `vdim`. `attn_mask` is
    boolean (True may be looked at) or is added; it broadcasts to [batch, heads, queries, keys].
    Gives the output, then the weights with `need_weights`, then the new cache if one was given.

    >>> attention = paddle.nn.MultiHeadAttention(8, 2)
    >>> attention(paddle.ones([2, 3, 8])).shape
    [2, 3, 8]
    """

    Cache, StaticCache = Cache, StaticCache

    def __init__(
        self, embed_dim, num_heads, dropout=0.0, kdim=None, vdim=None, need_weights=False,
        weight_attr=None, bias_attr=None,
    ):  # fmt: skip
        super().__init__()
        require_positive(self, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise value_error(
                f"MultiHeadAttention was given embed_dim={embed_dim}",
                f"a multiple of num_heads={num_heads}",
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x):
        """[batch, length, embed_dim] as [batch, heads, length, size]."""
        rows, length = x.spec.shape[:2]
        return x.reshape([rows, length, self.num_heads, self.head_dim]).transpose([0, 2, 1, 3])

    def compute_kv(self, key, value):
        """Keys and values in heads."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key, value=None, type=Cache):
        """A cache to pass to `forward`: an empty `Cache`, one that starts from (key, value), or a
        `StaticCache` of a memory.
        """
        if type is StaticCache:
            return StaticCache(*self.compute_kv(key, key if value is None else value))
        if value is not None:
            return Cache(key, value)
        empty = creation.zeros([key.spec.shape[0], self.num_heads, 0, self.head_dim], key.dtype)
        return Cache(empty, empty)

    def forward(self, query, key=None, value=None, attn_mask=None, cache=None):
        key, value = query if key is None else key, query if value is None else value
        q = self._heads(self.q_proj(query))
        if isinstance(cache, StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(key, value)
            if cache is not None:
                k = movement.concat(cache.k, k, axis=2)
                v = movement.concat(cache.v, v, axis=2)
                cache = Cache(k, v)
        mask = additive(attn_mask, q.spec.dtype)
        out, weights = attend(q, k, v, mask, self.dropout, self.training)
        out = self.out_proj(out.transpose([0, 2, 1, 3]).flatten(2))
        more = [weights] * self.need_weights + [cache] * (cache is not None)
        return (out, *more) if more else out
