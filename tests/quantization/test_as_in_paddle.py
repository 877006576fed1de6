"""Quanters, PTQ and the configuration, against what Paddle 3.3.1 gave."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn.quant.format import LinearDequanter, LinearQuanter
from minipaddle.quantization import PTQ, QAT, BaseQuanter, QuantConfig
from minipaddle.quantization.observers import AbsmaxObserver
from minipaddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

RECORD = json.loads((Path(__file__).parents[1] / "data/paddle_quantization.json").read_text())


def floats(values):
    return np.array(values, "float32")


@pytest.mark.parametrize("case", RECORD["fake"], ids=lambda case: f"{case['bits']} bits")
def test_rounding_in_training_is_paddles(case):
    quanter = FakeQuanterWithAbsMaxObserver(0.9, case["bits"])._instance(None)
    for step in case["steps"]:
        x = paddle.to_tensor(floats(step["x"]), stop_gradient=False)
        y = quanter(x)
        (y * y).sum().backward()
        np.testing.assert_allclose(quanter.scales().numpy(), step["scale"], rtol=1e-6)
        np.testing.assert_allclose(y.numpy(), step["y"], rtol=1e-6)
        np.testing.assert_allclose(x.grad.numpy(), step["grad"], rtol=1e-6)
    quanter.eval()
    y = quanter(paddle.to_tensor(floats(case["x"])))
    np.testing.assert_allclose(y.numpy(), case["y"], rtol=1e-6)


@pytest.mark.parametrize("case", RECORD["linear"], ids=lambda c: f"{c['bits']} bits, {c['axis']}")
def test_whole_numbers_are_paddles_to_the_last_bit(case):
    how = None, case["axis"], case["bits"]
    scale = paddle.to_tensor(floats(case["scale"]))
    q = LinearQuanter(scale, *how)(paddle.to_tensor(floats(case["x"])))
    assert q.dtype == "int8"
    np.testing.assert_array_equal(q.numpy(), case["q"])
    np.testing.assert_array_equal(LinearDequanter(scale, *how)(q).numpy(), floats(case["y"]))


def test_a_network_after_training_is_paddles():
    record = RECORD["ptq"]
    net = nn.Sequential(nn.Conv2D(2, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4))
    net.set_state_dict({k: floats(w) for k, w in record["weights"].items()})
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(8), weight=AbsmaxObserver(8)))
    observed = ptq.quantize(net.eval())
    x = paddle.to_tensor(floats(record["x"]))
    observed(x)
    made = ptq.convert(observed)
    scales = {k: v for k, v in made.state_dict().items() if "_scales" in k}
    assert scales.keys() == record["scales"].keys()
    for name, scale in scales.items():
        np.testing.assert_allclose(scale.numpy(), floats(record["scales"][name]), rtol=1e-6)
    layers = [word.replace("bit_length=8", "") for word in str(made).split()]
    assert layers == record["layers"]
    np.testing.assert_allclose(made(x).numpy(), record["y"], rtol=1e-4, atol=1e-5)


# ---- the configuration -----------------------------------------------------------------------


def kinds(net):
    return [type(layer).__name__ for layer in net.sublayers()]


def network():
    return nn.Sequential(
        nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 3)), nn.Linear(3, 1)
    )


def test_a_layer_comes_before_its_name_its_type_and_all():
    net, (all_, types, name, layer) = network(), map(AbsmaxObserver, (8, 7, 6, 5))
    config = QuantConfig(activation=None, weight=all_)
    config.add_type_config(nn.Linear, weight=types)
    config.add_name_config(net[2][0].full_name(), weight=name)
    config.add_layer_config([net[3]], weight=layer)
    made = PTQ(config).quantize(net)
    assert kinds(made).count("QuantedLinear") == 3
    bits = [each.weight_quanter.bit_length() for each in (made[0], made[2][0], made[3])]
    assert bits == [7, 6, 5]
    assert kinds(net) == kinds(network()), "the network that was given stays"


def test_what_holds_for_a_layer_holds_for_those_in_it():
    net = network()
    config = QuantConfig(activation=None, weight=None)
    config.add_layer_config(net[2], weight=AbsmaxObserver())
    assert kinds(PTQ(config).quantize(net)).count("QuantedLinear") == 1


def test_layers_of_ones_own_and_stubs():
    class Halved(nn.Layer):
        def __init__(self, layer, config):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x) / 2

    config = QuantConfig(activation=FakeQuanterWithAbsMaxObserver(), weight=None)
    config.add_qat_layer_mapping(nn.Linear, Halved)
    made = QAT(config).quantize(nn.Sequential(nn.quant.Stub(), nn.Linear(2, 1))).eval()
    assert kinds(made)[0] == "QuanterStub"
    assert isinstance(made[0]._observer, BaseQuanter)
    x = paddle.to_tensor([[0.3, 0.4]])
    np.testing.assert_allclose(made(x).numpy(), made[1].layer(made[0](x)).numpy() / 2)


def test_modes_are_asked_for_by_name():
    config = QuantConfig(activation=None, weight=AbsmaxObserver())
    with pytest.raises(ValueError, match=r"(?s)training mode.*model.eval\(\)"):
        PTQ(config).quantize(network(), inplace=True)
    with pytest.raises(ValueError, match=r"(?s)evaluation mode.*model.train\(\)"):
        QAT(config).quantize(network().eval())


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda: paddle.jit.transform.quant_aware_train, "paddle.jit.transform; paddle.quant"),
        (lambda: paddle.quantization.quant_aware, r"quant_aware; paddle\.quantization\.QAT"),
        (lambda: paddle.quantization.QuantConfg, r"nearest name is .*QuantConfig"),
    ],
)
def test_names_that_never_existed_answer_with_the_real_one(ask, name):
    with pytest.raises(AttributeError, match=name):
        ask()


def test_parameters_and_modules_that_never_existed_answer_with_the_real_one():
    for never, real in (("activate_quantizer", "activation="), ("weight_quantizer", "weight=")):
        with pytest.raises(TypeError, match=rf"QuantConfig\({never}=\); the parameter is {real}"):
            QuantConfig(**{never: AbsmaxObserver()})
    with pytest.raises(ImportError, match=r"paddle\.jit\.transform; paddle\.quantization\.QAT"):
        importlib.import_module("minipaddle.jit.transform.quant_aware_train")
    x = paddle.to_tensor([3.0], stop_gradient=False)
    assert paddle.autograd.grad is paddle.grad  # Paddle 3.3 has both
    assert paddle.grad(x * x, x)[0].item() == 6.0


@pytest.mark.parametrize("factory", [8, AbsmaxObserver])
def test_a_factory_that_is_none_is_refused(factory):
    with pytest.raises(TypeError, match=r"weight=.*\n.*AbsmaxObserver\(quant_bits=8\)"):
        QuantConfig(activation=None, weight=factory)


def test_a_layer_without_data_stays_and_is_named():
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    observed = ptq.quantize(nn.Sequential(nn.Linear(2, 3)))
    with pytest.warns(UserWarning, match=r"^0 \(a QuantedLinear\) saw no data"):
        made = ptq.convert(observed)
    assert made[0].weight.dtype == "float32"


def test_a_layer_is_converted_once():
    ptq = PTQ(QuantConfig(activation=None, weight=AbsmaxObserver()))
    observed = ptq.quantize(nn.Sequential(nn.Linear(2, 3)))
    observed(paddle.ones([1, 2]))
    made = ptq.convert(observed)
    assert ptq.convert(made)[0].weight.dtype == "int8"
    with pytest.raises(ValueError, match="QuantedLinear is converted already"):
        made[0]._convert()
