"""Normalisation against torch to the second derivative; running statistics as in Paddle."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import minipaddle as paddle
import minipaddle.nn.functional as F
from tests.nn.peers import agree, draw, near

nn = paddle.nn
SHAPES = {"NC": (5, 4), "NCL": (3, 4, 5), "NCHW": (3, 4, 2, 3), "NCDHW": (2, 4, 2, 1, 3)}


def tensors(*arrays):
    return [paddle.to_tensor(a) for a in arrays]


# ---- batch norm ------------------------------------------------------------------------------


@pytest.mark.parametrize("data_format", [*SHAPES, "NLC", "NHWC", "NDHWC"])
def test_batch_norm_in_training(data_format):
    last = data_format not in SHAPES
    x = draw(SHAPES[f"NC{data_format[1:-1]}" if last else data_format])[0] * 2 + 1
    x = np.moveaxis(x, 1, -1) if last else x

    def ours(x, w, b):
        mean, var = tensors(np.zeros(4), np.ones(4))
        return F.batch_norm(x, mean, var, w, b, training=True, data_format=data_format)

    def theirs(x, w, b):
        y = TF.batch_norm(x.movedim(-1, 1) if last else x, None, None, w, b, training=True)
        return y.movedim(1, -1) if last else y

    agree(ours, theirs, x, *draw((4,), (4,)))


def by_definition(x, w, b):
    """Batch norm of [N, C, L], which torch differentiates operator by operator."""
    mean, var = x.mean((0, 2), keepdim=True), x.var((0, 2), keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + 1e-5) * w[:, None] + b[:, None]


def test_third_derivative():
    """Of everything by everything. (Torch's own batch norm is wrong in the third derivative: its
    double backward takes the moments for constants.)
    """
    x, w, b, g = draw((3, 4, 5), (4,), (4,), (3, 4, 5))

    def ours(x, w, b, g):
        mean, var = tensors(np.zeros(4), np.ones(4))
        y = F.batch_norm(x, mean, var, w, b, training=True)
        return paddle.grad([y], [x, w, b], [g], create_graph=True)

    def theirs(x, w, b, g):
        return torch.autograd.grad([by_definition(x, w, b)], [x, w, b], [g], create_graph=True)

    agree(ours, theirs, x, w, b, g, order=2, rtol=1e-7)


def test_running_statistics_move_as_in_paddle():
    x = draw((4, 3, 5))[0] + 2
    mean, var = tensors(np.full(3, 0.5), np.full(3, 2.0))
    F.batch_norm(paddle.to_tensor(x), mean, var, training=True, momentum=0.8)
    near(mean, 0.8 * 0.5 + 0.2 * x.mean((0, 2)))
    near(var, 0.8 * 2.0 + 0.2 * x.var((0, 2)))  # divided by the count


def test_statistics_have_no_gradient_and_no_history():
    layer = nn.BatchNorm1D(3)
    x = paddle.ones([4, 3])
    x.stop_gradient = False
    layer(x).sum().backward()
    assert layer._mean.stop_gradient
    assert layer._mean.is_leaf
    assert layer._mean.grad is None


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_with_running_statistics(affine):
    x, w, b, m = draw((3, 4, 5), (4,), (4,), (4,))
    v = abs(draw((4,))[0]) + 0.5

    def ours(x, w, b, m, v):
        return F.batch_norm(x, m, v, *((w, b) if affine else (None, None)))

    def theirs(x, w, b, m, v):
        m, v, w, b = (a[:, None] for a in (m, v, w, b))
        y = (x - m) / torch.sqrt(v + 1e-5)
        return y * w + b if affine else y

    agree(ours, theirs, x, w, b, m, v)
    kept = tensors(m, v)
    y = F.batch_norm(paddle.to_tensor(x), *kept, training=True, use_global_stats=True)
    near(y, TF.batch_norm(*map(torch.tensor, (x, m, v))))
    near(kept[0], m)
    y = F.batch_norm(paddle.to_tensor(x), *kept, use_global_stats=False)
    near(y, TF.batch_norm(torch.tensor(x), None, None, training=True))


def test_several_steps_and_evaluation_as_torch():
    ours, theirs = nn.BatchNorm2D(3), torch.nn.BatchNorm2d(3)
    for step in range(3):
        x = draw((4, 3, 5, 5))[0].astype("float32") * (step + 1)
        near(ours(paddle.to_tensor(x)), theirs(torch.tensor(x)), 1e-5)
    near(ours._mean, theirs.running_mean, 1e-5)
    unbiased = (theirs.running_var - 0.9**3) * 99 / 100 + 0.9**3  # torch divides by count - 1
    near(ours._variance, unbiased, 1e-4)
    ours.eval()
    theirs.eval()
    theirs.running_var[:] = unbiased
    near(ours(paddle.to_tensor(x)), theirs(torch.tensor(x)), 1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_keep_float32_statistics(dtype):
    layer = nn.BatchNorm2D(3)
    x = draw((8, 3, 4, 4))[0]
    y = layer(paddle.to_tensor(x, dtype))
    assert (y.dtype, layer._mean.dtype) == (dtype, "float32")
    near(layer._mean, 0.1 * x.mean((0, 2, 3)), 2e-3)
    layer.eval()
    assert layer(paddle.to_tensor(x, dtype)).dtype == dtype


def test_large_mean_keeps_its_digits():
    x = (draw((64, 3))[0] + 1000).astype("float32")
    layer = nn.BatchNorm1D(3)
    expected = (x - x.mean(0, dtype="float64")) / x.std(0, dtype="float64")
    near(layer(paddle.to_tensor(x)), expected.astype("float32"), 2e-3)


# ---- the other norms -------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "normalized"), [((3, 5), 5), ((2, 3, 4), [3, 4]), ((4, 6), [6])])
def test_layer_norm(shape, normalized):
    own = [normalized] if isinstance(normalized, int) else normalized
    x, w, b = draw(shape, own, own)
    agree(
        lambda x, w, b: F.layer_norm(x, normalized, w, b),
        lambda x, w, b: TF.layer_norm(x, own, w, b),
        x * 3 + 1,
        w,
        b,
    )
    agree(lambda x: F.layer_norm(x, normalized), lambda x: TF.layer_norm(x, own), x)


@pytest.mark.parametrize(("shape", "own"), [((3, 5), [5]), ((2, 3, 4), [3, 4])])
def test_rms_norm(shape, own):
    x, w = draw(shape, own)
    agree(
        lambda x, w: F.rms_norm(x, own, w, 1e-3)[0],
        lambda x, w: TF.rms_norm(x, own, w, 1e-3),
        x,
        w,
    )
    rate = F.rms_norm(paddle.to_tensor(x), own)[1]
    axes = tuple(range(-len(own), 0))
    near(rate, 1 / np.sqrt((x * x).mean(axes) + 1e-5))


@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 5), (2, 6, 2, 3), (2, 6, 2, 1, 2)])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_norm(shape, groups):
    if shape[1] == groups and len(shape) == 2:
        pytest.skip("a group of one element")
    x, w, b = draw(shape, (6,), (6,))
    agree(
        lambda x, w, b: F.group_norm(x, groups, 1e-5, w, b),
        lambda x, w, b: TF.group_norm(x, groups, w, b),
        x,
        w,
        b,
    )


def test_group_norm_with_channels_last():
    x, w, b = draw((2, 3, 4, 6), (6,), (6,))
    agree(
        lambda x, w, b: F.group_norm(x, 3, 1e-5, w, b, "NHWC"),
        lambda x, w, b: TF.group_norm(x.movedim(-1, 1), 3, w, b).movedim(1, -1),
        x,
        w,
        b,
    )


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 2), (1, 3, 2, 2, 2)])
def test_instance_norm(shape):
    x, w, b = draw(shape, (3,), (3,))
    agree(
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        lambda x, w, b: TF.instance_norm(x, weight=w, bias=b),
        x,
        w,
        b,
    )


@pytest.mark.parametrize("size", [1, 3, 4])
def test_local_response_norm(size):
    (x,) = draw((2, 6, 3))
    agree(
        lambda x: F.local_response_norm(x, size, 0.5, 0.75, 2.0),
        lambda x: TF.local_response_norm(x, size, 0.5, 0.75, 2.0),
        x,
    )
    agree(
        lambda x: F.local_response_norm(x, size, 0.5, data_format="NLC"),
        lambda x: TF.local_response_norm(x.movedim(-1, 1), size, 0.5).movedim(1, -1),
        x,
    )


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("p", [1, 2, 3, 2.5, float("inf")])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_normalize(p, axis):
    (x,) = draw((3, 4, 2))
    agree(lambda x: F.normalize(x, p, axis), lambda x: TF.normalize(x, p, axis), x, rtol=1e-7)


def test_normalize_of_zeros():
    x = paddle.zeros([2, 2])
    x.stop_gradient = False
    F.normalize(x).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    out = paddle.zeros([1, 2])
    F.normalize(paddle.to_tensor([[3.0, 4.0]]), out=out)
    near(out, np.array([[0.6, 0.8]], "float32"), 1e-6)


# ---- layers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "shape"),
    [
        (lambda: nn.LayerNorm([3, 4]), lambda: torch.nn.LayerNorm([3, 4]), (2, 3, 4)),
        (lambda: nn.LayerNorm(4, bias=False), lambda: torch.nn.LayerNorm(4, bias=False), (2, 4)),
        (lambda: nn.RMSNorm(4), lambda: torch.nn.RMSNorm(4, 1e-5), (2, 4)),
        (lambda: nn.GroupNorm(2, 4), lambda: torch.nn.GroupNorm(2, 4), (2, 4, 3)),
        (
            lambda: nn.GroupNorm(2, 4, affine=False),
            lambda: torch.nn.GroupNorm(2, 4, affine=False),
            (2, 4, 3),
        ),
        (lambda: nn.InstanceNorm1D(3), lambda: torch.nn.InstanceNorm1d(3), (2, 3, 4)),
        (lambda: nn.InstanceNorm2D(3), lambda: torch.nn.InstanceNorm2d(3), (2, 3, 4, 2)),
        (lambda: nn.InstanceNorm3D(3), lambda: torch.nn.InstanceNorm3d(3), (2, 3, 2, 2, 2)),
        (lambda: nn.LocalResponseNorm(3), lambda: torch.nn.LocalResponseNorm(3), (2, 4, 3)),
        (lambda: nn.BatchNorm3D(3), lambda: torch.nn.BatchNorm3d(3), (2, 3, 2, 2, 2)),
    ],
)
def test_layers_start_as_torch_does(ours, theirs, shape):
    x = draw(shape)[0]
    agree(ours().to(dtype="float64"), theirs().to(torch.float64), x)


def test_parameters_of_batch_norm_as_in_paddle():
    layer = nn.BatchNorm2D(3)
    names = ["weight", "bias", "_mean", "_variance"]
    assert [n for n, _ in layer.named_parameters()] == names
    assert list(layer.state_dict()) == names
    assert [p.stop_gradient for p in layer.parameters()] == [False, False, True, True]
    bare = nn.BatchNorm2D(3, weight_attr=False, bias_attr=False)
    assert (bare.weight, bare.bias) == (None, None)
    assert bare(paddle.ones([2, 3, 2, 2])).shape == [2, 3, 2, 2]


def test_old_batch_norm():
    layer = nn.BatchNorm(3, act="relu", momentum=0.5)
    x = paddle.to_tensor(draw((4, 3, 2))[0], "float32")
    assert float(layer(x).min()) == 0
    assert nn.BatchNorm(3, is_test=True).training is False
    near(nn.BatchNorm(3, use_global_stats=True)(x), x.numpy() / np.sqrt(1 + 1e-5), 1e-6)
    for shape in ([2, 3], [2, 3, 4, 5], [2, 3, 1, 2, 2]):
        assert nn.BatchNorm(3)(paddle.ones(shape)).shape == shape
    with pytest.raises(ValueError, match="a function of"):
        nn.BatchNorm(3, act="no_such")


def test_batch_norm_1d_takes_two_or_three_dimensions():
    assert nn.BatchNorm1D(3, data_format="NLC")(paddle.ones([2, 4, 3])).shape == [2, 4, 3]
    assert nn.BatchNorm1D(3, data_format="NLC")(paddle.ones([2, 3])).shape == [2, 3]
    with pytest.raises(ValueError, match="2-D or 3-D"):
        nn.BatchNorm1D(3)(paddle.ones([2, 3, 4, 5]))


def test_sync_batch_norm():
    model = nn.Sequential(nn.Conv2D(3, 4, 3), nn.Sequential(nn.BatchNorm2D(4), nn.ReLU()))
    model[1][0].weight.set_value(paddle.full([4], 2.0))
    old = model[1][0]
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    new = converted[1][0]
    assert isinstance(new, nn.SyncBatchNorm)
    assert new.weight is old.weight
    assert new._mean is old._mean
    assert nn.SyncBatchNorm.convert_sync_batchnorm(new) is new
    assert isinstance(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1D(2)), nn.SyncBatchNorm)
    with pytest.raises(ValueError, match="activation"):
        nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm(2, act="relu"))


def test_spectral_norm():
    w = draw((3, 4, 2))[0]
    layer = nn.SpectralNorm([3, 4, 2], dim=1, power_iters=100, dtype="float64")
    rows = np.moveaxis(w, 1, 0).reshape(4, -1)
    agree(
        layer,
        lambda t: t / torch.linalg.matrix_norm(t.movedim(1, 0).reshape(4, -1), 2),
        w,
        order=1,
        rtol=1e-6,
    )
    near(layer(paddle.to_tensor(w)), w / np.linalg.norm(rows, 2), 1e-8)
    assert repr(layer) == "SpectralNorm()"


def test_layers_say_what_they_are():
    assert repr(nn.BatchNorm1D(3)) == (
        "BatchNorm1D(num_features=3, momentum=0.9, epsilon=1e-05, data_format=NCL)"
    )
    assert repr(nn.BatchNorm2D(3, data_format="NHWC", name="a")).endswith("NHWC, name=a)")
    assert repr(nn.BatchNorm(3)) == "BatchNorm()"
    assert repr(nn.InstanceNorm2D(3)) == "InstanceNorm2D(num_features=3, epsilon=1e-05)"
    assert repr(nn.LayerNorm([3])) == "LayerNorm(normalized_shape=[3], epsilon=1e-05)"
    assert repr(nn.RMSNorm([3])) == "RMSNorm(normalized_shape=[3], epsilon=1e-05)"
    assert repr(nn.GroupNorm(1, 3)) == "GroupNorm(num_groups=1, num_channels=3, epsilon=1e-05)"
    lrn = nn.LocalResponseNorm(5, data_format="NHWC")
    assert repr(lrn) == (
        "LocalResponseNorm(size=5, alpha=0.0001, beta=0.75, k=1.0, data_format=NHWC)"
    )


X = paddle.ones([2, 4, 3])
STATS = (paddle.zeros([4]), paddle.ones([4]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.batch_norm(X[0, 0], *STATS), "2 dimensions or more"),
        (lambda: F.batch_norm(X[:, :3], *STATS), "one for each of the 3 channels"),
        (lambda: F.batch_norm(X, *STATS, data_format="CNL"), "NCHW"),
        (lambda: F.layer_norm(X, [4]), r"\[\*, 4\]"),
        (lambda: F.layer_norm(X, 3, paddle.ones([4])), "4"),
        (lambda: F.rms_norm(X, []), "x of shape"),
        (lambda: F.group_norm(X, 3), "do not fall into 3 groups"),
        (lambda: F.instance_norm(X, data_format="NHWC"), "channels first"),
        (lambda: F.local_response_norm(X[0], 3), "3 dimensions or more"),
        (lambda: nn.InstanceNorm1D(3, weight_attr=False), "both False, or neither"),
        (lambda: nn.InstanceNorm2D(3)(X), "4-D"),
        (lambda: nn.SpectralNorm([2, 3], dim=2), "one of their axes"),
        (lambda: nn.SpectralNorm([2, 3])(X), r"shape \[2, 3\]"),
        (lambda: F.batch_norm(X, *STATS, paddle.ones([3])), "3"),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="floating"):
        F.layer_norm(paddle.ones([2, 3], "int64"), 3)
