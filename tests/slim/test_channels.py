"""Channels: a network without them is the network in which they are zero, and really smaller."""

import json

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch.nn.utils import prune as torch_prune

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn, slim
from minipaddle.engine.executors.compiler import compiler
from minipaddle.slim import filters
from minipaddle.slim.channels import Axes, CannotFollow, work_of
from minipaddle.slim.shrink import program_of

V = paddle.vision.models


def settled(net):
    """The network with batch norms that do something, in evaluation mode."""
    rng = np.random.default_rng(5)
    for layer in net.sublayers():
        if isinstance(layer, nn.BatchNorm2D):
            for p, low in (
                (layer._mean, -1),
                (layer._variance, 0.5),
                (layer.bias, -1),
                (layer.weight, 0.5),
            ):
                p.set_value(rng.uniform(low, 1.5, p.shape).astype("float32"))
    return net.eval()


def pruned_everywhere(net, x, ratio=0.4):
    """Remove channels of all layers; checks zeroed, removed and restored."""
    whole, before = net(x).numpy(), {n: p.numpy().copy() for n, p in net.state_dict().items()}
    pruner = slim.L1NormFilterPruner(net, [x])
    ratios = dict.fromkeys(pruner.prunable(), ratio)
    pruner.prune_vars(ratios, apply="lazy")
    zeroed = net(x).numpy()
    assert abs(zeroed - whole).max() > 1e-4 * abs(whole).max()
    pruner.restore()
    plan = pruner.prune_vars(ratios)
    assert np.allclose(net(x).numpy(), zeroed, atol=2e-6 * abs(zeroed).max())
    assert min(plan.pruned_parameters, plan.pruned_flops) > 0
    small = sum(p.size for p in net.parameters())
    pruner.restore()
    for n, p in net.state_dict().items():
        assert np.array_equal(p.numpy(), before[n])
    assert np.array_equal(net(x).numpy(), whole)
    return small / sum(p.size for p in net.parameters())


@pytest.fixture(scope="module")
def lenet():
    paddle.seed(1)
    return settled(V.LeNet()), paddle.randn([2, 1, 28, 28])


MODELS = {
    "LeNet": lambda: (V.LeNet(), paddle.randn([2, 1, 28, 28])),
    "ResNet-18": lambda: (V.resnet18(num_classes=10), paddle.randn([1, 3, 16, 16])),
    "MobileNetV2": lambda: (V.MobileNetV2(0.25, num_classes=10), paddle.randn([1, 3, 16, 16])),
    "GPT": lambda: (paddle.text.GPT(11, 24, 1, 4, 8), paddle.randint(0, 11, [2, 8])),
}
KEEPS = {"LeNet": 0.42, "ResNet-18": 0.4, "MobileNetV2": 0.47, "GPT": 0.75}
"""The part of the weights that is left at most."""


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    paddle.seed(0)
    net, x = MODELS[name]()
    assert pruned_everywhere(settled(net), x) < KEEPS[name]


def test_heads_go_whole():
    net, x = MODELS["GPT"]()
    attention = net.blocks[0].attention
    pruner = slim.L1NormFilterPruner(net, [x])
    assert pruner.prunable()[attention.qkv.weight.name] == 4
    weights = attention.qkv.weight.numpy().reshape(24, 3, 4, 6)
    order = abs(weights).sum((0, 1, 3)).argsort()
    pruner.prune_vars({attention.qkv.weight.name: 0.5})
    expected = weights[:, :, np.sort(order[2:])].reshape(24, 36)
    assert np.array_equal(attention.qkv.weight.numpy(), expected)
    assert attention.out.weight.shape == [12, 24]


# ---- what goes together ----------------------------------------------------------------------


class Net(nn.Layer):
    """Two convolutions a and b of 4 channels, something between them and the scores."""

    def __init__(self, between, features=4, more=()):
        super().__init__()
        self.a, self.b = nn.Conv2D(2, 4, 3, padding=1), nn.Conv2D(2, 4, 1)
        self.more = nn.LayerList(more)
        self.between, self.last = between, nn.Linear(features, 3)

    def forward(self, x):
        y = self.between(self, F.relu(self.a(x)), F.relu(self.b(x)))
        return self.last(y.mean([2, 3]) if y.ndim == 4 else y)


def flat(net, a, b):
    return (a + b)[:, :, :2, :2].flatten(1)


def halves(net, a, b):
    n = a.shape[1] // 2
    return a[:, :n] * b[:, n:]


TOGETHER = {
    "sum": (lambda net, a, b: a + b, 4, (), {"a": 4}),
    "concat": (lambda net, a, b: paddle.concat([a, b], 1), 8, (), {"a": 4, "b": 4}),
    "flatten": (flat, 16, (), {"a": 4}),
    "flipped": (lambda net, a, b: a + b.flip(1), 4, (), {"a": 4}),
    "split": (lambda net, a, b: paddle.add(*paddle.split(a, 2, 1)), 2, (), {"a": 2, "b": 4}),
    "joined along the batch": (
        lambda net, a, b: paddle.concat([a, b], 0), 4, (), {"a": 4}),
    "stacked": (lambda net, a, b: paddle.stack([a, b], 2).flatten(1, 2), 8, (), {"a": 4}),
    "padded": (lambda net, a, b: F.pad(a, [0, 0, 1, 2, 0, 0, 0, 0]), 7, (), {"a": 4, "b": 4}),
    "transposed": (
        lambda net, a, b: a.transpose([0, 2, 3, 1]).transpose([0, 3, 1, 2]), 4, (),
        {"a": 4, "b": 4}),
    "gate": (lambda net, a, b: a * b.mean([2, 3], keepdim=True), 4, (), {"a": 4}),
    "depthwise": (
        lambda net, a, b: net.more[0](a + b), 4, [lambda: nn.Conv2D(4, 4, 3, groups=4)], {"a": 4}),
    "depthwise times two": (
        lambda net, a, b: net.more[0](a), 8, [lambda: nn.Conv2D(4, 8, 3, groups=4)],
        {"a": 4, "b": 4}),
    "two groups": (
        lambda net, a, b: net.more[0](a), 6, [lambda: nn.Conv2D(4, 6, 3, groups=2)],
        {"a": 2, "b": 4}),
    "prelu": (lambda net, a, b: net.more[0](a - 1), 4, [lambda: nn.PReLU(4)], {"a": 4, "b": 4}),
    "batch norm": (
        lambda net, a, b: net.more[0](a), 4, [lambda: nn.BatchNorm2D(4)], {"a": 4, "b": 4}),
    "used twice": (
        lambda net, a, b: net.more[0](a) + net.more[0](b), 5, [lambda: nn.Conv2D(4, 5, 1)],
        {"a": 4, "more.0": 5}),
}  # fmt: skip
"""What stands between, features of it, further layers, and how many channels weights have then."""


@pytest.mark.parametrize("name", TOGETHER)
def test_what_goes_together(name):
    paddle.seed(4)
    between, features, more, groups = TOGETHER[name]
    net = settled(Net(between, features, [make() for make in more]))
    x = paddle.randn([2, 2, 6, 6])
    found = slim.L1NormFilterPruner(net, [x]).prunable()
    names = {p.name: name.removesuffix(".weight") for name, p in net.named_parameters()}
    assert {names[k]: n for k, n in found.items()} == groups
    pruned_everywhere(net, x, 0.5)


REFUSED = {
    "an output": (lambda net, a, b: a, lambda net: net.last, "output"),
    "layer norm": (
        lambda net, a, b: F.layer_norm(a.transpose([0, 2, 3, 1]), 4).mean([1, 2]),
        lambda net: net.a, "sum .*one value, which would change"),
    "softmax": (lambda net, a, b: F.softmax(a, 1), lambda net: net.a, "which would change"),
    "largest": (
        lambda net, a, b: a.max(1, keepdim=True) + b, lambda net: net.a, "max .*would change"),
    "sorted": (lambda net, a, b: a.sort(1), lambda net: net.a, "whole"),
    "a constant of Python's": (
        lambda net, a, b: a * (1.0 / a.shape[1]), lambda net: net.a, "something else here"),
    "a size of Python's": (
        lambda net, a, b: a.reshape([2, 4, 36]).mean(2), lambda net: net.a, "does not run"),
    "half with half": (halves, lambda net: net.a, "does not run"),
    "two heads": (
        lambda net, a, b: a.reshape([2, 2, -1, 6, 6]).mean(1), lambda net: net.a, None),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_is_refused_by_name(name):
    between, layer, says = REFUSED[name]
    paddle.seed(4)
    features = 2 if name in ("two heads", "half with half") else 4
    net, x = Net(between, features), paddle.randn([2, 2, 6, 6])
    before = {n: p.numpy().copy() for n, p in net.state_dict().items()}
    pruner = slim.L1NormFilterPruner(net, [x])
    if says is None:  # each channel has a partner in the other half
        pruner.prune_vars({net.a.weight.name: 0.5})
        assert net.a.weight.shape[0] == 2
        return
    with pytest.raises(CannotFollow, match=f"(?s){says}"):
        pruner.prune_vars({layer(net).weight.name: 0.5})
    for n, p in net.state_dict().items():
        assert np.array_equal(p.numpy(), before[n])


def test_no_such_parameter_or_ratio(lenet):
    pruner = slim.L1NormFilterPruner(lenet[0], [2, 1, 28, 28])
    with pytest.raises(ValueError, match="no parameter 'w'"):
        pruner.prune_vars({"w": 0.5})
    with pytest.raises(ValueError, match="below 1"):
        pruner.prune_vars({lenet[0].features[0].weight.name: 1.0})
    with pytest.raises(ValueError, match="sensitive"):
        pruner.sensitive_prune(0.5)


# ---- training goes on ------------------------------------------------------------------------


@pytest.mark.parametrize("captured", [False, True])
def test_optimizer_states_are_cut_too(captured):
    """Oracle: the same steps of a network in which the channels are zero and stay so."""
    paddle.seed(6)
    nets, x = [V.LeNet(), V.LeNet()], paddle.randn([4, 1, 28, 28])
    nets[1].set_state_dict(nets[0].state_dict())
    results = []
    for net, apply in zip(nets, ("lazy", "impretive")):
        adam = paddle.incubate.asp.decorate(
            paddle.optimizer.Adam(1e-3, parameters=net.parameters())
        )

        def step(x, net=net, adam=adam):
            loss = net(x).square().mean()
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        run = paddle.jit.to_static(step) if captured else step
        run(x)
        pruner = slim.L1NormFilterPruner(net, [x], opt=adam)
        plan = pruner.prune_vars(
            {net.features[3].weight.name: 0.5, net.fc[0].weight.name: 0.25}, apply=apply
        )
        if apply == "lazy":  # zeros have to stay zero
            for p, gone in plan.map_to_weights().items():
                mask = np.ones(p.shape, "float32")
                for d, rows in gone.items():
                    np.moveaxis(mask, d, 0)[rows] = 0
                p.sparsity_mask.set_value(mask)
        results.append([run(x).item() for _ in range(3)])
    assert results[0][0] > results[0][-1]
    assert np.allclose(*results, rtol=1e-4)
    moments = adam._states[nets[1].fc[0].weight].states
    assert (
        moments["moment1"].shape == moments["mask"].shape == nets[1].fc[0].weight.shape == [200, 90]
    )


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_smaller_saved_loaded_compiled(tmp_path):
    net, x = V.LeNet().eval(), paddle.randn([2, 1, 28, 28])
    whole = program_of(net, [x])
    plan = slim.L1NormFilterPruner(net, [x]).prune_vars({net.fc[0].weight.name: 0.5})
    expected = net(x).numpy()
    native = paddle.jit.to_static(net.forward, backend="native")
    assert np.allclose(native(x).numpy(), expected, atol=1e-5)
    spec = paddle.static.InputSpec([2, 1, 28, 28])
    paddle.jit.save(net, str(tmp_path / "net"), [spec])
    assert np.allclose(paddle.jit.load(str(tmp_path / "net"))(x).numpy(), expected, atol=1e-5)
    now = work_of(Axes(program_of(net, [x])).program)
    assert np.isclose(1 - now / work_of(Axes(whole).program), plan.pruned_flops)


def test_work_is_that_of_the_formulas():
    net = nn.Sequential(nn.Conv2D(2, 4, 3, groups=2), nn.Flatten(), nn.Linear(64, 5))
    work = work_of(Axes(program_of(net, [paddle.ones([3, 2, 6, 6])])).program)
    assert work == 3 * (4 * 4 * 4 * 9 + 64 * 5)


# ---- which filters ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "scores"), [(1, filters.l1_scores), (2, filters.l2_scores)])
def test_norms_rank_as_torch(n, scores):
    weight = np.random.default_rng(n).normal(size=(9, 4, 3, 3)).astype("float32")
    layer = torch.nn.Conv2d(4, 9, 3)
    layer.weight = torch.nn.Parameter(torch.tensor(weight))
    torch_prune.ln_structured(layer, "weight", amount=4, n=n, dim=0)
    gone = np.flatnonzero(layer.weight_mask.numpy().sum((1, 2, 3)) == 0)
    assert sorted(filters.least(scores(weight.reshape(9, -1)), 4 / 9)) == gone.tolist()


def test_the_geometric_median_as_scipy():
    rows = np.random.default_rng(0).normal(size=(7, 12))
    assert np.allclose(filters.fpgm_scores(rows), cdist(rows, rows).sum(0))


@pytest.mark.parametrize(
    "kind", [slim.L1NormFilterPruner, slim.L2NormFilterPruner, slim.FPGMFilterPruner]
)
def test_pruners_remove_what_scores_least(kind):
    net = V.LeNet().eval()
    weight = net.features[3].weight.numpy().copy()
    kept = np.sort(kind.scores(weight.reshape(16, -1)).argsort()[6:])
    kind(net, [1, 1, 28, 28]).prune_var(net.features[3].weight.name, [0], 0.375)
    assert np.array_equal(net.features[3].weight.numpy(), weight[kept])


# ---- how many of which layer -----------------------------------------------------------------


def test_sensitivity_and_a_budget(tmp_path):
    paddle.seed(3)
    net, x = V.LeNet().eval(), paddle.randn([16, 1, 28, 28])
    expected = net(x)
    calls = []

    def similarity():
        calls.append(0)
        return 1 / (1 + (net(x) - expected).abs().mean().item())

    file = tmp_path / "sensitivities.json"
    pruner = slim.L1NormFilterPruner(net, [x], sen_file=file)
    first, second = [*pruner.prunable()][:2]
    found = pruner.sensitive(similarity, file, [first], ratios=(0.5,))
    assert len(calls) == 2
    assert json.loads(file.read_text()) == {first: {"0.5": found[first][0.5]}}
    weight = net.features[0].weight
    before = weight.numpy().copy()
    gone = abs(before).sum((1, 2, 3)).argsort()[:3]
    with paddle.no_grad():
        weight[paddle.to_tensor(gone)] = 0.0
        net.features[0].bias[paddle.to_tensor(gone)] = 0.0
    assert np.isclose(1 - similarity(), found[first][0.5])  # the whole network's is 1
    weight.set_value(before)
    again = slim.L1NormFilterPruner(net, [x], sen_file=file)
    found = again.sensitive(similarity, file, skip_vars=[second], ratios=(0.5, 0.75))
    assert len(calls) == 3 + 6
    assert len({*found} - {second}) == len(found) == 3
    assert np.array_equal(weight.numpy(), before)
    for of, wanted in (("flops", 0.2), ("parameters", 0.5)):
        ratios, gone = again.get_ratios_by_sensitivity(wanted, of=of)
        plan = again.plan_for(ratios)
        assert wanted <= gone < wanted + 0.15
        assert gone == (plan.pruned_flops if of == "flops" else plan.pruned_parameters)
    ratios, _ = again.get_ratios_by_sensitivity(0.1, align=2)
    assert all(
        round(n * (1 - ratios[k])) % 2 == 0 for k, n in again.prunable().items() if k in ratios
    )
    with pytest.raises(ValueError, match="99% of the flops cannot go"):
        again.get_ratios_by_sensitivity(0.99)
    plan = again.sensitive_prune(0.2)
    assert 0.2 <= plan.pruned_flops < 0.35
    again.restore()
    assert np.array_equal(weight.numpy(), before)
