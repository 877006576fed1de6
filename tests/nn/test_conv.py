"""Convolutions: every form of size and padding, against torch to the second derivative."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from tests.nn.peers import agree, draw, near

CONV = {1: (F.conv1d, TF.conv1d), 2: (F.conv2d, TF.conv2d), 3: (F.conv3d, TF.conv3d)}
SPREAD = {
    1: (F.conv1d_transpose, TF.conv_transpose1d),
    2: (F.conv2d_transpose, TF.conv_transpose2d),
    3: (F.conv3d_transpose, TF.conv_transpose3d),
}
LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 1, 2, 1)],
)
def test_convolution(n, stride, padding, dilation, groups):
    ours, theirs = CONV[n]
    size = (7, 6, 5)[:n]
    arrays = draw((2, 4, *size), (6, 4 // groups, *(3, 2, 2)[:n]), (6,))
    agree(
        lambda x, w, b: ours(x, w, b, stride, padding, dilation, groups),
        lambda x, w, b: theirs(x, w, b, stride, padding, dilation, groups),
        *arrays,
    )


def test_third_derivative():
    x, w = (paddle.to_tensor(a, stop_gradient=False) for a in draw((1, 2, 5, 5), (2, 2, 3, 3)))
    t, u = (torch.tensor(a.numpy(), requires_grad=True) for a in (x, w))
    for grad, a, b, conv, tanh in (
        (paddle.grad, x, w, F.conv2d, paddle.tanh),
        (torch.autograd.grad, t, u, TF.conv2d, torch.tanh),
    ):
        y = tanh(conv(a, b)).sum()
        for _ in range(2):
            y = (grad([y], [a], create_graph=True)[0] ** 2).sum()
        third = grad([y], [b])[0]
        if conv is F.conv2d:
            ours = third
    near(ours, third, 1e-8)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data())
def test_any_sizes(data):
    def few(low, high, label):
        return data.draw(st.tuples(*[st.integers(low, high)] * 2), label)

    kernel, stride, dilation = few(1, 4, "kernel"), few(1, 3, "stride"), few(1, 2, "dilation")
    padding, room = few(0, 2, "padding"), few(0, 4, "room")
    groups, channels, outs = (data.draw(st.integers(1, 3)) for _ in range(3))
    size = [max((k - 1) * d + 1 - 2 * p, 1) + r
            for k, d, p, r in zip(kernel, dilation, padding, room)]  # fmt: skip
    x, w = draw((2, channels * groups, *size), (outs * groups, channels, *kernel))
    how = (None, stride, padding, dilation, groups)
    agree(lambda x, w: F.conv2d(x, w, *how), lambda x, w: TF.conv2d(x, w, *how), x, w)


@pytest.mark.parametrize(
    ("padding", "torch_pads"),
    [
        ([1, 2], (2, 2, 1, 1)),
        ([1, 2, 3, 4], (3, 4, 1, 2)),
        ([[0, 0], [0, 0], [1, 2], [3, 4]], (3, 4, 1, 2)),
        ("SAME", (0, 1, 1, 1)),
        ("same", (0, 1, 1, 1)),
        ("VALID", (0, 0, 0, 0)),
        ([2], (2, 2, 2, 2)),
    ],
)
def test_forms_of_padding(padding, torch_pads):
    x, w = draw((1, 2, 7, 8), (3, 2, 3, 3))
    agree(
        lambda x, w: F.conv2d(x, w, padding=padding, stride=2),
        lambda x, w: TF.conv2d(TF.pad(x, torch_pads), w, stride=2),
        x,
        w,
    )


def test_same_padding_sets_the_dilation_to_one_as_in_paddle():
    x, w = map(paddle.to_tensor, draw((1, 1, 7, 7), (1, 1, 3, 3)))
    near(F.conv2d(x, w, padding="SAME", dilation=2), F.conv2d(x, w, padding="SAME").numpy())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_channels_last(n):
    ours, theirs = CONV[n]
    size = (6, 5, 4)[:n]
    pads = [[0, 0], *[[1, 1]] * n, [0, 0]]
    x, w, b = draw((2, *size, 4), (6, 2, *(3, 2, 2)[:n]), (6,))
    agree(
        lambda x, w, b: ours(x, w, b, 2, pads, 1, 2, LAST[n]),
        lambda x, w, b: theirs(x.movedim(-1, 1), w, b, 2, 1, 1, 2).movedim(1, -1),
        x,
        w,
        b,
    )
    if n == 2:
        agree(
            lambda x, w: F.conv2d_transpose(x, w, stride=2, data_format="NHWC"),
            lambda x, w: TF.conv_transpose2d(x.movedim(-1, 1), w, stride=2).movedim(1, -1),
            x,
            *draw((4, 3, 3, 3)),
        )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "extra", "dilation", "groups"),
    [(1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (3, 1, 2, 2, 1), (1, 1, 1, 2, 1)],
)
def test_transposed_convolution(n, stride, padding, extra, dilation, groups):
    ours, theirs = SPREAD[n]
    arrays = draw((2, 4, *(4, 3, 3)[:n]), (4, 6 // groups, *(3, 2, 2)[:n]), (6,))
    how = {"groups": groups, "dilation": dilation, "output_padding": extra}
    agree(
        lambda x, w, b: ours(x, w, b, stride, padding, **how),
        lambda x, w, b: theirs(x, w, b, stride, padding, **how),
        *arrays,
    )


def test_output_size_chooses_what_output_padding_would():
    x, w = map(paddle.to_tensor, draw((1, 2, 4, 4), (2, 3, 3, 3)))
    wanted = F.conv2d_transpose(x, w, stride=2, output_size=[10, 9])
    assert wanted.shape == [1, 3, 10, 9]
    padded = F.conv2d_transpose(x, w, stride=2, output_padding=[1, 0])
    near(wanted, padded.numpy())


def test_transposed_with_same_padding_as_in_paddle():
    x, w = map(paddle.to_tensor, draw((1, 3, 7, 7), (3, 4, 3, 3)))
    same = F.conv2d_transpose(x, w, stride=2, padding="SAME")
    near(same, F.conv2d_transpose(x, w, stride=2, padding=1).numpy())


def test_empty_batch():
    x = paddle.zeros([0, 2, 5, 5])
    w = paddle.ones([3, 2, 3, 3])
    x.stop_gradient = w.stop_gradient = False
    y = F.conv2d(x, w)
    y.sum().backward()
    assert y.shape == [0, 3, 3, 3]
    assert x.grad.shape == [0, 2, 5, 5]
    assert float(w.grad.abs().sum()) == 0


def test_only_wanted_gradients_are_computed(monkeypatch):
    from minipaddle.engine.ops import conv as ops

    def refuse(*args, **kwargs):
        raise AssertionError("nobody wants this gradient")

    w = paddle.ones([3, 2, 3, 3])
    w.stop_gradient = False
    monkeypatch.setattr(ops.conv_input_grad, "body", refuse)
    F.conv2d(paddle.ones([1, 2, 5, 5]), w).sum().backward()
    assert w.grad.shape == [3, 2, 3, 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes(dtype):
    x, w = draw((1, 2, 5, 5), (3, 2, 3, 3))
    y = F.conv2d(paddle.to_tensor(x, dtype), paddle.to_tensor(w, dtype))
    assert y.dtype == dtype
    wide = TF.conv2d(torch.tensor(x), torch.tensor(w)).numpy()
    np.testing.assert_allclose(y.astype("float64").numpy(), wide, atol=0.15)


X, W = paddle.ones([1, 4, 5, 5]), paddle.ones([6, 4, 3, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.conv2d(X, W[:, :3]), "has 4 channels"),
        (lambda: F.conv2d(X, W[:5, :2], groups=2), "do not fall into 2 groups"),
        (lambda: F.conv2d(X[0], W), r"5|unsqueeze\(0\)"),
        (lambda: F.conv2d(X, W[0]), "weight"),
        (lambda: F.conv2d(X[:, :, :2, :2], W), "does not fit"),
        (lambda: F.conv2d(X, W, padding=-1), "at least 0"),
        (lambda: F.conv2d(X, W, padding=[1, -1]), "none negative"),
        (lambda: F.conv2d(X, W, padding=[[1, 1], [0, 0], [1, 1], [1, 1]]), "zeros for batch"),
        (lambda: F.conv2d(X, W, padding=[1, 2, 3]), "2 numbers, 4 numbers"),
        (lambda: F.conv2d(X, W, padding="SOME"), "VALID"),
        (lambda: F.conv2d(X, W, stride=[1, 2, 3]), "a list of 2"),
        (lambda: F.conv2d(X, W, data_format="NCWH"), "NCHW or NHWC"),
        (lambda: F.conv2d_transpose(X, W), "with the same C"),
        (lambda: F.conv2d_transpose(X, W[:4], groups=3), "do not fall into 3 groups"),
        (lambda: F.conv2d_transpose(X, W[:4], output_padding=1), "less than the stride"),
        (lambda: F.conv2d_transpose(X, W[:4], output_size=[9, 9]), r"\[7, 7\] to \[7, 7\]"),
        (
            lambda: F.conv2d_transpose(X, W[:4], stride=2, output_size=12, output_padding=1),
            "give one",
        ),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_adjoint_refuses_a_size_that_does_not_fit():
    from minipaddle.engine.ops.conv import conv_input_grad

    at = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    with pytest.raises(ValueError, match=r"\[9, 9\] comes from"):
        conv_input_grad.infer(X.spec, W[:4].spec, size=(9, 9), **at)


# ---- layers ----------------------------------------------------------------------------------


def test_layer_starts_as_in_paddle():
    paddle.seed(0)
    layer = paddle.nn.Conv2D(16, 32, 3)
    assert list(layer.weight.shape) == [32, 16, 3, 3]
    assert abs(float(layer.weight.std()) - (2 / (16 * 9)) ** 0.5) < 0.005
    assert abs(float(layer.weight.mean())) < 0.005
    assert float(layer.bias.abs().sum()) == 0
    spread = paddle.nn.Conv2DTranspose(16, 32, 3, groups=2)
    assert list(spread.weight.shape) == [16, 16, 3, 3]
    bound = (6 / (16 * 9 + 16 * 9)) ** 0.5  # Xavier's, both fans being 16 · 9
    assert bound * 0.97 < float(spread.weight.abs().max()) <= bound


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_padding_modes(n, mode):
    layer = getattr(paddle.nn, f"Conv{n}D")(2, 3, 3, padding=1, padding_mode=mode, bias=False)
    theirs = getattr(torch.nn, f"Conv{n}d")(
        2, 3, 3, padding=1, padding_mode=mode, bias=False, dtype=torch.float64
    )
    x, w = draw((2, 2, *(5, 4, 6)[:n]), layer.weight.shape)
    assert layer.bias is None
    layer.to(dtype="float64")
    layer.weight.set_value(w)
    with torch.no_grad():
        theirs.weight[:] = torch.tensor(w)
    agree(layer, theirs, x)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_transposed_layers(n):
    layer = getattr(paddle.nn, f"Conv{n}DTranspose")(2, 3, 3, stride=2, output_padding=1)
    theirs = getattr(torch.nn, f"ConvTranspose{n}d")(
        2, 3, 3, 2, output_padding=1, dtype=torch.float64
    )
    layer.to(dtype="float64")
    layer.weight.set_value(theirs.weight.detach().numpy())
    layer.bias.set_value(theirs.bias.detach().numpy())
    x = draw((2, 2, *(4, 3, 3)[:n]))[0]
    agree(layer, theirs, x)
    assert layer(paddle.to_tensor(x), output_size=[9, 7, 7][:n]).shape[2:] == [9, 7, 7][:n]


def test_layers_say_what_they_are():
    nn = paddle.nn
    assert repr(nn.Conv1D(3, 4, 3)) == "Conv1D(3, 4, kernel_size=[3], data_format=NCL)"
    layer = nn.Conv2D(4, 4, 3, 2, 1, 2, 2, padding_mode="reflect", data_format="NHWC")
    assert repr(layer) == (
        "Conv2D(4, 4, kernel_size=[3, 3], stride=[2, 2], padding=1, padding_mode=reflect, "
        "dilation=[2, 2], groups=2, data_format=NHWC)"
    )
    assert repr(nn.Conv2DTranspose(3, 4, 3, stride=2, output_padding=1)) == (
        "Conv2DTranspose(3, 4, kernel_size=[3, 3], stride=[2, 2], output_padding=1, "
        "data_format=NCHW)"
    )


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda nn: nn.Conv2D(3, 4, 3, groups=2), ValueError),
        (lambda nn: nn.Conv2D(0, 4, 3), ValueError),
        (lambda nn: nn.Conv2D(3, 4, 3, weight_attr=False), ValueError),
        (lambda nn: nn.Conv2D(3, 4, 3, padding_mode="mirror"), ValueError),
        (lambda nn: nn.Conv2D(3, 4, 3, padding=[1, 2], padding_mode="reflect"), TypeError),
        (lambda nn: nn.Conv2D(3, 4, 3, data_format="NCL"), ValueError),
        (lambda nn: nn.Conv2D(3, 4, 3, device="gpu:0"), NotImplementedError),
    ],
)
def test_layers_refuse_mistakes(make, error):
    with pytest.raises(error):
        make(paddle.nn)
