"""Sequential, LayerList, ParameterList, LayerDict."""

from collections import OrderedDict

import pytest

import minipaddle as paddle
from minipaddle import nn


def kinds(layers):
    return [type(layer).__name__ for layer in layers]


def parameter(value):
    return paddle.create_parameter(
        [1], "float32", default_initializer=nn.initializer.Constant(value)
    )


# ---- Sequential --------------------------------------------------------------------------------


def test_sequential_applies_in_order():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    x = paddle.ones([4, 2])
    assert (net(x) == net[2](net[1](net[0](x)))).all()
    assert len(net) == 3
    assert kinds(net) == ["Linear", "ReLU", "Linear"]


@pytest.mark.parametrize(
    "net",
    [
        nn.Sequential(("a", nn.Tanh()), ("b", nn.ReLU())),
        nn.Sequential(OrderedDict(a=nn.Tanh(), b=nn.ReLU())),
    ],
)
def test_sequential_with_names(net):
    assert list(net._sub_layers) == ["a", "b"]
    assert kinds([net["a"], net.b, net[-1]]) == ["Tanh", "ReLU", "ReLU"]
    assert list(net[:1]._sub_layers) == ["a"]


def test_sequential_from_a_list():
    assert kinds(nn.Sequential([nn.Tanh(), nn.ReLU()])) == ["Tanh", "ReLU"]


def test_sequential_can_be_changed():
    net = nn.Sequential(nn.Tanh())
    assert net.append(nn.ReLU()) is net
    net.extend([nn.ELU(), nn.GELU()])
    net.insert(1, nn.Silu())
    assert kinds(net) == ["Tanh", "Silu", "ReLU", "ELU", "GELU"]
    net[1] = nn.Sigmoid()
    net["0"] = nn.Mish()
    del net[2]
    assert kinds(net) == ["Mish", "Sigmoid", "ELU", "GELU"]
    net.append(nn.CELU())  # the name 4 is taken: 5 is the next
    assert list(net._sub_layers) == ["0", "1", "3", "4", "5"]
    del net["1"]
    assert len(net) == 4


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda net: net[5], IndexError, "index 5 is out of range for a Sequential of 1"),
        (lambda net: net[None], TypeError, "an int, a slice or a name"),
        (lambda net: net["no"], KeyError, "no"),
        (lambda net: net.append(3), TypeError, "int"),
        (lambda net: nn.LayerList([nn.ReLU()])[1], IndexError, "LayerList of 1"),
        (lambda net: nn.LayerList([3]), TypeError, "int"),
        (lambda net: nn.LayerList().insert(1, nn.ReLU()), IndexError, "out of range"),
        (lambda net: nn.LayerList().pop(), IndexError, "out of range"),
        (lambda net: nn.ParameterList([nn.ReLU()]), TypeError, "ReLU"),
        (lambda net: nn.LayerDict(["ab", "c"]), TypeError, "pairs"),
        (lambda net: nn.LayerDict()["no"], KeyError, "no"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call(nn.Sequential(nn.ReLU()))


# ---- lists -------------------------------------------------------------------------------------


def test_layer_list():
    layers = nn.LayerList([nn.Linear(1, 1), nn.ReLU()])
    layers.append(nn.Tanh()).extend([nn.ELU()])
    layers.insert(0, nn.GELU())
    layers.insert(5, nn.Silu())
    assert kinds(layers) == ["GELU", "Linear", "ReLU", "Tanh", "ELU", "Silu"]
    assert isinstance(layers[1:3], nn.LayerList)
    assert kinds(layers[1:3]) == ["Linear", "ReLU"]
    layers[-1] = nn.Mish()
    assert kinds([layers.pop(), layers.pop(0)]) == ["Mish", "GELU"]
    del layers[1:3]
    assert kinds(layers) == ["Linear", "ELU"]
    assert list(layers.state_dict()) == ["0.weight", "0.bias"]
    assert "0" not in dir(layers)
    with pytest.raises(NotImplementedError):
        layers(1)


def test_parameter_list():
    parameters = nn.ParameterList([parameter(1.0), parameter(2.0)])
    parameters.append(parameter(3.0)).extend([parameter(4.0)])
    parameters.insert(0, parameter(0.0))
    assert [p.item() for p in parameters] == [0.0, 1.0, 2.0, 3.0, 4.0]
    parameters[1] = parameter(9.0)
    del parameters[0]
    assert [p.item() for p in parameters[:2]] == [9.0, 2.0]
    assert len(parameters) == 4
    assert list(parameters.state_dict()) == ["0", "1", "2", "3"]
    assert repr(parameters) == "ParameterList()"


# ---- dict --------------------------------------------------------------------------------------


def test_layer_dict():
    layers = nn.LayerDict({"a": nn.ReLU()})
    layers["b"] = nn.Linear(1, 1)
    layers.update([("c", nn.Tanh()), ("a", nn.ELU())])
    layers.update(nn.LayerDict({"d": nn.GELU()}))
    assert list(layers) == list(layers.keys()) == ["a", "b", "c", "d"]
    assert kinds(layers.values()) == ["ELU", "Linear", "Tanh", "GELU"]
    assert kinds([layers.pop("d")]) == ["GELU"]
    del layers["c"]
    assert "c" not in layers
    assert len(layers) == 2
    assert dict(layers.items())["b"] is layers["b"]
    assert list(layers.state_dict()) == ["b.weight", "b.bias"]
    layers.clear()
    assert len(nn.LayerDict()) == len(layers) == 0
