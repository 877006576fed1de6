"""Linear, Bilinear, Embedding, dropout, flattening, one-hot, attention."""

import numpy as np
import pytest
import torch
import torch.nn.functional as T
from torch.nn.attention import SDPBackend, sdpa_kernel

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn import functional as F
from tests.nn.oracle import agree, values

# ---- linear maps -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (3,), (0, 3)])
def test_linear(shape):
    x, w, b = values(*shape), values(3, 5), values(5)
    agree(F.linear, lambda x, w, b: T.linear(x, w.T, b), x, w, b, order=2)
    agree(F.linear, lambda x, w: T.linear(x, w.T), x, w, order=2)


def test_linear_layer_over_several_steps():
    """Three steps of plain gradient descent, weights copied from torch."""
    theirs = torch.nn.Linear(3, 2).double()
    ours = nn.Linear(3, 2).to(dtype="float64")
    ours.weight.set_value(theirs.weight.detach().numpy().T)
    ours.bias.set_value(theirs.bias.detach().numpy())
    x, y = values(5, 3), values(5, 2)
    for _ in range(3):
        F.mse_loss(ours(paddle.to_tensor(x)), paddle.to_tensor(y)).backward()
        T.mse_loss(theirs(torch.from_numpy(x)), torch.from_numpy(y)).backward()
        with paddle.no_grad(), torch.no_grad():
            for p in ours.parameters():
                p.set_value(p - 0.1 * p.grad)
                p.clear_grad()
            for p in theirs.parameters():
                p -= 0.1 * p.grad
                p.grad = None
    np.testing.assert_allclose(ours.weight.numpy().T, theirs.weight.detach().numpy())
    np.testing.assert_allclose(ours.bias.numpy(), theirs.bias.detach().numpy())


def test_linear_without_bias():
    layer = nn.Linear(2, 3, bias_attr=False)
    assert layer.bias is None
    assert list(layer.state_dict()) == ["weight"]
    x = paddle.ones([1, 2])
    np.testing.assert_allclose(layer(x).numpy(), (x @ layer.weight).numpy(), rtol=1e-6)


def test_linear_in_half_precision():
    layer = nn.Linear(4, 3).to(dtype="bfloat16")
    y = layer(paddle.ones([2, 4], "bfloat16"))
    y.sum().backward()
    assert y.dtype == layer.weight.grad.dtype == paddle.bfloat16


def test_bilinear():
    x1, x2, w, b = values(4, 3), values(4, 2), values(5, 3, 2), values(1, 5)
    agree(F.bilinear, lambda x, y, w, b: T.bilinear(x, y, w, b[0]), x1, x2, w, b, order=2)
    layer = nn.Bilinear(3, 2, 5, bias_attr=False)
    assert layer(paddle.ones([4, 3]), paddle.ones([4, 2])).shape == [4, 5]
    assert layer.weight.shape == [5, 3, 2]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: nn.Linear(0, 1), ValueError, "in_features=0"),
        (lambda: nn.Linear(1, 1, weight_attr=False), ValueError, "only bias_attr"),
        (lambda: nn.Linear(3, 1)(paddle.ones([2, 4])), ValueError, "in_features=3"),
        (lambda: nn.Linear(3, 1)(paddle.to_tensor(1.0)), ValueError, "in_features=3"),
        (lambda: F.linear(paddle.ones([2, 4]), paddle.ones([3, 1])), ValueError, r"\[2, 4\]"),
        (
            lambda: F.linear(paddle.ones([2, 3]), paddle.ones([3, 2]), paddle.ones([3])),
            ValueError,
            "bias",
        ),
        (lambda: nn.Bilinear(1, 0, 1), ValueError, "in2_features=0"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "padding_idx=3"),
        (lambda: nn.Embedding(3, 2, max_norm=1.0), NotImplementedError, "max_norm"),
        (lambda: nn.Embedding(3, 2)(paddle.to_tensor([3])), IndexError, "3 is no number from 0"),
        (lambda: nn.Embedding(3, 2)(paddle.to_tensor([-1])), IndexError, "-1 is no number"),
        (lambda: nn.Embedding(3, 2)(paddle.to_tensor([1.0])), TypeError, "whole numbers"),
        (
            lambda: F.embedding(
                paddle.to_tensor([0]), paddle.ones([2, 2]), scale_grad_by_freq=True
            ),
            NotImplementedError,
            "scale_grad_by_freq",
        ),
        (lambda: F.one_hot(paddle.to_tensor([3]), 3), IndexError, "0 to 2"),
        (lambda: F.one_hot(paddle.to_tensor([1.0]), 3), TypeError, "whole numbers"),
        (lambda: F.dropout(paddle.ones([1]), 1.5), ValueError, "p=1.5"),
        (lambda: F.dropout(paddle.ones([1]), mode="up"), ValueError, "'up'"),
        (lambda: F.alpha_dropout(paddle.ones([1]), -0.1), ValueError, "p=-0.1"),
        (lambda: F.dropout1d(paddle.ones([1])), ValueError, "2 or 3 dimensions"),
        (lambda: F.dropout2d(paddle.ones([1])), ValueError, "4 dimensions"),
        (lambda: nn.Dropout3D()(paddle.ones([1])), ValueError, "5 dimensions"),
        (lambda: F.label_smooth(paddle.ones([1, 2]), epsilon=2), ValueError, "epsilon=2"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call()


# ---- embedding ---------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", [None, 2, -1])
def test_embedding(padding):
    ids, table = np.array([[0, 2, 2], [3, 1, 0]]), values(4, 3)
    if padding is not None:
        table[padding] = 0
    agree(
        lambda i, w: F.embedding(i, w, padding),
        lambda i, w: T.embedding(i, w, padding),
        ids,
        table,
        order=2,
    )


def test_embedding_layer():
    layer = nn.Embedding(4, 3, padding_idx=-1)
    assert layer.padding_idx == 3
    assert layer.weight[3].abs().sum().item() == 0
    layer(paddle.to_tensor([3, 1, 1])).sum().backward()
    assert layer.weight.grad[:, 0].tolist() == [0.0, 2.0, 0.0, 0.0]
    assert "padding_idx=3" in repr(layer)
    frozen = nn.Embedding(2, 1, _weight=[[1.0], [2.0]], _freeze=True, sparse=True, dtype="float64")
    assert frozen.weight.stop_gradient
    assert frozen(paddle.to_tensor([1, 0])).tolist() == [[2.0], [1.0]]
    assert repr(frozen) == "Embedding(2, 1, sparse=True, scale_grad_by_freq=False)"


def test_one_hot():
    x = np.array([[1, 0], [3, 1]])
    want = T.one_hot(torch.from_numpy(x)).numpy()
    np.testing.assert_array_equal(F.one_hot(paddle.to_tensor(x)).numpy(), want)
    assert F.one_hot(paddle.to_tensor(x), 6).shape == [2, 2, 6]
    assert F.one_hot(paddle.to_tensor(np.zeros(0, "int64"))).shape == [0, 0]


def test_label_smooth():
    label, prior = np.eye(3), np.array([[0.5, 0.25, 0.25]])
    agree(lambda y: F.label_smooth(y), lambda y: 0.9 * y + 0.1 / 3, label)
    agree(lambda y, p: F.label_smooth(y, p, 0.3), lambda y, p: 0.7 * y + 0.3 * p, label, prior)


# ---- dropout -----------------------------------------------------------------------------------

BIG = paddle.ones([200, 300])


def test_dropout():
    paddle.seed(1)
    x = paddle.ones([200, 300])
    x.stop_gradient = False
    y = F.dropout(x, 0.3)
    kept = (y != 0).astype("float32")
    assert abs(kept.mean().item() - 0.7) < 0.01
    np.testing.assert_allclose(y.numpy(), kept.numpy() / 0.7, rtol=1e-6)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())
    assert (F.dropout(x, 0.3) != y).any()


def test_dropout_modes():
    x = paddle.ones([50])
    assert F.dropout(x, 0.4, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).sum().item() == 0
    infer = "downscale_in_infer"
    np.testing.assert_allclose(F.dropout(x, 0.4, training=False, mode=infer).numpy(), 0.6)
    assert set(F.dropout(x, 0.4, mode=infer).tolist()) == {0.0, 1.0}
    written = paddle.ones([50])
    assert F.dropout(written, 0.5, inplace=True) is written
    assert set(written.tolist()) == {0.0, 2.0}


def test_dropout_of_slices():
    y = F.dropout(BIG, 0.5, axis=0).numpy()
    assert ((y == 0).all(1) | (y == 2).all(1)).all()
    y = F.dropout(BIG, 0.5, axis=[-1]).numpy()
    assert ((y == 0).all(0) | (y == 2).all(0)).all()
    assert 0 < (y == 0).mean() < 1


@pytest.mark.parametrize(
    ("layer", "shape", "axes"),
    [
        (nn.Dropout2D(), (40, 30, 3, 3), (2, 3)),
        (nn.Dropout2D(data_format="NHWC"), (40, 3, 3, 30), (1, 2)),
        (nn.Dropout3D(), (40, 30, 2, 2, 2), (2, 3, 4)),
        (lambda x: F.dropout1d(x), (40, 30, 4), (2,)),
    ],
)
def test_dropout_of_channels(layer, shape, axes):
    y = layer(paddle.ones(shape)).numpy()
    channels = y.mean(axes)
    assert set(channels.ravel()) == {0.0, 2.0}
    assert 0.4 < (channels == 0).mean() < 0.6


@pytest.mark.parametrize("layer", [nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)])
def test_alpha_dropout_keeps_mean_and_variance(layer):
    paddle.seed(2)
    x = paddle.randn([300, 400])
    y = layer(x)
    assert abs(y.mean().item()) < 0.02
    assert abs(y.var().item() - 1) < 0.03
    values, counts = np.unique(y.numpy(), return_counts=True)
    assert abs(counts.max() / y.size - 0.3) < 0.01  # one value stands for all that is dropped
    assert values[counts.argmax()] < -1
    layer.eval()
    assert layer(x) is x
    assert type(layer)(1.0)(x).abs().sum().item() == 0


def test_feature_alpha_dropout_drops_whole_channels():
    y = nn.FeatureAlphaDropout(0.5)(paddle.randn([20, 10, 30])).numpy()
    constant = y.std(2) < 1e-6
    assert 0.3 < constant.mean() < 0.7


def test_dropout_layer():
    layer = nn.Dropout(0.4, name="d")
    assert repr(layer) == "Dropout(p=0.4, axis=None, mode=upscale_in_train, name=d, inplace=False)"
    assert repr(nn.Dropout2D()) == "Dropout2D(p=0.5, data_format=NCHW)"
    layer.p = 1.0
    assert layer(BIG).sum().item() == 0
    layer.eval()
    assert layer(BIG) is BIG


# ---- shapes ------------------------------------------------------------------------------------


def test_shapes():
    x = paddle.ones([2, 3, 4])
    assert nn.Flatten()(x).shape == [2, 12]
    assert nn.Flatten(0, 1)(x).shape == [6, 4]
    assert nn.Unflatten(1, [3, 1])(x).shape == [2, 3, 1, 4]
    assert repr(nn.Unflatten(1, [3, 1])) == "Unflatten(axis=1, shape=[3, 1])"
    assert nn.Identity(3, k=4)(x) is x


# ---- distances ---------------------------------------------------------------------------------


def test_distances():
    x, y = values(4, 5), values(4, 5, seed=1)
    agree(F.cosine_similarity, lambda x, y: T.cosine_similarity(x, y), x, y, order=2)
    agree(nn.CosineSimilarity(axis=0), lambda x, y: T.cosine_similarity(x, y, 0), x, y)
    for p in (1.0, 2.0, 3.0, float("inf")):
        agree(nn.PairwiseDistance(p), lambda x, y, p=p: T.pairwise_distance(x, y, p), x, y)
    agree(
        lambda x, y: F.pairwise_distance(x, y, keepdim=True),
        lambda x, y: T.pairwise_distance(x, y, keepdim=True),
        x,
        y,
        order=2,
    )
    a, b = paddle.to_tensor(x), paddle.to_tensor(y)
    assert F.pairwise_distance(a, b, 0).tolist() == [5.0] * 4
    smallest = np.abs(x - y + 1e-6).min(1)
    np.testing.assert_allclose(F.pairwise_distance(a, b, -float("inf")).numpy(), smallest)


def test_the_distance_of_equal_points_has_a_gradient():
    x = paddle.to_tensor([[1.0, 2.0]], stop_gradient=False)
    F.pairwise_distance(x, paddle.to_tensor([[1.0, 2.0]]), epsilon=0.0).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]


# ---- sequences ---------------------------------------------------------------------------------


def test_sequence_mask():
    x = paddle.to_tensor([[1, 3], [0, 2]])
    assert F.sequence_mask(x).tolist() == [[[1, 0, 0], [1, 1, 1]], [[0, 0, 0], [1, 1, 0]]]
    mask = F.sequence_mask(x, maxlen=2, dtype="bool")
    assert mask.dtype == paddle.bool
    assert mask.shape == [2, 2, 2]


def test_gather_tree():
    """The example of Paddle's page."""
    ids = paddle.to_tensor([[[2, 2], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]])
    parents = paddle.to_tensor([[[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]])
    want = [[[2, 2], [1, 6]], [[3, 3], [6, 1]], [[0, 1], [9, 0]]]
    assert F.gather_tree(ids, parents).tolist() == want
    with pytest.raises(ValueError, match="time, batch, beam"):
        F.gather_tree(ids, parents[0])


# ---- attention ---------------------------------------------------------------------------------

QUERY, KEY, VALUE = (values(2, n, 4, 3, seed=n) for n in (3, 5, 5))


def torch_attention(q, k, v, **kwargs):
    with sdpa_kernel(SDPBackend.MATH):  # the one with second derivatives
        out = T.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), **kwargs)
    return out.transpose(1, 2)


@pytest.mark.parametrize(
    "mask", [None, values(2, 1, 3, 5, seed=8), values(3, 5, seed=9), values(2, 1, 3, 5) > -0.5]
)
def test_attention(mask):
    ours = {} if mask is None else {"attn_mask": paddle.to_tensor(mask)}
    theirs = {} if mask is None else {"attn_mask": torch.from_numpy(mask)}
    agree(
        lambda *x: F.scaled_dot_product_attention(*x, **ours),
        lambda *x: torch_attention(*x, **theirs),
        QUERY,
        KEY,
        VALUE,
        order=2,
    )


def test_causal_attention():
    agree(
        lambda *x: F.scaled_dot_product_attention(*x, is_causal=True, scale=0.3),
        lambda *x: torch_attention(*x, is_causal=True, scale=0.3),
        QUERY,
        QUERY,
        QUERY,
    )


def test_attention_with_fewer_heads_of_keys():
    agree(
        F.scaled_dot_product_attention,
        lambda *x: torch_attention(*x, enable_gqa=True),
        QUERY,
        KEY[:, :, :2],
        VALUE[:, :, :2],
    )


def test_attention_drops_weights_while_training():
    q = paddle.ones([1, 50, 1, 2])
    y = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    assert y.std().item() > 0.05
    still = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5, training=False)
    np.testing.assert_allclose(still.numpy(), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("kwargs", "error", "says"),
    [
        ({"backend": "p2p"}, NotImplementedError, "backend"),
        ({"attn_mask": paddle.ones([3, 3]), "is_causal": True}, ValueError, "one of them"),
        ({"enable_gqa": False}, ValueError, "4 heads"),
    ],
)
def test_mistakes_in_attention(kwargs, error, says):
    q = paddle.ones([1, 3, 4, 2])
    k = q[:, :, :2] if "enable_gqa" in kwargs else q
    with pytest.raises(error, match=says):
        F.scaled_dot_product_attention(q, k, k, **kwargs)
    with pytest.raises(ValueError, match="batch, length, heads"):
        F.scaled_dot_product_attention(q[0], q, q)
