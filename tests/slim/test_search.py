"""Distillation and search: losses as PyTorch has them, slices that are the networks they become."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import minipaddle as paddle
from minipaddle import nn, slim
from minipaddle.slim import dist
from tests.benchmarks import pareto
from tests.benchmarks.quantization import accuracy, digits

RNG = np.random.default_rng(0)


def pair(*shape):
    """Two arrays as tensors of ours and of PyTorch."""
    arrays = [RNG.normal(size=shape).astype("float32") for _ in range(2)]
    ours = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
    return ours, [torch.tensor(a, requires_grad=True) for a in arrays]


def at(x):
    """The authors' map."""
    return TF.normalize(x.pow(2).mean(1).view(x.shape[0], -1))


LOSSES = {
    "soft_label": (
        lambda t, s: dist.soft_label(t, s, 3.0, 2.0),
        lambda t, s: TF.cross_entropy(s / 2, TF.softmax(t / 3, 1)),
        (5, 7),
    ),
    "l2": (dist.l2, lambda t, s: TF.mse_loss(s, t), (2, 3, 4, 4)),
    "attention": (
        dist.attention_transfer,
        lambda t, s: (at(s) - at(t)).pow(2).mean(),
        (2, 3, 4, 5),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_as_torch(name):
    ours, theirs, shape = LOSSES[name]
    (t, s), (torch_t, torch_s) = pair(*shape)
    loss, expected = ours(t, s), theirs(torch_t.detach(), torch_s)
    loss.backward()
    expected.backward()
    assert np.isclose(loss.item(), expected.item(), rtol=1e-5)
    assert np.allclose(s.grad.numpy(), torch_s.grad.numpy(), atol=1e-6)
    assert t.grad is None  # a teacher is not taught


def test_hinton_gradient_is_kept_by_t_squared():
    """For large T it is that of half the squared difference of centred scores, over classes."""
    (t, s), _ = pair(4, 6)
    (dist.soft_label(t, s, 100.0, 100.0) * 100.0**2).backward()
    centred = lambda x: x.numpy() - x.numpy().mean(1, keepdims=True)
    assert np.allclose(s.grad.numpy(), (centred(s) - centred(t)) / 6 / 4, atol=2e-3)


@pytest.mark.parametrize("kind", ["linear", "linear+bn", "1x1conv", "3x3conv+bn"])
def test_a_student_narrower_than_the_teacher(kind):
    shape = (4,) if kind.startswith("linear") else (4, 5, 5)
    teacher = paddle.randn([3, 6, *shape[1:]])
    student = paddle.randn([3, *shape])
    with pytest.raises(ValueError, match="ShapeAlign"):
        dist.l2(teacher, student)
    align = dist.ShapeAlign(kind, 4, 6)
    dist.l2(teacher, align(student)).backward()
    assert all(p.grad is not None for p in align.parameters() if p.trainable)
    with pytest.raises(ValueError, match="align_type"):
        dist.ShapeAlign("5x5conv", 4, 6)


@pytest.mark.parametrize("captured", [False, True])
def test_features_of_both(captured):
    nets = [nn.Sequential(nn.Linear(3, n), nn.ReLU(), nn.Linear(n, 2)) for n in (8, 4)]
    kept = [dist.Features(net, ["0"]) for net in nets]
    align = dist.ShapeAlign("linear", 4, 8)

    def loss(x):
        nets[0](x)
        nets[1](x)
        return dist.l2(kept[0]["0"], align(kept[1]["0"]))

    x = paddle.randn([5, 3])
    found = (paddle.jit.to_static(loss) if captured else loss)(x)
    expected = dist.l2(nets[0][0](x), align(nets[1][0](x)))
    assert np.isclose(found.item(), expected.item(), rtol=1e-5)
    for features in kept:
        features.remove()
        features.values.clear()
    nets[0](x)
    assert not kept[0].values
    with pytest.raises(ValueError, match="no layer 'best'"):
        dist.Features(nets[0], ["best"])


def test_distill_adds_the_losses_of_its_configuration():
    """By hand the same: losses, weights, temperatures, an alignment that is trained too."""
    teacher, student = (nn.Sequential(nn.Linear(3, n), nn.ReLU(), nn.Linear(n, 4)) for n in (8, 5))
    align = {"align_type": "linear", "in_channel": 5, "out_channel": 8}
    layers = [
        {"layers_name": ["0", "0"], "loss_function": "DistanceLoss", "align_params": align},
        {"layers_name": ["2", "2"], "loss_function": "CELoss", "temperature": 3.0, "weight": 0.5},
        {"layers_name": ["2", "2"], "loss_function": "DMLLoss", "act": "softmax"},
        {"layers_name": ["2", "2"], "loss_function": "DistanceLoss", "mode": "l1"},
    ]
    distill = slim.Distill([{"layers": layers}], student, [teacher])
    x = paddle.randn([6, 3])
    loss, own, wanted = distill(x)
    assert np.array_equal(wanted.numpy(), teacher(x).numpy())
    t, s = torch.tensor(wanted.numpy()), torch.tensor(own.numpy())
    kl = lambda a, b: TF.kl_div(TF.log_softmax(a, 1), TF.softmax(b, 1), reduction="batchmean")
    expected = dist.l2(teacher[0](x), distill.aligns[0](student[0](x))).item()
    expected += 0.5 * TF.cross_entropy(s / 3, TF.softmax(t / 3, 1)).item()
    expected += (kl(s, t) + kl(t, s)).item() / 2 + TF.l1_loss(s, t).item()
    assert np.isclose(loss.item(), expected, rtol=1e-5)
    loss.backward()
    assert all(p.grad is not None for p in distill.parameters())
    assert len(distill.parameters()) == 4 + 2
    assert all(p.grad is None for p in teacher.parameters())


def test_networks_learn_from_each_other():
    """Each gradient is that of its own cross entropy and divergence: the others are constants."""
    paddle.seed(0)
    nets, x, y = [nn.Linear(4, 3) for _ in range(3)], paddle.randn([9, 4]), paddle.arange(9) % 3
    dml = slim.DML(nets)
    scores = [torch.tensor(s.numpy(), requires_grad=True) for s in dml(x)]
    logs, p = [TF.log_softmax(s, 1) for s in scores], [TF.softmax(s, 1).detach() for s in scores]
    kl = lambda i, j: TF.kl_div(logs[i], p[j], reduction="batchmean")
    expected = [
        TF.nll_loss(logs[i], torch.tensor(y.numpy()))
        + sum(kl(i, j) for j in range(3) if j != i) / 2
        for i in range(3)
    ]
    losses = dml.loss(dml(x), y)
    for found, wanted, net, s in zip(losses, expected, nets, scores, strict=True):
        assert np.isclose(found.item(), wanted.item(), rtol=1e-5)
        wanted.backward()
        found.backward()
        assert np.allclose(net.bias.grad.numpy(), s.grad.sum(0).numpy(), atol=1e-6)
        net.clear_gradients()
    sgds = dml.opt([paddle.optimizer.SGD(0.5, parameters=net.parameters()) for net in nets])
    sgds.minimize(dml.loss(dml(x), y))
    assert all(now.item() < then.item() for now, then in zip(dml.loss(dml(x), y), losses))


NETS = [nn.Linear(2, 2), nn.Linear(2, 2)]


def configured(names=("student_0", "teacher_0"), **layer):
    layer = {"layers_name": ["0", "0"], "loss_function": "CELoss"} | layer
    nets = [nn.Sequential(net) for net in NETS]
    return slim.Distill([{"model_name_pairs": [[*names]], "layers": [layer]}], *nets)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: slim.Distill("distill.yaml", *NETS), NotImplementedError, "a list of dicts"),
        (lambda: configured(names=("student_1", "teacher_0")), ValueError, "no model 'student_1'"),
        (lambda: configured(layers_name=["0", "best"]), ValueError, "no layer 'best'"),
        (lambda: configured(loss_function="RkdDistance"), NotImplementedError, "RkdDistance"),
        (lambda: configured(io=["input", "input"]), NotImplementedError, "'io' of a layer"),
        (lambda: slim.DML(NETS).opt([]), ValueError, "0 optimizers"),
        (lambda: dist.Distill, AttributeError, r"it is paddle\.slim\.Distill"),
        (lambda: slim.AdaptorBase, AttributeError, "paddle.slim.Distill takes pairs"),
        (lambda: dist.merge, AttributeError, "no programs are merged"),
    ],
)
def test_what_distillation_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- real digits -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def teacher():
    paddle.seed(1)
    return pareto.fit(pareto.student(), 6, 4e-3)


def test_a_teacher_helps_where_labels_are_few(teacher, monkeypatch):
    monkeypatch.setattr(pareto, "EPOCHS", 3)
    paddle.seed(2)
    alone = accuracy(pareto.fit(pareto.student(), 60, labels_of=100))
    helped = accuracy(pareto.distilled(teacher, 100))
    assert accuracy(teacher) > 93
    assert helped > alone + 5


def test_removing_half_of_the_work_costs_little(teacher):
    paddle.seed(3)
    net = pareto.narrow(teacher, 0.5)
    assert sum(p.size for p in net.parameters()) < 0.6 * sum(p.size for p in teacher.parameters())
    assert accuracy(net) > accuracy(teacher) - 4


# ---- a supernet ------------------------------------------------------------------------------


class Residual(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2D(1, 8, 3, padding=1)
        self.blocks = nn.Sequential(*(self.block() for _ in range(2)))
        self.last = nn.Linear(8, 10)

    @staticmethod
    def block():
        return Skip(nn.Conv2D(8, 12, 1), nn.ReLU(), nn.Conv2D(12, 12, 3, padding=1, groups=12),
                    nn.Conv2D(12, 8, 1))  # fmt: skip

    def forward(self, x):
        return self.last(self.blocks(self.stem(x)).mean([2, 3]))


class Skip(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


@pytest.fixture
def supernet():
    paddle.seed(5)
    return slim.Supernet(Residual(), [1, 1, 8, 8], (0.5, 0.75), ["blocks.1"])


def test_a_slice_is_the_network_it_becomes(supernet):
    x = digits("test")[0][:4]
    whole, rng = supernet(x).numpy(), np.random.default_rng(1)
    for config in (supernet.smallest, *(supernet.sample(rng) for _ in range(4))):
        supernet.set_net_config(config)
        small = supernet.export(config)
        assert np.allclose(small(x).numpy(), supernet(x).numpy(), atol=1e-6)
        assert paddle.flops(small, [1, 1, 8, 8]) <= paddle.flops(supernet.model, [1, 1, 8, 8])
    supernet.set_net_config(supernet.smallest)
    small = supernet.export(supernet.smallest)
    assert small.stem.weight.shape == [4, 1, 3, 3]
    assert small.blocks[0][2].weight.shape == [6, 1, 3, 3]
    assert not [*small.blocks[1].parameters()]
    supernet.set_net_config({})
    assert np.array_equal(supernet(x).numpy(), whole)
    assert len(supernet.model.blocks[1].parameters()) == 6


def test_gradients_reach_the_common_weights(supernet):
    x = digits("test")[0][:4]
    supernet.set_net_config(supernet.smallest)
    supernet(x).square().mean().backward()
    g = supernet.model.stem.weight.grad.numpy()
    assert sorted((abs(g).sum((1, 2, 3)) > 0).tolist()) == [False] * 4 + [True] * 4
    assert supernet.model.blocks[1][0].weight.grad is None
    kept = abs(supernet.model.stem.weight.numpy()).sum((1, 2, 3)).argsort()[4:]
    assert (abs(g[kept]).sum((1, 2, 3)) > 0).all()  # the large ones stay
    small = supernet.export(supernet.smallest)
    small(x).square().mean().backward()
    assert np.allclose(small.stem.weight.grad.numpy(), g[np.sort(kept)], atol=1e-7)


def test_work_counts_widths_and_depth(supernet):
    # 64 places: stem 9·8, a block 8·12 + 9·12 + 12·8, at the end 8·10 once
    block = lambda c, w: 64 * (2 * c * w + 9 * w)
    work = lambda c, widths: 64 * 9 * c + sum(block(c, w) for w in widths) + 10 * c
    assert supernet.work(supernet.space.default) == 1
    assert np.isclose(supernet.work(supernet.smallest), work(4, [6]) / work(8, [12, 12]))


def test_evolution_finds_the_best_that_fits(supernet):
    """The score is known here, so that every configuration can be tried."""
    ofa, budget = slim.OFA(supernet), 0.6
    value = lambda c: sum(v * (k + 1) for k, v in enumerate(c.values()))
    score = lambda: value(supernet.get_current_config())
    every = [c for c in supernet.space if supernet.work(c) <= budget]
    tried = ofa.search(score, lambda c: supernet.work(c) <= budget, generations=8)
    assert tried[0][1] == max(map(value, every))
    assert len(tried) < len([*supernet.space])
    assert supernet.get_current_config() == supernet.space.default
    assert all(supernet.work(c) <= budget and value(c) == v for c, v in tried)


def test_training_makes_small_ones_good(teacher):
    paddle.seed(6)
    ofa = slim.OFA(slim.Supernet(pareto.student(), [1, 1, 8, 8], (0.5,)), teacher)
    loss = lambda net, x, y: pareto.Backward(net, x, y)
    pareto.fit(ofa, 3, 4e-3, loss)
    for config, least in (({}, 85), (ofa.supernet.smallest, 65)):
        ofa.supernet.set_net_config(config)
        assert accuracy(ofa) > least


def test_wrong_configurations_are_named(supernet):
    for config, says in (({"w": 0.5}, "w: 0.5"), ({"blocks.1": 3}, "blocks.1: 3")):
        with pytest.raises(ValueError, match=says):
            supernet.set_net_config(config)
    with pytest.raises(ValueError, match="no layer 'x'"):
        slim.Supernet(Residual(), [1, 1, 8, 8], depth=["x"])
    with pytest.raises(ValueError, match="up to 1"):
        slim.Supernet(Residual(), [1, 1, 8, 8], (0.0,))
    with pytest.raises(NotImplementedError, match="export"):
        paddle.jit.to_static(supernet.forward)(paddle.ones([1, 1, 8, 8]))
