"""Attention: values averaged with weights that queries and keys agree on."""

import math

from ...core.prelude import as_operator, dt, e, refuse_unsupported, value_error
from ...tensor import creation
from .activation import softmax
from .common import dropout

__all__ = ["scaled_dot_product_attention"]


@as_operator("flash_attn")
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, training=True, backend=None,
    scale=None, enable_gqa=True, name=None,
):  # fmt: skip
    """softmax(query · keyᵀ · scale + mask) · value, head by head: [batch, length, heads, size].

    `attn_mask` is boolean (True may be attended to) or is added, and broadcasts to [batch, heads,
    queries, keys]; `is_causal` lets place i see places up to i. Fewer heads of keys and values than
    of queries are shared among them (`enable_gqa`). `scale` is 1/√size if absent. Source: Vaswani
    et al. 2017.

    >>> q = paddle.ones([1, 3, 2, 4])
    >>> paddle.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).shape
    [1, 3, 2, 4]
    """
    if backend is not None:
        refuse_unsupported("scaled_dot_product_attention", backend=backend)
    if attn_mask is not None and is_causal:
        raise value_error(
            "scaled_dot_product_attention was given attn_mask and is_causal=True", "one of them"
        )
    if query.spec.ndim != 4:
        raise value_error(
            f"scaled_dot_product_attention was given queries {query.spec}",
            "[batch, length, heads, size]",
        )
    key, value = repeat_heads(query, key, enable_gqa), repeat_heads(query, value, enable_gqa)
    query, key, value = (x.transpose([0, 2, 1, 3]) for x in (query, key, value))
    if is_causal:
        attn_mask = causal_mask(query.spec.shape[2], key.spec.shape[2])
    out, _ = attend(query, key, value, attn_mask, dropout_p, training, scale)
    return out.transpose([0, 2, 1, 3])


def attend(query, key, value, mask=None, p=0.0, training=True, scale=None):
    """(the attended values, the weights) for queries, keys, values [batch, heads, length, size]."""
    scale = 1 / math.sqrt(query.spec.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.transpose([0, 1, 3, 2])
    weights = dropout(softmax(apply_mask(scores, mask)), p, training=training)
    return weights @ value, weights


def causal_mask(queries: int, keys: int):
    """[queries, keys], True where the key's place is not after the query's."""
    rows = creation.arange(0, queries, dtype=dt.int64).unsqueeze(1)
    return rows >= creation.arange(0, keys, dtype=dt.int64)


def apply_mask(scores, mask):
    """Scores with a mask added, or -inf where a boolean mask is False."""
    if mask is None:
        return scores
    if mask.spec.dtype == dt.bool_.numpy:
        return e.where(mask, scores, -math.inf)
    return scores + mask


def repeat_heads(query, x, enable_gqa: bool):
    """x with each head repeated until there are as many as the queries have."""
    have, want = x.spec.shape[2], query.spec.shape[2]
    if have == want:
        return x
    if not enable_gqa or want % have:
        raise value_error(
            f"queries have {want} heads, keys or values {have}",
            "equal numbers, or with enable_gqa a divisor",
        )
    return x.repeat_interleave(want // have, 2)
