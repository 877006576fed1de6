"""Networks: every executor gives the same bits, files are a quarter, digits are still read."""

import re

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.executors.compiler import compiler
from minipaddle.quantization import PTQ, QAT, QuantConfig
from minipaddle.quantization import observers as o
from minipaddle.quantization.imperative.fuse_utils import fuse_layers
from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
from tests.benchmarks import quantization as digits

NATIVE = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def network():
    paddle.seed(3)
    return nn.Sequential(
        nn.Conv2D(2, 4, 3, padding=1, padding_mode="reflect"), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(4, 6, 3, padding=1, stride=2, groups=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(24, 300), nn.Linear(300, 5, bias_attr=False),
    ).eval()  # fmt: skip


def converted(activation, weight, net=None):
    ptq = PTQ(QuantConfig(activation=activation, weight=weight))
    observed = ptq.quantize(network() if net is None else net)
    with paddle.no_grad():
        observed(batch())
    return ptq.convert(observed)


def batch():
    return paddle.to_tensor(np.random.default_rng(0).normal(size=(3, 2, 8, 8)).astype("float32"))


PAIRS = {
    "largest": (o.AbsmaxObserver(), o.AbsmaxObserver()),
    "by output, 4 bits": (o.AbsmaxObserver(), o.AbsMaxChannelWiseWeightObserver(quant_bits=4)),
    "zero point": (o.MinMaxObserver(), o.AbsMaxChannelWiseWeightObserver()),
}


@NATIVE
@pytest.mark.parametrize("name", PAIRS)
def test_every_executor_gives_the_same_bits(name, tmp_path):
    net, x = converted(*PAIRS[name]), batch()
    wanted = net(x).numpy()
    assert net[6].weight.dtype == net[0].weight.dtype == "int8"
    for backend in ("interpreter", "native"):
        run = paddle.jit.to_static(lambda x: net(x), backend=backend)
        np.testing.assert_array_equal(run(x).numpy(), wanted)
    path = str(tmp_path / "net")
    paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None, 2, 8, 8])])
    np.testing.assert_array_equal(paddle.jit.load(path)(x).numpy(), wanted)


@pytest.mark.parametrize("name", PAIRS)
def test_whole_numbers_stay_near_the_floats(name):
    net, x = network(), batch()
    wanted, found = net(x).numpy(), converted(*PAIRS[name])(x).numpy()
    off = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert 0 < off < (0.4 if "4" in name else 0.03), off


def test_groups_and_weights_alone_are_dequantized():
    net = nn.Sequential(nn.Linear(24, 8)).eval()
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(3, 24)).astype("float32"))
    ptq = PTQ(QuantConfig(activation=None, weight=o.GroupWiseWeightObserver(4, group_size=6)))
    observed = ptq.quantize(net)
    observed(x)
    made = ptq.convert(observed)[0]
    w = net[0].weight.numpy().reshape(4, 6, 8)
    step = np.abs(w).max(1, keepdims=True) / 7
    q = np.rint(w / step)
    np.testing.assert_array_equal(made.weight.numpy(), q.reshape(24, 8))
    wanted = x.numpy() @ (q * step).reshape(24, 8) + net[0].bias.numpy()
    np.testing.assert_allclose(made(x).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_files_are_a_quarter(tmp_path):
    net = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 256)).eval()
    ptq = PTQ(QuantConfig(activation=o.AbsmaxObserver(), weight=o.AbsmaxObserver()))
    observed = ptq.quantize(net)
    observed(paddle.ones([1, 256]))
    made = ptq.convert(observed)
    sizes = []
    for name, each in (("large", net), ("small", made)):
        paddle.save(each.state_dict(), str(tmp_path / name))
        spec = [paddle.static.InputSpec([None, 256])]
        paddle.jit.save(each, str(tmp_path / f"{name}_static"), input_spec=spec)
        files = tmp_path / name, tmp_path / f"{name}_static.pdiparams"
        sizes.append([path.stat().st_size for path in files])
    assert all(small < 0.27 * large for large, small in zip(*sizes, strict=True)), sizes
    again = PTQ(QuantConfig(activation=o.AbsmaxObserver(), weight=o.AbsmaxObserver()))
    other = again.quantize(net)
    other(paddle.ones([1, 256]) * 2)
    other = again.convert(other)
    other.set_state_dict(paddle.load(str(tmp_path / "small")))
    x = paddle.randn([2, 256])
    np.testing.assert_array_equal(other(x).numpy(), made(x).numpy())


def test_a_training_step_with_rounding_is_a_program():
    """Scales move, weights learn: the step as a program does what eager execution does."""

    def losses(backend):
        paddle.seed(1)
        config = QuantConfig(FakeQuanterWithAbsMaxObserver(), FakeQuanterWithAbsMaxObserver())
        net = QAT(config).quantize(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
        sgd = paddle.optimizer.SGD(0.05, parameters=net.parameters())
        x, y = paddle.randn([16, 4]), paddle.randn([16, 1])

        def step(x, y):
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            return loss

        step = paddle.jit.to_static(step, backend=backend) if backend else step
        found = [step(x, y).item() for _ in range(6)]
        return [*found, net[0].activation_quanter.scales().item()]

    eager = losses(None)
    assert eager[5] < eager[0]
    np.testing.assert_allclose(losses("interpreter"), eager, rtol=1e-5)


def test_digits_are_read_on_few_bits():
    net = digits.trained(epochs=6)
    full = digits.accuracy(net)
    assert full > 93
    eight = digits.rounded(net, 8, True, o.AbsmaxObserver())
    assert digits.accuracy(eight) > full - 1.0
    three = digits.accuracy(digits.rounded(net, 3, False))
    again = digits.trained_on(net, 3, False, epochs=2)
    assert {again[0].weight.dtype, again[7].weight.dtype} == {paddle.int8}
    assert digits.accuracy(again) > max(three, full - 2.0)


def test_the_report_says_where_eight_bits_do_not_pay():
    """As measured: LeNet becomes slower, a large convolution faster."""

    def verdict(net, *shape):
        ptq = PTQ(QuantConfig(activation=o.AbsmaxObserver(), weight=o.AbsmaxObserver()))
        observed = ptq.quantize(net.eval())
        with paddle.no_grad():
            observed(paddle.ones(shape))
        found = paddle.quantization.report(observed)
        again = paddle.quantization.report(ptq.convert(observed))
        assert [row.small for row in found] == [row.small for row in again]
        return found

    lenet = verdict(paddle.vision.models.LeNet(), 1, 1, 28, 28)
    assert len(lenet) == 5
    assert lenet[0].products == 28 * 28 * 6 * 9
    assert "do not pay in time" in lenet.verdict
    assert str(lenet).endswith("weights take 0.25 of the bytes.")
    large = verdict(nn.Sequential(nn.Conv2D(64, 64, 3, padding=1)), 1, 64, 56, 56)
    assert "8 bits pay: about 3" in large.verdict
    nothing = PTQ(QuantConfig(activation=None, weight=o.AbsmaxObserver())).quantize(network())
    assert "run the observed network" in paddle.quantization.report(nothing).verdict


def test_norms_become_part_of_products():
    paddle.seed(2)
    net = nn.Sequential(
        nn.Conv2D(2, 16, 3, bias_attr=False), nn.BatchNorm2D(16), nn.ReLU(),
        nn.Conv2D(16, 16, 3, padding=1), nn.BatchNorm2D(16, weight_attr=False, bias_attr=False),
        nn.Flatten(), nn.Linear(576, 4), nn.BatchNorm1D(4),
    )  # fmt: skip
    for _ in range(3):  # statistics, and weights of norms, that are not 0 and 1
        net(batch())
    for norm in (net[1], net[7]):
        norm.weight.set_value(paddle.rand(norm.weight.shape) + 0.5)
        norm.bias.set_value(paddle.rand(norm.bias.shape))
    fused = fuse_layers(net.eval(), [["0", "1"], ["3", "4"], ["6", "7"]])
    x, wanted = batch(), net(batch()).numpy()
    assert type(net[1]) is nn.BatchNorm2D
    np.testing.assert_allclose(fused(x).numpy(), wanted, rtol=1e-4, atol=1e-4)
    small = converted(o.AbsmaxObserver(), o.AbsMaxChannelWiseWeightObserver(), fused)
    eager = small(x).numpy()
    assert np.abs(eager - wanted).max() < 0.05 * np.abs(wanted).max()
    for backend in ["interpreter", "native"][: 1 + (compiler() is not None)]:
        run = paddle.jit.to_static(lambda x: small(x), backend=backend)
        with paddle.no_grad():  # weights are packed for Winograd's tiles
            np.testing.assert_array_equal(run(x).numpy(), eager)
    for pairs, said in (([["0", "2"]], "2 (a ReLU)"), ([["0", "9"]], "no layer '9'")):
        with pytest.raises(ValueError, match=re.escape(said)):
            fuse_layers(net, pairs)
    with pytest.raises(ValueError, match="training mode"):
        fuse_layers(net.train(), [])
