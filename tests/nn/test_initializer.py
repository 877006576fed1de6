"""Initializers: ranges, moments, exact values."""

import math

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn import initializer as I


def drawn(initializer, *shape, dtype="float32"):
    paddle.seed(11)
    return paddle.create_parameter(list(shape), dtype, default_initializer=initializer).numpy()


@pytest.mark.parametrize(
    ("initializer", "shape", "std", "bound"),
    [
        (I.Uniform(), (200, 100), 1 / math.sqrt(3), 1),
        (I.Uniform(-0.2, 0.2), (200, 100), 0.2 / math.sqrt(3), 0.2),
        (I.Normal(), (200, 100), 1, None),
        (I.Normal(0.0, 0.1), (200, 100), 0.1, None),
        (I.TruncatedNormal(), (200, 100), 0.8796, 2),
        (I.TruncatedNormal(0.0, 0.5, -1.0, 1.0), (200, 100), 0.4398, 1),
        (I.XavierUniform(), (200, 100), math.sqrt(2 / 300), math.sqrt(6 / 300)),
        (I.XavierUniform(), (20, 30, 5, 5), math.sqrt(2 / 1250), math.sqrt(6 / 1250)),
        (I.XavierUniform(fan_in=10, fan_out=20, gain=2), (90, 90), 2 * math.sqrt(2 / 30), None),
        (I.XavierUniform(), (10000,), 0.01, None),
        (I.XavierNormal(), (200, 100), math.sqrt(2 / 300), None),
        (I.KaimingUniform(), (200, 100), math.sqrt(2 / 200), math.sqrt(6 / 200)),
        (I.KaimingUniform(mode="fan_out"), (200, 100), math.sqrt(2 / 100), None),
        (I.KaimingUniform(50, 1.0, "leaky_relu"), (200, 100), math.sqrt(1 / 50), None),
        (I.KaimingNormal(), (20, 30, 5, 5), math.sqrt(2 / 750), None),
    ],
    ids=repr,
)
def test_moments(initializer, shape, std, bound):
    """Standard deviations and bounds as real Paddle 3.3.1 draws them."""
    a = drawn(initializer, *shape)
    assert abs(a.mean()) < 0.03 * std
    assert a.std() == pytest.approx(std, rel=0.03)
    if bound is not None:
        assert 0.98 * bound < np.abs(a).max() <= bound * (1 + 1e-6)


def test_normal_has_a_mean():
    assert drawn(I.Normal(3.0, 0.1), 100, 100).mean() == pytest.approx(3, abs=0.01)
    assert drawn(I.TruncatedNormal(3.0, 0.1, 2.9, 3.1), 100).min() >= 2.9 - 1e-6


def test_exact_values():
    assert drawn(I.Constant(2.5), 2).tolist() == [2.5, 2.5]
    assert drawn(I.Assign([[1, 2], [3, 4]]), 2, 2).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert drawn(I.Assign(np.arange(4)), 2, 2, dtype="float64").dtype == np.float64
    assert drawn(I.Assign(paddle.ones([2])), 2).tolist() == [1.0, 1.0]
    assert drawn(I.XavierUniform()).shape == ()
    assert drawn(I.KaimingNormal(), 0, 3).shape == (0, 3)


def test_the_seed_decides():
    assert (drawn(I.Normal(), 5) == drawn(I.Normal(), 5)).all()
    assert (drawn(I.Normal(), 5) != paddle.randn([5]).numpy()).any()


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 2, 3)])
def test_orthogonal(shape):
    a = drawn(I.Orthogonal(gain=2.0), *shape, dtype="float64").reshape(shape[0], -1) / 2
    product = a @ a.T if a.shape[0] <= a.shape[1] else a.T @ a
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)


def test_dirac_passes_channels_through():
    kernel = drawn(I.Dirac(2), 4, 2, 3, 3)
    assert [tuple(i) for i in np.argwhere(kernel)] == [
        (0, 0, 1, 1), (1, 1, 1, 1), (2, 0, 1, 1), (3, 1, 1, 1)
    ]  # fmt: skip
    wide = drawn(I.Dirac(), 3, 2, 3)
    assert [tuple(i) for i in np.argwhere(wide)] == [(0, 0, 1), (1, 1, 1)]


def test_bilinear_interpolates():
    """A transposed convolution with this kernel doubles an image of a ramp into a finer ramp."""
    kernel = drawn(I.Bilinear(), 1, 1, 4, 4)[0, 0]
    hat = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(kernel, np.outer(hat, hat), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "param", "gain"),
    [
        ("linear", None, 1), ("conv2d", None, 1), ("conv3d_transpose", None, 1),
        ("sigmoid", None, 1), ("tanh", None, 5 / 3), ("relu", None, math.sqrt(2)),
        ("selu", None, 0.75), ("leaky_relu", None, 1.4141428569978354), ("leaky_relu", 1.0, 1),
    ],
)  # fmt: skip
def test_gains(name, param, gain):
    assert I.calculate_gain(name, param) == pytest.approx(gain)


def test_filling_a_parameter():
    w = paddle.create_parameter([2], "float32")
    I.Constant(7.0)(w)
    assert w.tolist() == [7.0, 7.0]


def test_an_initializer_written_for_paddle():
    class Ramp(I.Initializer):
        def forward(self, var, block=None):
            var.set_value(np.arange(var.size, dtype="float32").reshape(var.shape))

    assert nn.Linear(2, 2, weight_attr=Ramp()).weight.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_global_initializer():
    I.set_global_initializer(I.Constant(1.0), I.Constant(2.0))
    try:
        layer = nn.Linear(1, 1)
        own = nn.Linear(1, 1, weight_attr=I.Constant(5.0))
        cell = nn.GRUCell(1, 1)  # the global one comes before a layer's default, as in Paddle
    finally:
        I.set_global_initializer(None)
    assert (layer.weight.item(), layer.bias.item(), own.weight.item()) == (1.0, 2.0, 5.0)
    assert cell.weight_ih.tolist() == [[1.0]] * 3
    assert nn.Linear(1, 1).bias.item() == 0.0


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: I.calculate_gain("swash"), ValueError, "leaky_relu"),
        (lambda: I.Uniform(1, 0), ValueError, "low"),
        (lambda: I.TruncatedNormal(a=1, b=1), ValueError, "below"),
        (lambda: I.KaimingNormal(mode="fan"), ValueError, "fan_out"),
        (lambda: drawn(I.Assign([1.0]), 2), ValueError, r"shape \[2\]"),
        (lambda: drawn(I.Orthogonal(), 2), ValueError, "2 or more"),
        (lambda: drawn(I.Dirac(), 2, 2), ValueError, "window"),
        (lambda: drawn(I.Dirac(2), 3, 1, 3), ValueError, "divisible"),
        (lambda: drawn(I.Bilinear(), 1, 1, 2, 3), ValueError, "size, size"),
        (lambda: I.set_global_initializer(3), TypeError, "3"),
        (lambda: drawn(I.Initializer(), 2), NotImplementedError, "Initializer"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_text():
    assert repr(I.Normal(0.0, 0.5)) == "Normal(mean=0.0, std=0.5)"
