"""Weights in one byte or half of one, against NumPy."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.nn import quant

rng = np.random.default_rng(0)
W = rng.standard_normal((128, 6)).astype("float32")
X = rng.standard_normal((3, 128)).astype("float32")
T = paddle.to_tensor
HIGH = {"weight_only_int8": 127, "weight_only_int4": 7}


def by_hand(algo, group):
    """(whole numbers [in, out], one step of each, floats)."""
    w = W.reshape(1 if group == -1 else 128 // group, -1, 6)
    step = np.abs(w).max(1, keepdims=True) / HIGH[algo]
    q = np.rint(w / step)
    return q.reshape(128, 6), step[:, 0], (q * step).reshape(128, 6)


@pytest.mark.parametrize("group", [-1, 64, 128])
@pytest.mark.parametrize("algo", HIGH)
def test_weights_become_bytes_and_come_back(algo, group):
    q, scale = quant.weight_quantize(T(W), algo, group_size=group)
    whole, step, floats = by_hand(algo, group)
    assert q.dtype == "int8"
    if algo == "weight_only_int8":
        np.testing.assert_array_equal(q.numpy(), whole.T)
    else:
        assert q.shape == [3, 128]
        low, high = (q.numpy() & 15 ^ 8) - 8, q.numpy() >> 4
        np.testing.assert_array_equal(np.stack([low, high], 1).reshape(6, 128), whole.T)
    np.testing.assert_allclose(scale.numpy(), step[0] if group == -1 else step, rtol=1e-6)
    back = quant.weight_dequantize(q, scale, algo, group_size=group)
    np.testing.assert_allclose(back.numpy(), floats, rtol=1e-5, atol=1e-7)
    bias = rng.standard_normal(6).astype("float32")
    kind = algo.removeprefix("weight_only_")
    y = quant.weight_only_linear(T(X), q, T(bias), scale, kind, group_size=group)
    np.testing.assert_allclose(y.numpy(), X @ floats + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("algo", HIGH)
def test_a_layer_is_saved_and_loaded(algo, tmp_path):
    class Small(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            weight, scale = quant.weight_quantize(T(W), algo, group_size=64)
            self.register_buffer("weight", weight)
            self.register_buffer("scale", scale)

        def forward(self, x):
            kind = algo.removeprefix("weight_only_")
            return quant.weight_only_linear(x, self.weight, None, self.scale, kind, None, 64)

    net, path = Small(), str(tmp_path / "net")
    paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None, 128])])
    np.testing.assert_array_equal(paddle.jit.load(path)(T(X)).numpy(), net(T(X)).numpy())
    compiled = paddle.jit.to_static(lambda x: net(x), backend="native")(T(X))
    np.testing.assert_allclose(compiled.numpy(), net(T(X)).numpy(), rtol=1e-4, atol=1e-4)


def test_scales_are_in_the_dtype_of_the_weight():
    q, scale = quant.weight_quantize(T(W.astype("float16")))
    assert scale.dtype == quant.weight_dequantize(q, scale).dtype == "float16"


def test_outliers_are_multiplied_as_floats():
    x = X.copy()
    x[:, 5] *= 100  # one column would take the bits of all others
    q, scale = quant.weight_quantize(T(W), "llm.int8")
    y = quant.llm_int8_linear(T(x), q, weight_scale=scale).numpy()
    assert np.abs(y - x @ W).max() < 0.02 * np.abs(x @ W).max()
    without = quant.llm_int8_linear(T(x), q, weight_scale=scale, threshold=1e9).numpy()
    assert np.abs(y - x @ W).max() < 0.5 * np.abs(without - x @ W).max()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: quant.weight_quantize(T(W), "int8"), "algo='int8'"),
        (lambda: quant.weight_quantize(T(W[:100]), group_size=64), "group_size=64 for 100 inputs"),
        (lambda: quant.weight_quantize(T(W[:, :5]), "weight_only_int4"), "5 outputs"),
        (lambda: quant.weight_only_linear(T(X), T(W)), "weight_scale=None"),
        (lambda: quant.weight_only_linear(T(X), T(W), None, T(W), "int2"), "weight_dtype='int2'"),
    ],
)
def test_what_does_not_fit_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()
