"""Models: Paddle's names of parts, PyTorch's numbers block by block, and that they learn."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import minipaddle as paddle
from minipaddle.vision import models
from minipaddle.vision.models.mobilenetv2 import InvertedResidual, multiple_of_8
from minipaddle.vision.models.resnet import BasicBlock, BottleneckBlock, ResNet, stage

DATA = Path(__file__).parents[1] / "data" / "paddle_state_dicts.json"
PADDLE = json.loads(DATA.read_text())["models"]


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", PADDLE)
def test_parts_have_paddles_names_order_and_shapes(name):
    net = getattr(models, name)(**PADDLE[name]["options"])
    ours = [(key, list(value.shape)) for key, value in net.state_dict().items()]
    assert ours == list(map(tuple, PADDLE[name]["state"].items()))


# ---- numbers ---------------------------------------------------------------------------------


def weights_of(layer):
    """The layer's parameters set to random values, and the same for torch."""
    rng, out = np.random.default_rng(1), {}
    for name, p in layer.named_parameters():
        if p.trainable:
            p.set_value(rng.normal(scale=0.5, size=p.shape).astype("float32"))
            out[name] = torch.tensor(p.numpy(), requires_grad=True)
    return out


def normed(x, w, name):
    return TF.batch_norm(x, None, None, w[f"{name}.weight"], w[f"{name}.bias"], training=True)


def conv(x, w, name, **options):
    return TF.conv2d(x, w[f"{name}.weight"], **options)


def basic(x, w):
    y = TF.relu(normed(conv(x, w, "conv1", stride=2, padding=1), w, "bn1"))
    y = normed(conv(y, w, "conv2", padding=1), w, "bn2")
    return TF.relu(y + normed(conv(x, w, "downsample.0", stride=2), w, "downsample.1"))


def bottleneck(x, w):
    y = TF.relu(normed(conv(x, w, "conv1"), w, "bn1"))
    y = TF.relu(normed(conv(y, w, "conv2", padding=1, groups=2), w, "bn2"))
    return TF.relu(normed(conv(y, w, "conv3"), w, "bn3") + x)


def inverted(x, w):
    y = TF.relu6(normed(conv(x, w, "conv.0.0"), w, "conv.0.1"))
    y = TF.relu6(normed(conv(y, w, "conv.1.0", padding=1, groups=12), w, "conv.1.1"))
    return x + normed(conv(y, w, "conv.2"), w, "conv.3")


BLOCKS = {
    "basic": (lambda: stage(BasicBlock, 4, 6, 1, 2)[0], basic),
    "bottleneck": (lambda: BottleneckBlock(8, 2, groups=2, base_width=128), bottleneck),
    "inverted": (lambda: InvertedResidual(4, 4, 1, 3), inverted),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_block_and_its_gradients_against_torch(name):
    build, formula = BLOCKS[name]
    block = build()
    weights = weights_of(block)
    channels = {"basic": 4, "bottleneck": 8, "inverted": 4}[name]
    x = np.random.default_rng(0).normal(size=(3, channels, 6, 6)).astype("float32")
    ours, theirs = paddle.to_tensor(x, stop_gradient=False), torch.tensor(x, requires_grad=True)
    a, b = block(ours), formula(theirs, weights)
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-4)
    weight = np.random.default_rng(2).normal(size=a.shape).astype("float32")
    (a * paddle.to_tensor(weight)).sum().backward()
    (b * torch.tensor(weight)).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-3, atol=2e-3)
    for key, p in block.named_parameters():
        if p.trainable:
            expected = weights[key].grad.numpy()
            np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-3, atol=5e-3)


def test_lenet_against_torch():
    net = models.LeNet()
    w = {k: torch.tensor(v.numpy()) for k, v in net.state_dict().items()}
    x = np.random.default_rng(0).normal(size=(2, 1, 28, 28)).astype("float32")
    y = torch.tensor(x)
    for k, padding in ((0, 1), (3, 0)):
        y = TF.conv2d(y, w[f"features.{k}.weight"], w[f"features.{k}.bias"], padding=padding)
        y = TF.max_pool2d(TF.relu(y), 2)
    y = y.flatten(1)
    for k in range(3):
        y = y @ w[f"fc.{k}.weight"] + w[f"fc.{k}.bias"]
    ours = net(paddle.to_tensor(x)).numpy()
    np.testing.assert_allclose(ours, y.numpy(), rtol=1e-4, atol=1e-5)


# ---- shapes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("net", "shape", "result"),
    [
        (lambda: models.LeNet(num_classes=0), [2, 1, 28, 28], [2, 16, 5, 5]),
        (lambda: models.resnet18(num_classes=7), [1, 3, 40, 40], [1, 7]),
        (lambda: models.resnet18(num_classes=0), [1, 3, 40, 40], [1, 512, 1, 1]),
        (lambda: models.resnet34(num_classes=0, with_pool=False), [1, 3, 64, 32], [1, 512, 2, 1]),
        (lambda: models.mobilenet_v2(scale=0.25, num_classes=0), [1, 3, 32, 32], [1, 1280, 1, 1]),
        (
            lambda: models.MobileNetV2(0.25, num_classes=0, with_pool=False),
            [1, 3, 64, 32],
            [1, 1280, 2, 1],
        ),
        (lambda: models.SmallResNet(1, 4, 5, inputs=1), [2, 1, 8, 8], [2, 5]),
        (lambda: models.resnet_small(num_classes=3), [1, 3, 32, 32], [1, 3]),
    ],
)
def test_shapes(net, shape, result):
    assert net().eval()(paddle.ones(shape)).shape == result


@pytest.mark.parametrize(("name", "depth"), [("resnet101", 101), ("resnet152", 152)])
def test_deep_ones_are_as_deep_as_they_say(name, depth, monkeypatch):
    def empty(layer, shape, *args, **kwargs):
        return paddle.create_parameter([1], "float32")

    monkeypatch.setattr(paddle.nn.Layer, "create_parameter", empty)
    net = getattr(models, name)()
    counted = [
        layer
        for path, layer in net.named_sublayers()
        if isinstance(layer, paddle.nn.Conv2D | paddle.nn.Linear) and "downsample" not in path
    ]
    assert len(counted) == depth


def test_width_widens_the_middle_of_a_bottleneck():
    assert BottleneckBlock(8, 4, base_width=128).conv2.weight.shape == [8, 8, 3, 3]
    assert BottleneckBlock(8, 32, base_width=4, groups=32).conv2.weight.shape == [64, 2, 3, 3]


@pytest.mark.parametrize("wanted", [1, 9, 11, 12, 16, 20, 33.6, 90, 1280])
def test_channels_are_multiples_of_8_and_little_is_lost(wanted):
    found = multiple_of_8(wanted)
    assert found % 8 == 0
    assert found >= 0.9 * wanted
    assert found - wanted < 8


# ---- learning --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (lambda: models.LeNet(4), [4, 1, 28, 28]),
        (lambda: models.SmallResNet(1, 8, 4), [4, 3, 16, 16]),
        (lambda: models.MobileNetV2(0.25, 4), [4, 3, 64, 64]),
    ],
)
def test_a_few_steps_lower_the_loss(net, shape):
    paddle.seed(1)
    net, x, y = net(), paddle.randn(shape), paddle.arange(4)
    optimizer = paddle.optimizer.Adam(0.003, parameters=net.parameters())
    losses = []
    for _ in range(6):
        loss = paddle.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


# ---- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mobilenet_v2"]
)
def test_no_weights_are_downloaded(name):
    with pytest.raises(ValueError, match=rf"{name}\(pretrained=True\): .* downloads no weights"):
        getattr(models, name)(pretrained=True)


@pytest.mark.parametrize("options", [{"groups": 2}, {"base_width": 128}, {"dilation": 2}])
def test_a_basic_block_refuses_what_it_can_not_do(options):
    with pytest.raises(ValueError, match="BottleneckBlock takes all three"):
        BasicBlock(4, 4, **options)


def test_a_depth_that_is_not_in_the_table():
    with pytest.raises(ValueError, match="ResNet of depth 19\n  expected: one of 18, 34"):
        ResNet(BasicBlock, 19)


def test_another_norm_layer():
    block = BasicBlock(4, 4, norm_layer=paddle.nn.InstanceNorm2D)
    assert isinstance(block.bn2, paddle.nn.InstanceNorm2D)


def test_missing_models_point_to_their_neighbours():
    with pytest.raises(AttributeError, match=r"nearest name is paddle\.vision\.models\.resnet18"):
        _ = models.resnet8


@pytest.mark.parametrize(
    ("build", "batch_norm", "count"),
    [("vgg11", False, 132_863_336), ("vgg16", False, 138_357_544), ("vgg19", True, 143_678_248)],
)
def test_vgg_has_as_many_weights_as_torchvision_says(build, batch_norm, count):
    with paddle.LazyGuard():
        net = getattr(paddle.vision.models, build)(batch_norm=batch_norm)
    statistics = ("_mean", "_variance")
    found = [p for name, p in net.named_parameters() if not name.endswith(statistics)]
    assert sum(p.size for p in found) == count


def test_vgg_on_small_images():
    net = paddle.vision.models.vgg13(num_classes=0)
    assert net(paddle.ones([1, 3, 32, 32])).shape == [1, 512, 7, 7]
