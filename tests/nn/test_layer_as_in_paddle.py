"""Names of parts, plain tensors as buffers, gradients of gradients: as Paddle 3.3.1 answered."""

import copy

import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.static import InputSpec


class Plain(nn.Layer):
    def __init__(self):
        super().__init__()
        self.t = paddle.ones([2])

    def forward(self, x):
        self.h = x * self.t
        return self.h


def buffers(layer) -> list[str]:
    return [name for name, _ in layer.named_buffers()]


def test_a_layer_may_have_a_dot_in_its_name(tmp_path):
    layer = nn.Sequential()
    layer.add_sublayer("a.b", nn.Linear(1, 1))
    assert list(layer.state_dict()) == ["a.b.weight", "a.b.bias"]
    assert getattr(layer, "a.b") is layer.sublayers()[0]
    state = {"a.b.weight": paddle.full([1, 1], 7.0), "a.b.bias": paddle.ones([1])}
    assert layer.set_state_dict(state) == ([], [])
    paddle.jit.save(layer, str(tmp_path / "net"), input_spec=[InputSpec([None, 1])])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    assert list(loaded.state_dict()) == ["a.b.weight", "a.b.bias"]
    assert loaded(paddle.ones([1, 1])).item() == 8.0
    for register in (layer.add_parameter, layer.register_buffer):
        with pytest.raises(KeyError, match=r"has no '\.'"):
            register("c.d", layer[0].weight)


def test_a_plain_tensor_is_a_buffer_that_is_not_saved():
    layer = Plain()
    assert (list(layer.state_dict()), buffers(layer)) == ([], ["t"])
    assert layer.to(dtype="float64").t.dtype == paddle.float64
    assert buffers(copy.deepcopy(layer)) == ["t"]
    layer.t = paddle.zeros([3])
    assert layer.t.shape == [3]
    with pytest.raises(TypeError, match=r"assignment of int to Plain\.t"):
        layer.t = 3
    layer.t = layer.create_parameter([1])
    assert (list(layer.state_dict()), buffers(layer)) == (["t"], [])


def test_a_tensor_takes_the_place_of_another_value():
    layer = Plain()
    for before in (None, 3):
        layer.other = before
        layer.other = paddle.ones([1])
        assert "other" in buffers(layer)
        assert layer.other.tolist() == [1.0]
        del layer.other
    layer.register_buffer("kept", paddle.ones([1]))
    layer.kept = paddle.zeros([1])
    assert list(layer.state_dict()) == ["kept"]


@pytest.mark.parametrize("known", [False, True])
def test_a_tensor_that_forward_assigns(known):
    found = []
    for convert in (lambda layer: layer, paddle.jit.to_static):
        layer = Plain()
        if known:
            layer.h = None
        convert(layer)
        for size in (2, 2, 2, 2):
            layer(paddle.full([size], 3.0))
        found.append(
            (layer.h.tolist(), buffers(layer), "h" in vars(layer), list(layer.state_dict()))
        )
    assert found == [([3.0, 3.0], ["t", "h"], False, [])] * 2


def test_a_gradient_wants_one_itself():
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    for _ in range(2):
        (w * w).sum().backward()
        assert w.grad.stop_gradient is False
        assert (w.grad * 2).stop_gradient is False
        assert w.grad.is_leaf
    w.clear_grad()
    assert w.grad.stop_gradient is False
    y = (w * w).sum()
    assert paddle.grad(y, [w])[0].stop_gradient is True


def test_a_static_function_shows_its_inputs_and_checks_its_mode():
    def scaled(x, y=2):
        return x * y, x.sum()

    static = paddle.jit.to_static(scaled)
    with pytest.raises(ValueError, match="has no program yet"):
        static.inputs  # noqa: B018
    static(paddle.ones([8]))
    assert [(s.name, s.shape) for s in static.inputs] == [("x", (8,))]
    assert [(s.name, s.shape) for s in static.outputs] == [("output_0", (8,)), ("output_1", ())]
    assert (static.train(), static.eval(), static.class_instance) == (None, None, None)
    layer = paddle.jit.to_static(Plain())
    assert layer.forward.class_instance is layer
    assert layer.forward.train() is None
    with pytest.raises(RuntimeError, match=r"layer.eval\(\) sets the mode"):
        layer.forward.eval()
    layer.eval()
    assert layer.forward.eval() is None
    with pytest.raises(RuntimeError, match=r"layer.train\(\) sets the mode"):
        layer.forward.train()
