"""The Transformer: encoder and decoder.

Source: Vaswani et al. 2017, "Attention Is All You Need".
"""

from ...core.prelude import dt, value_error
from .. import functional as F
from ..functional.attention import causal_mask
from .attention import MultiHeadAttention, StaticCache
from .attention import additive as _convert_attention_mask  # noqa: F401  programs import this name
from .common import Dropout, Linear
from .container import LayerList
from .layers import Layer
from .norm import LayerNorm


def spread(attr, count: int) -> list:
    """One attribute for each of `count` parts: a list is taken as it is."""
    if isinstance(attr, list | tuple):
        if len(attr) != count:
            raise value_error(f"{len(attr)} attributes were given for {count} parts", "one each")
        return list(attr)
    return [attr] * count


_convert_param_attr_to_list = spread  # programs import this name


class TransformerLayer(Layer):
    """The base of encoder and decoder layers: attentions, two linear maps, and around each of these
    branches dropout, a residual connection and layer norm.
    """

    attentions: tuple[str, ...] = ()

    def __init__(
        self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None,
        act_dropout=None, normalize_before=False, weight_attr=None, bias_attr=None,
        layer_norm_eps=1e-5,
    ):  # fmt: skip
        arguments = locals()
        super().__init__()
        self._config = {k: v for k, v in arguments.items() if k not in ("self", "__class__")}
        branches = len(self.attentions) + 1
        weights, biases = spread(weight_attr, branches), spread(bias_attr, branches)
        p = dropout if attn_dropout is None else attn_dropout
        for name, weight, bias in zip(self.attentions, weights, biases):
            attention = MultiHeadAttention(d_model, nhead, p, weight_attr=weight, bias_attr=bias)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1])
        for k in range(1, branches + 1):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps))
        for k in range(1, branches + 1):
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.normalize_before, self.activation = normalize_before, getattr(F, activation)

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x, branch, norm, dropout):
        """x + branch(x), normalised before the branch or after the sum."""
        if self.normalize_before:
            return x + dropout(branch(norm(x)))
        return norm(x + dropout(branch(x)))


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then two linear maps; each with dropout, residual and layer norm.

    `forward(src, src_mask=None, cache=None)` keeps the shape [batch, length, d_model]; with a cache
    it gives (output, cache). `weight_attr` and `bias_attr` may be lists of two: attention, linear.

    >>> layer = paddle.nn.TransformerEncoderLayer(8, 2, 16)
    >>> layer(paddle.ones([2, 3, 8])).shape
    [2, 3, 8]
    """

    attentions = ("self_attn",)

    def forward(self, src, src_mask=None, cache=None):
        def attention(x):
            nonlocal cache
            if cache is None:
                return self.self_attn(x, x, x, src_mask)
            out, cache = self.self_attn(x, x, x, src_mask, cache)
            return out

        src = self._residual(src, attention, self.norm1, self.dropout1)
        src = self._residual(src, self._feed_forward, self.norm2, self.dropout2)
        return src if cache is None else (src, cache)

    def gen_cache(self, src):
        """An empty cache for step-by-step use."""
        return self.self_attn.gen_cache(src)


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to the encoder's memory, then two linear maps.

    `forward(tgt, memory, tgt_mask=None, memory_mask=None, cache=None)` keeps the shape [batch,
    length, d_model]; with a cache it gives (output, cache). The attributes may be lists of three.

    >>> layer = paddle.nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(paddle.ones([2, 3, 8]), paddle.ones([2, 5, 8])).shape
    [2, 3, 8]
    """

    attentions = ("self_attn", "cross_attn")

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        growing, static = (None, None) if cache is None else cache

        def look_back(x):
            nonlocal growing
            if growing is None:
                return self.self_attn(x, x, x, tgt_mask)
            out, growing = self.self_attn(x, x, x, tgt_mask, growing)
            return out

        def look_at_memory(x):
            if static is None:
                return self.cross_attn(x, memory, memory, memory_mask)
            return self.cross_attn(x, memory, memory, memory_mask, static)[0]

        tgt = self._residual(tgt, look_back, self.norm1, self.dropout1)
        tgt = self._residual(tgt, look_at_memory, self.norm2, self.dropout2)
        tgt = self._residual(tgt, self._feed_forward, self.norm3, self.dropout3)
        return tgt if cache is None else (tgt, (growing, static))

    def gen_cache(self, memory):
        """(an empty cache of the targets, the static cache of the memory)."""
        return (
            self.self_attn.gen_cache(memory),
            self.cross_attn.gen_cache(memory, memory, StaticCache),
        )


class LayerStack(Layer):
    """The base of encoder and decoder: copies of a given layer, and a norm after the last."""

    def stack_layers(self, layer: TransformerLayer, num_layers: int, norm) -> None:
        more = [type(layer)(**layer._config) for _ in range(num_layers - 1)]
        self.layers = LayerList([layer, *more])
        self.num_layers, self.norm = num_layers, norm

    def run_layers(self, x, *others, cache):
        """x through all layers; with a list of caches also the list of the new ones."""
        new = []
        for k, layer in enumerate(self.layers):
            if cache is None:
                x = layer(x, *others)
            else:
                x, grown = layer(x, *others, cache[k])
                new.append(grown)
        x = x if self.norm is None else self.norm(x)
        return x if cache is None else (x, new)


class TransformerEncoder(LayerStack):
    """`num_layers` stacked layers like `encoder_layer`, then `norm` if given.

    >>> layer = paddle.nn.TransformerEncoderLayer(8, 2, 16)
    >>> paddle.nn.TransformerEncoder(layer, 3)(paddle.ones([2, 5, 8])).shape
    [2, 5, 8]
    """

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.stack_layers(encoder_layer, num_layers, norm)

    def forward(self, src, src_mask=None, cache=None):
        return self.run_layers(src, src_mask, cache=cache)

    def gen_cache(self, src):
        """A list of empty caches, one for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoder(LayerStack):
    """`num_layers` stacked layers like `decoder_layer`, then `norm` if given.

    >>> layer = paddle.nn.TransformerDecoderLayer(8, 2, 16)
    >>> decoder = paddle.nn.TransformerDecoder(layer, 3)
    >>> decoder(paddle.ones([2, 3, 8]), paddle.ones([2, 5, 8])).shape
    [2, 3, 8]
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.stack_layers(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        return self.run_layers(tgt, memory, tgt_mask, memory_mask, cache=cache)

    def gen_cache(self, memory, do_zip=False):
        """Caches for each layer; with `do_zip` grouped by kind instead of by layer."""
        cache = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*cache, strict=True)) if do_zip else cache


class Transformer(Layer):
    """Encoder and decoder: `forward(src, tgt, src_mask, tgt_mask, memory_mask)`.

    >>> net = paddle.nn.Transformer(8, 2, 1, 1, 16)
    >>> net(paddle.ones([2, 5, 8]), paddle.ones([2, 3, 8])).shape
    [2, 3, 8]
    """

    def __init__(
        self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6,
        dim_feedforward=2048, dropout=0.1, activation="relu", attn_dropout=None, act_dropout=None,
        normalize_before=False, weight_attr=None, bias_attr=None, custom_encoder=None,
        custom_decoder=None,
    ):  # fmt: skip
        super().__init__()
        sizes = d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout
        if custom_encoder is None:
            attrs = first_two(weight_attr), first_two(bias_attr)
            layer = TransformerEncoderLayer(*sizes, normalize_before, *attrs)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model))
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*sizes, normalize_before, weight_attr, bias_attr)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, LayerNorm(d_model))
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None):
        memory = self.encoder(src, src_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask)

    def generate_square_subsequent_mask(self, length):
        """[length, length]: 0 where a place may be looked at, -inf after it."""
        allowed = causal_mask(length, length).astype(dt.default())
        return allowed.log()


def first_two(attr):
    """The encoder's part of attributes for (self-attention, cross-attention, linear)."""
    return [attr[0], attr[-1]] if isinstance(attr, list | tuple) and len(attr) > 1 else attr


__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip
