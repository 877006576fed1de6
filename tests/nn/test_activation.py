"""Activations against torch, as functions and as layers."""

import numpy as np
import pytest
import torch
import torch.nn.functional as T

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn import functional as F
from tests.nn.oracle import agree, values

X = values(4, 6) * 3
IMAGE = values(2, 4, 3, 3)

# layer: torch's function
LAYERS = [
    (nn.CELU(1.5), lambda x: T.celu(x, 1.5)),
    (nn.ELU(0.7), lambda x: T.elu(x, 0.7)),
    (nn.GELU(), T.gelu),
    (nn.GELU(True), lambda x: T.gelu(x, approximate="tanh")),
    (nn.GLU(), T.glu),
    (nn.GLU(axis=0), lambda x: T.glu(x, 0)),
    (nn.Hardshrink(), T.hardshrink),
    (nn.Hardsigmoid(), lambda x: T.hardtanh(x * 0.1666667 + 0.5, 0, 1)),
    (nn.Hardswish(), T.hardswish),
    (nn.Hardtanh(-2, 3), lambda x: T.hardtanh(x, -2, 3)),
    (nn.LeakyReLU(0.2), lambda x: T.leaky_relu(x, 0.2)),
    (nn.LogSigmoid(), T.logsigmoid),
    (nn.LogSoftmax(), lambda x: T.log_softmax(x, -1)),
    (nn.LogSoftmax(0), lambda x: T.log_softmax(x, 0)),
    (nn.Maxout(2), lambda x: x.reshape(4, 3, 2).amax(2)),
    (nn.Maxout(2, axis=0), lambda x: x.reshape(2, 2, 6).amax(1)),
    (nn.Mish(), T.mish),
    (nn.RReLU().eval(), lambda x: T.rrelu(x)),
    (nn.ReLU(), T.relu),
    (nn.ReLU6(), T.relu6),
    (nn.SELU(), T.selu),
    (nn.Sigmoid(), torch.sigmoid),
    (nn.Silu(), T.silu),
    (nn.Softmax(), lambda x: T.softmax(x, -1)),
    (nn.Softmax(0), lambda x: T.softmax(x, 0)),
    (nn.Softplus(2, 5), lambda x: T.softplus(x, 2, 5)),
    (nn.Softshrink(), T.softshrink),
    (nn.Softsign(), T.softsign),
    (nn.Swish(), T.silu),
    (nn.Tanh(), torch.tanh),
    (nn.Tanhshrink(), T.tanhshrink),
    (nn.ThresholdedReLU(1.5, 0.5), lambda x: T.threshold(x, 1.5, 0.5)),
]


@pytest.mark.parametrize(("layer", "theirs"), LAYERS, ids=[str(layer) for layer, _ in LAYERS])
def test_layers_against_torch(layer, theirs):
    agree(layer, theirs, X, order=1)


@pytest.mark.parametrize("layer", [layer for layer, _ in LAYERS[:6]])
def test_second_derivatives(layer):
    theirs = dict(LAYERS)[layer]
    agree(layer, theirs, X, order=2)


def test_softmax2d():
    agree(nn.Softmax2D(), lambda x: T.softmax(x, -3), IMAGE, order=2)
    agree(nn.Softmax2D(), lambda x: T.softmax(x, -3), IMAGE[0])


@pytest.mark.parametrize("count", [1, 4])
def test_prelu(count):
    slope = values(count, seed=3)
    agree(F.prelu, T.prelu, IMAGE, slope, order=2)
    layer = nn.PReLU(count, 0.3)
    assert layer._weight.tolist() == pytest.approx([0.3] * count)
    assert layer(paddle.to_tensor(IMAGE.astype("float32"))).shape == list(IMAGE.shape)
    last = np.moveaxis(IMAGE, 1, -1)
    ours = F.prelu(paddle.to_tensor(last), paddle.to_tensor(slope), "NHWC").numpy()
    want = T.prelu(torch.from_numpy(IMAGE), torch.from_numpy(slope)).numpy()
    np.testing.assert_allclose(np.moveaxis(ours, -1, 1), want)


def test_rrelu_draws_a_slope_for_each_element():
    x = paddle.full([100, 100], -1.0)
    x.stop_gradient = False
    y = F.rrelu(x, 0.2, 0.4)
    y.sum().backward()
    assert -0.4 <= y.min().item() < -0.39
    assert -0.21 < y.max().item() <= -0.2
    np.testing.assert_allclose(x.grad.numpy(), -y.numpy(), rtol=1e-6)
    assert "training=True" in repr(nn.RReLU())


def test_swiglu():
    agree(F.swiglu, lambda x, y: T.silu(x) * y, X, X[::-1].copy(), order=2)
    agree(F.swiglu, lambda x: T.silu(x[:, :3]) * x[:, 3:], X)


def test_gumbel_softmax():
    paddle.seed(3)
    x = paddle.to_tensor(np.log([[0.2, 0.3, 0.5]] * 4000).astype("float32"), stop_gradient=False)
    soft = F.gumbel_softmax(x, temperature=0.5)
    np.testing.assert_allclose(soft.sum(axis=-1).numpy(), 1, rtol=1e-5)
    hard = F.gumbel_softmax(x, hard=True)
    assert set(np.round(hard.numpy(), 5).ravel()) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(axis=0).numpy(), [0.2, 0.3, 0.5], atol=0.03)
    (hard * paddle.to_tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.abs().sum().item() > 0


@pytest.mark.parametrize(
    ("written", "plain", "args"),
    [
        (F.relu_, F.relu, ()),
        (F.elu_, F.elu, (0.5,)),
        (F.tanh_, F.tanh, ()),
        (F.softmax_, F.softmax, (0,)),
        (F.hardtanh_, F.hardtanh, (-0.5, 0.5)),
        (F.leaky_relu_, F.leaky_relu, (0.3,)),
        (F.thresholded_relu_, F.thresholded_relu, ()),
        (lambda x: F.silu(x, inplace=True), F.silu, ()),
    ],
)
def test_in_place(written, plain, args):
    x, y = paddle.to_tensor(X), paddle.to_tensor(X)
    assert written(x, *args) is x
    np.testing.assert_array_equal(x.numpy(), plain(y, *args).numpy())


@pytest.mark.parametrize("written", [F.relu_, F.tanh_, F.softmax_])
def test_gradient_through_in_place(written):
    """Their derivatives need the result alone: what was overwritten is not missed."""
    plain = getattr(F, written.__name__.rstrip("_"))
    x, y = paddle.to_tensor(X, stop_gradient=False), paddle.to_tensor(X, stop_gradient=False)
    (written(x * 1) * x).sum().backward()
    (plain(y * 1) * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


def test_softmax_of_a_scalar_and_with_a_dtype():
    assert F.softmax(paddle.to_tensor(3.0)).item() == 1.0
    assert F.log_softmax(paddle.to_tensor([1, 2]), dtype="float64").dtype == paddle.float64
    assert F.softmax(paddle.ones([0, 3])).shape == [0, 3]
    half = F.softmax(paddle.ones([2], "float16"))
    assert (half.dtype, half.tolist()) == (paddle.float16, [0.5, 0.5])


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: F.softmax(paddle.to_tensor([1, 2])), TypeError, "floating"),
        (lambda x: F.softmax(x, axis=2), ValueError, "axis 2"),
        (lambda x: F.gumbel_softmax(x, temperature=0), ValueError, "temperature"),
        (lambda x: F.glu(x[:, :3]), ValueError, "even size"),
        (lambda x: F.maxout(x, 4), ValueError, "groups=4"),
        (lambda x: F.prelu(x, paddle.ones([3], "float64")), ValueError, "3 slopes"),
        (lambda x: F.rrelu(x, 0.5, 0.2), ValueError, "lower"),
        (lambda x: nn.Softmax2D()(x), ValueError, "3 or 4 dimensions"),
        (lambda x: nn.ELU(1, 2, 3), TypeError, "ELU"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call(paddle.to_tensor(X))


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.ReLU(), "ReLU()"),
        (nn.ELU(name="e"), "ELU(alpha=1.0, name=e)"),
        (nn.GELU(), "GELU(approximate=False)"),
        (nn.Hardsigmoid(), "Hardsigmoid()"),
        (nn.Softmax(), "Softmax(axis=-1)"),
        (nn.SELU(), "SELU(scale=1.0507009873554805, alpha=1.6732632423543772)"),
        (nn.Softplus(), "Softplus(beta=1, threshold=20)"),
        (nn.Maxout(2), "Maxout(groups=2, axis=1)"),
        (nn.PReLU(), "PReLU(num_parameters=1, data_format=NCHW, init=0.25, dtype=float32)"),
        (nn.Silu(), "Silu(inplace=False)"),
    ],
)
def test_text(layer, text):
    """As real Paddle prints them."""
    assert repr(layer) == text


def test_a_subclass_may_have_its_own_constructor():
    class Steep(nn.LeakyReLU):
        def __init__(self):
            super().__init__(negative_slope=0.5)

    assert Steep()(paddle.to_tensor([-2.0])).tolist() == [-1.0]


@pytest.mark.parametrize(("dtype", "rounding"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_the_derivative_of_gelu_is_rounded_once(dtype, rounding, approximate):
    x = np.linspace(-6, 6, 2001).astype("float32")
    ours = paddle.to_tensor(x).astype(dtype)
    ours.stop_gradient = False
    (got,) = paddle.grad(F.gelu(ours, approximate == "tanh").sum(), [ours])
    theirs = torch.tensor(x).to(getattr(torch, dtype)).double().requires_grad_()
    T.gelu(theirs, approximate=approximate).sum().backward()
    want = theirs.grad.numpy()
    assert str(got.dtype) == f"paddle.{dtype}"
    assert np.all(abs(got.astype("float64").numpy() - want) <= rounding * abs(want) + 2e-5)
