"""nn.utils and gradient clipping against torch."""

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle import nn
from tests.nn.oracle import values


def parameters(*arrays):
    given = nn.initializer.Assign
    return [
        paddle.create_parameter(a.shape, "float64", default_initializer=given(a)) for a in arrays
    ]


def with_gradients(seed=0):
    """Two parameters with gradients, ours and torch's."""
    ours = parameters(values(3, 2), values(4))
    theirs = [torch.nn.Parameter(torch.from_numpy(p.numpy())) for p in ours]
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        g = 3 * values(*a.shape, seed=seed + k + 1)
        a.grad, b.grad = paddle.to_tensor(g), torch.from_numpy(g)
    return ours, theirs


def same_gradients(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy())


# ---- vectors -----------------------------------------------------------------------------------


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    vector.sum().backward()
    assert layer.bias.grad.tolist() == [1.0] * 3
    weight = layer.weight
    nn.utils.vector_to_parameters(paddle.arange(9.0), layer.parameters())
    assert layer.weight is weight
    assert layer.weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert layer.bias.tolist() == [6.0, 7.0, 8.0]
    with pytest.raises(ValueError, match=r"\[9\]"):
        nn.utils.vector_to_parameters(paddle.arange(8.0), layer.parameters())


# ---- clipping ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3.0, float("inf")])
@pytest.mark.parametrize("limit", [0.5, 1e3])
def test_clip_grad_norm(order, limit):
    ours, theirs = with_gradients()
    norm = nn.utils.clip_grad_norm_(ours, limit, order)
    want = torch.nn.utils.clip_grad_norm_(theirs, limit, order)
    assert norm.item() == pytest.approx(want.item())
    same_gradients(ours, theirs)


def test_clip_grad_norm_of_nothing_and_of_nan():
    assert nn.utils.clip_grad_norm_(nn.Linear(1, 1).parameters(), 1.0).item() == 0.0
    (p,) = parameters(np.ones(2))
    p.grad = paddle.to_tensor([1.0, np.nan])
    with pytest.raises(RuntimeError, match="nan"):
        nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    ours, theirs = with_gradients()
    nn.utils.clip_grad_value_(ours, 1.5)
    torch.nn.utils.clip_grad_value_(theirs, 1.5)
    same_gradients(ours, theirs)


def test_clip_by_value():
    (p,) = parameters(np.ones(4))
    g = paddle.to_tensor([-5.0, -0.5, 0.5, 5.0])
    assert nn.ClipGradByValue(1.0)([(p, g)])[0][1].tolist() == [-1.0, -0.5, 0.5, 1.0]
    assert nn.ClipGradByValue(2, min=-0.1)([(p, g)])[0][1].tolist() == pytest.approx(
        [-0.1, -0.1, 0.5, 2.0]
    )
    assert repr(nn.ClipGradByValue(1)) == "ClipGradByValue(max=1.0, min=-1.0)"
    with pytest.raises(ValueError, match="max"):
        nn.ClipGradByValue(-1)


def test_clip_by_norm():
    (p,) = parameters(np.ones(2))
    pairs = nn.ClipGradByNorm(1.0)([(p, paddle.to_tensor([3.0, 4.0]))])
    assert pairs[0][1].tolist() == pytest.approx([0.6, 0.8])
    short = nn.ClipGradByNorm(10)([(p, paddle.to_tensor([3.0, 4.0]))])
    assert short[0][1].tolist() == [3.0, 4.0]


def test_clip_by_global_norm():
    ours, theirs = with_gradients()
    before = [p.grad for p in ours]
    frozen = parameters(np.ones(2))[0]
    frozen.need_clip = False
    untouched = paddle.to_tensor([100.0, 100.0])
    pairs = [(ours[0], before[0]), (frozen, untouched), (ours[1], before[1]), (frozen, None)]
    clipped = nn.ClipGradByGlobalNorm(0.7)(pairs)
    torch.nn.utils.clip_grad_norm_(theirs, 0.7)
    assert [p for p, _ in clipped] == [p for p, _ in pairs]
    assert clipped[1][1] is untouched
    assert clipped[3][1] is None
    for k, p in ((0, theirs[0]), (2, theirs[1])):
        np.testing.assert_allclose(clipped[k][1].numpy(), p.grad.numpy(), rtol=1e-6)
    assert clipped[0][1].stop_gradient
    assert nn.ClipGradByGlobalNorm(1.0)([]) == []


def test_the_norm_of_halves_is_summed_in_float32():
    (p,) = parameters(np.ones(2))
    g = paddle.full([10000], 10.0, "float16")  # the sum of squares, 1e6, is no float16
    clipped = nn.ClipGradByGlobalNorm(1.0)([(p, g)])[0][1]
    assert clipped.dtype == paddle.float16
    assert clipped[0].item() == pytest.approx(0.01, rel=1e-3)


# ---- weight norm -------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim):
    layer, x = nn.Linear(3, 4).to(dtype="float64"), values(5, 3)
    before = layer(paddle.to_tensor(x)).numpy()
    nn.utils.weight_norm(layer, dim=dim)
    y = layer(paddle.to_tensor(x))
    np.testing.assert_allclose(y.numpy(), before)
    (y * y).sum().backward()
    v, g, b = (
        torch.from_numpy(p.numpy()).requires_grad_()
        for p in (layer.weight_v, layer.weight_g, layer.bias)
    )
    length = v.norm() if dim is None else v.norm(dim=1 - dim % 2, keepdim=True)
    z = torch.from_numpy(x) @ (v / length * g.reshape(length.shape)) + b
    (z * z).sum().backward()
    for ours, theirs in ((layer.weight_v, v), (layer.weight_g, g), (layer.bias, b)):
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-12)
    assert [n for n, _ in layer.named_parameters()] == ["bias", "weight_v", "weight_g"]
    assert layer.weight_g.shape == ([] if dim is None else [[3, 4][dim]])


def test_removing_weight_norm():
    layer = nn.utils.weight_norm(nn.Linear(3, 2))
    weight = layer.weight
    layer.weight_g.set_value(layer.weight_g * 2)
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.numpy(), 2 * weight.numpy(), rtol=1e-6)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert layer.weight.is_parameter
    layer(paddle.ones([1, 3])).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda n: nn.utils.weight_norm(n, "nothing"), ValueError, "weight, bias"),
        (lambda n: nn.utils.weight_norm(n, dim=2), ValueError, "dim=2"),
        (lambda n: nn.utils.weight_norm(nn.utils.weight_norm(n)), RuntimeError, "already"),
        (lambda n: nn.utils.remove_weight_norm(n), ValueError, "not found"),
        (lambda n: nn.utils.spectral_norm(n, n_power_iterations=0), ValueError, "=0"),
        (lambda n: nn.utils.weight_norm(nn.utils.spectral_norm(n)), RuntimeError, "SpectralNorm"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call(nn.Linear(2, 2))


# ---- spectral norm -----------------------------------------------------------------------------


def test_spectral_norm():
    layer = nn.Linear(6, 4)
    weight = layer.weight.numpy()
    nn.utils.spectral_norm(layer, n_power_iterations=30)
    layer(paddle.ones([1, 6])).sum().backward()
    np.testing.assert_allclose(
        layer.weight.numpy(), weight / np.linalg.norm(weight, 2), rtol=1e-4, atol=1e-6
    )
    assert layer.weight_orig.grad is not None
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    layer.eval()
    kept = layer.weight_u.numpy()
    layer(paddle.ones([1, 6]))
    np.testing.assert_array_equal(layer.weight_u.numpy(), kept)


def test_spectral_norm_takes_the_axis_of_the_outputs():
    linear = nn.utils.spectral_norm(nn.Linear(6, 4))
    assert (linear.weight_u.shape, linear.weight_v.shape) == ([4], [6])
    conv = nn.utils.spectral_norm(nn.Conv2D(3, 5, 2))
    assert (conv.weight_u.shape, conv.weight_v.shape) == ([5], [12])
    turned = nn.utils.spectral_norm(nn.Conv2DTranspose(3, 5, 2))
    assert (turned.weight_u.shape, turned.weight_v.shape) == ([5], [12])
