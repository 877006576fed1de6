"""Multi-head attention and the Transformer against torch, with copied weights."""

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import minipaddle as paddle
from minipaddle import nn
from tests.nn.oracle import agree, values

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:The PyTorch API")

X, MEMORY = values(2, 5, 8), values(2, 7, 8, seed=1)
MASK = np.triu(np.full((5, 5), -np.inf), 1)


def set_linear(ours, weight, bias):
    ours.weight.set_value(weight.detach().numpy().T)
    ours.bias.set_value(bias.detach().numpy())


def copy_attention(ours, theirs):
    for name, w, b in zip(
        "qkv", theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        set_linear(getattr(ours, f"{name}_proj"), w, b)
    set_linear(ours.out_proj, theirs.out_proj.weight, theirs.out_proj.bias)


def copy_norm(ours, theirs):
    ours.weight.set_value(theirs.weight.detach().numpy())
    ours.bias.set_value(theirs.bias.detach().numpy())


def copy_layer(ours, theirs):
    """An encoder or a decoder layer, with other than standard norms."""
    ours.to(dtype="float64")
    copy_attention(ours.self_attn, theirs.self_attn)
    if hasattr(theirs, "multihead_attn"):
        copy_attention(ours.cross_attn, theirs.multihead_attn)
    for name in ("linear1", "linear2"):
        part = getattr(theirs, name)
        set_linear(getattr(ours, name), part.weight, part.bias)
    for name in (n for n, _ in theirs.named_children() if n.startswith("norm")):
        part = getattr(theirs, name)
        torch.nn.init.uniform_(part.weight, 0.5, 1.5)
        copy_norm(getattr(ours, name), part)
    return ours, theirs


def layers(kind, **kwargs):
    first = kwargs.pop("normalize_before", False)
    ours = getattr(nn, kind)(8, 2, 16, dropout=0.0, normalize_before=first, **kwargs)
    theirs = getattr(torch.nn, kind)(
        8, 2, 16, dropout=0.0, norm_first=first, batch_first=True, **kwargs
    ).double()
    return copy_layer(ours, theirs)


# ---- attention ---------------------------------------------------------------------------------


def attentions(**kwargs):
    ours = nn.MultiHeadAttention(8, 2, **kwargs).to(dtype="float64")
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    copy_attention(ours, theirs)
    return ours, theirs


def test_self_attention():
    ours, theirs = attentions()
    agree(ours, lambda x: theirs(x, x, x)[0], X, order=2)


def test_attention_to_a_memory_with_weights():
    ours, theirs = attentions(need_weights=True)
    agree(
        lambda x, m: ours(x, m, m),
        lambda x, m: theirs(x, m, m, average_attn_weights=False),
        X,
        MEMORY,
    )


@pytest.mark.parametrize("kind", ["float", "bool", "int"])
def test_masks(kind):
    """True or 1 may be looked at; torch's booleans mean the opposite."""
    ours, theirs = attentions()
    allowed = np.isfinite(MASK)
    mask = {"float": MASK, "bool": allowed, "int": allowed.astype("int64")}[kind]
    agree(
        lambda x: ours(x, attn_mask=paddle.to_tensor(mask)),
        lambda x: theirs(x, x, x, attn_mask=torch.from_numpy(~allowed))[0],
        X,
    )


def test_sizes_of_keys_and_values():
    attention = nn.MultiHeadAttention(8, 2, kdim=3, vdim=4)
    x, k, v = paddle.ones([2, 5, 8]), paddle.ones([2, 6, 3]), paddle.ones([2, 6, 4])
    assert attention(x, k, v).shape == [2, 5, 8]


def test_dropout_of_weights_acts_while_training():
    attention = nn.MultiHeadAttention(8, 2, dropout=0.5)
    x = paddle.to_tensor(X.astype("float32"))
    assert (attention(x) != attention(x)).any()
    attention.eval()
    assert (attention(x) == attention(x)).all()


def causal(length):
    return paddle.to_tensor(np.tril(np.ones((length, length))) > 0)


def test_a_cache_gives_what_a_causal_mask_gives():
    attention = nn.MultiHeadAttention(8, 2).to(dtype="float64")
    x = paddle.to_tensor(X)
    want = attention(x, attn_mask=causal(5))
    cache, steps = attention.gen_cache(x), []
    for t in range(5):
        y, cache = attention(x[:, t : t + 1], cache=cache)
        steps.append(y)
    np.testing.assert_allclose(paddle.concat(steps, 1).numpy(), want.numpy())
    assert cache.k.shape == [2, 2, 5, 4]
    grown = attention.gen_cache(*cache)
    assert isinstance(grown, attention.Cache)
    assert grown.v is cache.v


def test_a_static_cache():
    attention = nn.MultiHeadAttention(8, 2, need_weights=True).to(dtype="float64")
    x, memory = paddle.to_tensor(X), paddle.to_tensor(MEMORY)
    cache = attention.gen_cache(memory, type=attention.StaticCache)
    out, weights, same = attention(x, cache=cache)
    np.testing.assert_allclose(out.numpy(), attention(x, memory, memory)[0].numpy())
    assert weights.shape == [2, 2, 5, 7]
    assert same is cache


# ---- encoder, decoder --------------------------------------------------------------------------


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(first, activation):
    ours, theirs = layers("TransformerEncoderLayer", normalize_before=first, activation=activation)
    with sdpa_kernel(SDPBackend.MATH):  # the one with second derivatives
        agree(ours, theirs, X, order=2)
    agree(
        lambda x: ours(x, paddle.to_tensor(MASK)),
        lambda x: theirs(x, torch.from_numpy(MASK)),
        X,
    )


@pytest.mark.parametrize("first", [False, True])
def test_decoder_layer(first):
    ours, theirs = layers("TransformerDecoderLayer", normalize_before=first)
    agree(
        lambda x, m: ours(x, m, paddle.to_tensor(MASK)),
        lambda x, m: theirs(x, m, torch.from_numpy(MASK)),
        X,
        MEMORY,
    )


def test_a_stack_over_several_steps():
    """Encoder and decoder of two layers each, trained for three steps beside torch's."""
    theirs = torch.nn.Transformer(8, 2, 2, 2, 16, 0.0, batch_first=True).double()
    ours = nn.Transformer(8, 2, 2, 2, 16, 0.0).to(dtype="float64")
    for side in ("encoder", "decoder"):
        a, b = getattr(ours, side), getattr(theirs, side)
        copy_norm(a.norm, b.norm)
        for one, other in zip(a.layers, b.layers, strict=True):
            copy_layer(one, other)
    step = torch.optim.SGD(theirs.parameters(), 0.05)
    mask = ours.generate_square_subsequent_mask(5)
    for _ in range(3):
        y = ours(paddle.to_tensor(MEMORY), paddle.to_tensor(X), tgt_mask=mask.astype("float64"))
        z = theirs(torch.from_numpy(MEMORY), torch.from_numpy(X), tgt_mask=torch.from_numpy(MASK))
        np.testing.assert_allclose(y.numpy(), z.detach().numpy(), 1e-6, 1e-9)
        (y**2 * 0.3 + y).mean().backward()
        step.zero_grad()
        (z**2 * 0.3 + z).mean().backward()
        step.step()
        with paddle.no_grad():
            for p in ours.parameters():
                p.set_value(p - 0.05 * p.grad)
                p.clear_grad()


@pytest.mark.parametrize("normalize_before", [False, True])
def test_step_by_step_encoding(normalize_before):
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, normalize_before=normalize_before)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).to(dtype="float64")
    x = paddle.to_tensor(X)
    want = encoder(x, causal(5))
    cache, steps = encoder.gen_cache(x), []
    for t in range(5):
        y, cache = encoder(x[:, t : t + 1], cache=cache)
        steps.append(y)
    np.testing.assert_allclose(paddle.concat(steps, 1).numpy(), want.numpy())


def test_step_by_step_decoding():
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2)
    decoder.to(dtype="float64")
    x, memory = paddle.to_tensor(X), paddle.to_tensor(MEMORY)
    want = decoder(x, memory, causal(5))
    cache, steps = decoder.gen_cache(memory), []
    for t in range(5):
        y, cache = decoder(x[:, t : t + 1], memory, cache=cache)
        steps.append(y)
    np.testing.assert_allclose(paddle.concat(steps, 1).numpy(), want.numpy())
    growing, static = decoder.gen_cache(memory, do_zip=True)
    assert len(growing) == len(static) == 2


def test_layers_of_a_stack_have_parameters_of_their_own():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 3)
    assert len(encoder.parameters()) == 3 * 16
    assert encoder.layers[0].linear1.weight is not encoder.layers[1].linear1.weight
    assert (encoder.layers[0].linear1.weight != encoder.layers[1].linear1.weight).any()


def test_dropouts():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, attn_dropout=0.2, act_dropout=0.3)
    assert (layer.dropout1.p, layer.self_attn.dropout, layer.dropout.p) == (0.1, 0.2, 0.3)
    x = paddle.to_tensor(X.astype("float32"))
    assert (layer(x) != layer(x)).any()
    layer.eval()
    assert (layer(x) == layer(x)).all()


def test_attributes_for_each_part():
    one, two = nn.initializer.Constant(1.0), nn.initializer.Constant(2.0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, weight_attr=[one, two], bias_attr=False)
    assert layer.self_attn.q_proj.weight.max().item() == 1.0
    assert layer.linear2.weight.min().item() == 2.0
    assert layer.linear1.bias is None
    net = nn.Transformer(8, 2, 1, 1, 16, weight_attr=[one, one, two])
    assert net.encoder.layers[0].linear1.weight.max().item() == 2.0
    assert net.decoder.layers[0].cross_attn.v_proj.weight.max().item() == 1.0


def test_parts_of_ones_own():
    class Twice(nn.Layer):
        def forward(self, src, mask=None):
            return src * 2

    class Add(nn.Layer):
        def forward(self, tgt, memory, *masks):
            return tgt + memory

    net = nn.Transformer(8, 2, custom_encoder=Twice(), custom_decoder=Add())
    x = paddle.ones([1, 2, 8])
    assert net(x, x).max().item() == 3.0


def test_causal_mask():
    mask = nn.Transformer(8, 2, 1, 1, 16).generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    assert mask.dtype == paddle.float32


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nn.MultiHeadAttention(8, 3), "a multiple of num_heads=3"),
        (lambda: nn.MultiHeadAttention(8, 0), "num_heads=0"),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, weight_attr=[None] * 3), "3 attributes"),
    ],
)
def test_mistakes_are_explained(call, says):
    with pytest.raises(ValueError, match=says):
        call()
