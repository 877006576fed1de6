"""`Layer`: what becomes a part of it, how it is found, called, saved and cast."""

import copy
import gc
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.core.dispatch import current
from minipaddle.nn import names
from minipaddle.nn.layer.tree import path_of


class Net(nn.Layer):
    """A part of every kind: parameters, buffers, sublayers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = self.create_parameter([3])
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.register_buffer("count", paddle.zeros([1]))
        self.register_buffer("scratch", paddle.zeros([1]), persistable=False)

    def forward(self, x):
        return self.inner(self.first(x) * self.scale)


def named(pairs):
    return [name for name, _ in pairs]


# ---- parts -------------------------------------------------------------------------------------


def test_walks():
    net = Net()
    assert named(net.named_parameters()) == [
        "scale", "first.weight", "first.bias", "inner.0.weight", "inner.0.bias"
    ]  # fmt: skip
    assert named(net.named_parameters(prefix="net", include_sublayers=False)) == ["net.scale"]
    assert named(net.named_buffers()) == ["count", "scratch"]
    assert named(net.named_sublayers()) == ["first", "inner", "inner.0", "inner.1"]
    assert named(net.named_sublayers(prefix="net", include_self=True))[:2] == ["net", "net.first"]
    assert net.sublayers(include_self=True)[0] is net
    assert list(net.children()) == [net.first, net.inner]
    assert named(net.named_children()) == ["first", "inner"]
    assert len(net.parameters()) == 5
    assert len(net.parameters(include_sublayers=False)) == 1
    assert len(net.buffers()) == 2


def test_a_shared_part_is_visited_once():
    net = Net()
    net.again, net.tied = net.first, net.scale
    assert named(net.named_children()) == ["first", "inner"]
    assert "tied" not in named(net.named_parameters())
    assert "tied" in named(net.named_parameters(remove_duplicate=False))
    assert "again" in named(net.named_sublayers(remove_duplicate=False))
    assert "again.weight" in net.state_dict()


def test_sublayers_left_out():
    net = Net()
    assert named(net.named_sublayers(layers_set={net.inner, net.inner[0]})) == ["first", "inner.1"]


def test_assignment_moves_a_name_between_kinds():
    layer = nn.Layer()
    layer.part = 3
    layer.part = nn.Linear(1, 1)
    assert "part" in layer._sub_layers
    assert "part" not in layer.__dict__
    layer.part = None
    assert layer.part is None
    layer.part = layer.create_parameter([1])
    assert "part" in layer._parameters
    assert "part" not in layer._sub_layers
    del layer.part
    assert not hasattr(layer, "part")
    layer.plain = 1
    del layer.plain
    assert not hasattr(layer, "plain")


def test_a_registered_buffer_is_replaced_and_deleted():
    layer = nn.Layer()
    layer.register_buffer("state", paddle.ones([1]))
    layer.state = paddle.zeros([1])
    assert layer.buffers()[0].tolist() == [0.0]
    del layer.state
    assert layer.buffers() == []
    layer.register_buffer("state", None)
    assert layer.buffers() == []


def test_dir_lists_parts():
    assert {"first", "scale", "count", "forward"} <= set(dir(Net()))


def test_persistable_can_be_changed():
    layer = nn.Layer()
    layer.register_buffer("x", paddle.ones([1]), persistable=False)
    assert "x" not in layer.state_dict()
    assert "x" in layer.to_static_state_dict()
    layer.register_buffer("x", paddle.ones([1]))
    assert "x" in layer.state_dict()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda n: n.add_parameter("", None), KeyError, "not empty"),
        (lambda n: n.add_parameter("a.b", None), KeyError, "dots separate"),
        (lambda n: n.add_parameter(3, None), TypeError, "a string"),
        (lambda n: n.add_parameter("p", 3), TypeError, "int"),
        (lambda n: n.add_parameter("inner", None), KeyError, "another attribute"),
        (lambda n: n.add_sublayer("p", 3), TypeError, "int"),
        (lambda n: n.register_buffer("b", 3), TypeError, "int"),
        (lambda n: n.register_buffer("forward", None), KeyError, "another attribute"),
        (lambda n: setattr(n, "scale", 3), TypeError, "Parameter"),
        (lambda n: setattr(n, "scale", paddle.ones([3])), TypeError, "set_value"),
        (lambda n: setattr(n, "inner", paddle.ones([3])), TypeError, "Layer"),
        (lambda n: setattr(n, "count", 3), TypeError, "Tensor"),
        (lambda n: n.nothing, AttributeError, "'Net' object has no attribute 'nothing'"),
        (lambda n: delattr(n, "nothing"), AttributeError, "nothing"),
        (lambda n: n.create_parameter([1], attr=3), TypeError, "ParamAttr"),
        (lambda n: nn.Layer()(1), NotImplementedError, "def forward"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call(Net())


def test_forgotten_super_init():
    class Forgets(nn.Layer):
        def __init__(self, value):
            self.part = value

    for value in (nn.Linear(1, 1), paddle.create_parameter([1], "float32")):
        with pytest.raises(ValueError, match="super"):
            Forgets(value)
    with pytest.raises(ValueError, match="super"):
        Forgets(1).register_buffer("x", None)
    with pytest.raises(AttributeError, match="super"):
        Forgets(1).nothing  # noqa: B018


def test_a_plain_attribute_before_super_init():
    class Early(nn.Layer):
        def __init__(self):
            self.size = 3
            super().__init__()

    assert Early().size == 3


# ---- creating parameters -----------------------------------------------------------------------


def test_create_parameter():
    layer = nn.Layer()
    weight, bias = layer.create_parameter([50, 50]), layer.create_parameter([2], is_bias=True)
    bound = (6 / 100) ** 0.5
    assert 0.9 * bound < weight.abs().max().item() <= bound
    assert bias.tolist() == [0.0, 0.0]
    assert layer.create_parameter([2], attr=False) is None
    assert layer.parameters() == []
    assert layer.create_parameter([1], dtype="float64").dtype == paddle.float64
    drawn = layer.create_parameter([2], default_initializer=nn.initializer.Constant(2.0))
    assert drawn.tolist() == [2.0, 2.0]


def test_param_attr():
    decay = paddle.regularizer.L2Decay(0.1)
    attr = paddle.ParamAttr(
        "mine", nn.initializer.Constant(3.0), 0.5, decay, False, need_clip=False
    )
    p = nn.Linear(1, 1, weight_attr=attr).weight
    assert (p.name, p.item(), p.trainable, p.stop_gradient) == ("mine", 3.0, False, True)
    assert (p.optimize_attr, p.regularizer, p.need_clip) == ({"learning_rate": 0.5}, decay, False)
    assert "learning_rate=0.5" in repr(attr)
    layer = nn.Layer()
    assert layer.create_parameter([1], attr="named").name == "named"
    assert layer.create_parameter([1], attr=nn.initializer.Constant(4.0)).item() == 4.0
    assert layer.create_parameter([1], attr=decay).regularizer is decay
    with pytest.raises(TypeError, match="initializer"):
        paddle.ParamAttr(initializer=3)


def test_names():
    with names.guard():
        layer, other = nn.Linear(1, 1), nn.Linear(1, 1)
        assert layer.full_name() == "linear_0"
        assert (layer.weight.name, layer.bias.name) == ("linear_0.w_0", "linear_0.b_0")
        assert other.weight.name == "linear_1.w_0"
        assert nn.Layer("block").full_name() == "block_0"
        assert nn.LSTMCell(1, 1).weight_hh.name == "lstm_cell_0.w_1"
        assert nn.Layer("Conv2DTranspose").full_name() == "conv2d_transpose_0"


def test_default_dtype():
    paddle.set_default_dtype("float64")
    try:
        layer = nn.Linear(1, 1)
    finally:
        paddle.set_default_dtype("float32")
    assert layer.weight.dtype == paddle.float64
    assert "float64" in repr(layer)


# ---- calling -----------------------------------------------------------------------------------


def test_hooks():
    layer, seen = nn.Linear(1, 1), []
    before = layer.register_forward_pre_hook(lambda _, inputs: seen.append("pre"))
    double = layer.register_forward_pre_hook(lambda _, inputs: inputs[0] * 2)
    after = layer.register_forward_post_hook(lambda _, inputs, out: seen.append(inputs[0].item()))
    first = layer.register_forward_post_hook(
        lambda _, inputs, out: seen.append("first"), prepend=True
    )
    negate = layer.register_forward_hook(lambda _, inputs, out: -out)
    y = layer(paddle.ones([1, 1]))
    assert seen == ["pre", "first", 2.0]
    for handle in (before, double, after, first, negate):
        handle.remove()
        handle.remove()
    np.testing.assert_allclose(y.item(), -2 * layer(paddle.ones([1, 1])).item(), rtol=1e-6)
    assert seen == ["pre", "first", 2.0]


def test_hooks_with_keywords():
    class Scale(nn.Layer):
        def forward(self, x, by=1):
            return x * by

    layer, seen = Scale(), []
    layer.register_forward_pre_hook(lambda _, a, k: (a, {"by": 5}), with_kwargs=True)
    layer.register_forward_pre_hook(lambda _, a, k: seen.append(k), with_kwargs=True)
    layer.register_forward_post_hook(lambda _, a, k, y: y + k["by"], with_kwargs=True)
    assert layer(paddle.ones([]), by=2).item() == 10.0
    assert seen == [{"by": 5}]


def test_a_hook_that_is_always_called():
    class Breaks(nn.Layer):
        def forward(self, x):
            raise ZeroDivisionError

    layer, seen = Breaks(), []
    layer.register_forward_post_hook(lambda *a: seen.append("only after"))
    layer.register_forward_post_hook(lambda _, a, y: seen.append(y), always_call=True)
    with pytest.raises(ZeroDivisionError):
        layer(1)
    assert seen == [None]


def test_records_know_their_layer():
    net = Net()
    y = net(paddle.ones([1, 2]))
    assert path_of(y.record.scope) == "Net.inner.1"
    assert (y * 2).record.scope is None
    assert current.top.scope is None


def test_the_path_of_a_grandchild_and_of_a_stranger():
    stranger = nn.Linear(2, 3)

    class Reaches(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 2))

        def forward(self, x):
            return self.inner[0](x), stranger(x)

    a, b = Reaches()(paddle.ones([1, 2]))
    assert path_of(a.record.scope) == "Reaches.inner.0"
    assert path_of(b.record.scope) == "Reaches.Linear"


def test_scope_is_restored_after_an_error():
    with pytest.raises(ValueError, match=r"Net.first \(a Linear\)"):
        Net()(paddle.ones([1, 5]))
    assert current.top.scope is None


def test_a_layer_is_freed_with_its_graph():
    net = Net()
    gone = weakref.ref(net)
    y = net(paddle.ones([1, 2]))
    y.sum().backward()
    del net, y
    gc.collect()
    assert gone() is None


# ---- modes -------------------------------------------------------------------------------------


def test_train_and_eval():
    net = Net()
    assert net.training
    assert net.eval() is net
    assert not any(layer.training for layer in net.sublayers(include_self=True))
    net.train()
    assert all(layer.training for layer in net.sublayers(include_self=True))


def test_apply_goes_from_the_leaves_up():
    net, seen = Net(), []
    assert net.apply(lambda layer: seen.append(type(layer).__name__)) is net
    assert seen == ["Linear", "Linear", "ReLU", "Sequential", "Net"]


def test_clear_gradients():
    net = Net()
    net(paddle.ones([1, 2])).sum().backward()
    net.clear_gradients()
    assert net.scale.grad.tolist() == [0.0] * 3
    net.clear_gradients(set_to_zero=False)
    assert net.scale.grad is None


# ---- state -------------------------------------------------------------------------------------


def test_state_dict():
    net = Net()
    state = net.state_dict()
    assert list(state) == [
        "scale", "count", "first.weight", "first.bias", "inner.0.weight", "inner.0.bias"
    ]  # fmt: skip
    assert state["scale"] is net.scale
    assert not net.state_dict(keep_vars=False)["scale"].is_parameter
    assert list(net.state_dict(include_sublayers=False, structured_name_prefix="a.")) == [
        "a.scale", "a.count"
    ]  # fmt: skip
    given = {"other": 1}
    assert net.state_dict(given) is given
    assert len(given) == 7


def test_state_dict_hook():
    net = Net()
    handle = net.register_state_dict_hook(lambda state: {"only": 1})
    assert net.state_dict() == {"only": 1}
    handle.remove()
    net.register_state_dict_hook(lambda state: state.update(more=2))
    assert net.state_dict()["more"] == 2
    assert "more" not in net.state_dict(use_hook=False)


def test_loading_a_state():
    a, b = Net(), Net()
    assert b.set_state_dict(a.state_dict()) == ([], [])
    x = paddle.ones([2, 2])
    assert (a(x) == b(x)).all()
    assert b.scale is not a.scale
    arrays = {k: v.numpy() for k, v in a.state_dict().items()}
    assert Net().load_dict(arrays) == ([], [])
    by_name = {p.name: p for p in a.parameters()}
    c = nn.Linear(2, 3)
    c.weight.name, c.bias.name = a.first.weight.name, a.first.bias.name
    missing, unexpected = c.set_state_dict(by_name, use_structured_name=False)
    assert missing == []
    assert len(unexpected) == 3
    assert (c.weight == a.first.weight).all()


def test_loading_what_does_not_fit():
    layer = nn.Linear(2, 3)
    before = layer.weight.numpy()
    state = {"weight": paddle.ones([3, 2]), "more": paddle.ones([1])}
    with pytest.warns(UserWarning, match="skip loading") as warned:
        missing, unexpected = layer.set_state_dict(state)
    assert missing == ["weight", "bias"]
    assert unexpected == ["weight", "more"]
    assert len(warned) == 2
    assert "float32[2, 3]" in str(warned[0].message)
    np.testing.assert_array_equal(layer.weight.numpy(), before)
    with pytest.raises(TypeError, match="loading bias"):
        layer.set_state_dict({"weight": paddle.ones([2, 3]), "bias": np.ones(3)})
    np.testing.assert_array_equal(layer.weight.numpy(), before)  # nothing is loaded by halves


# ---- dtype, device, copies ---------------------------------------------------------------------


def test_casting_keeps_the_parameter_objects():
    net = Net()
    weight = net.first.weight
    net(paddle.ones([1, 2])).sum().backward()
    assert net.to(dtype="float64") is net
    assert net.first.weight is weight
    assert weight.dtype == weight.grad.dtype == net.count.dtype == paddle.float64
    net(paddle.ones([1, 2], "float64")).sum().backward()
    assert net.astype("float32").first.weight.dtype == paddle.float32
    net.register_buffer("steps", paddle.zeros([1], "int64"))
    assert net.float16().steps.dtype == paddle.int64
    assert net.scale.dtype == paddle.float16
    assert "float16" in repr(net.first)
    assert net.bfloat16().scale.dtype == paddle.bfloat16
    assert net.float().scale.dtype == paddle.float32


def test_casting_can_leave_layers_out():
    net = Net()
    net.float16(excluded_layers=[nn.Linear])
    assert (net.scale.dtype, net.first.weight.dtype) == (paddle.float16, paddle.float32)
    net = Net()
    net.bfloat16(excluded_layers=net.first)
    assert (net.first.weight.dtype, net.inner[0].weight.dtype) == (paddle.float32, paddle.bfloat16)


def test_moving():
    net = Net()
    assert net.cpu() is net
    assert repr(net.to("cpu").scale.place) == "Place(cpu)"
    if not paddle.is_compiled_with_cuda():
        with pytest.raises(RuntimeError, match="no usable GPU"):
            net.cuda()


def test_deepcopy():
    net = Net()
    twin = copy.deepcopy(net)
    x = paddle.ones([1, 2])
    assert (net(x) == twin(x)).all()
    assert twin.scale is not net.scale
    assert twin.scale.name == f"{net.scale.name}_deepcopy_0"
    assert copy.deepcopy(twin).scale.name == f"{net.scale.name}_deepcopy_1"
    twin.scale.set_value(paddle.zeros([3]))
    assert net.scale.abs().sum().item() > 0
    assert twin.inner[0] is twin.inner[0]


def test_text():
    assert repr(nn.Layer()) == "Layer()"
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, dtype=float32)\n"
        "  (inner): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=3, dtype=float32)\n"
        "    (1): ReLU()\n"
        "  )\n"
        ")"
    )


def test_missing_names_point_to_the_nearest():
    with pytest.raises(AttributeError, match=r"paddle\.nn\.Linear"):
        nn.Liner  # noqa: B018
    with pytest.raises(AttributeError, match=r"paddle\.nn\.functional\.relu"):
        nn.functional.reluu  # noqa: B018


# ---- parameters that wait ----------------------------------------------------------------------


def test_lazy_parameters_are_drawn_when_they_are_read():
    drawn = []

    class Ones(nn.initializer.Initializer):
        def draw(self, shape, dtype):
            drawn.append(shape)
            return paddle.ones(shape, dtype)

    with paddle.LazyGuard():
        layer = nn.Linear(2, 3, weight_attr=Ones())
    weight = layer.weight
    assert (weight.shape, weight.dtype, weight.size) == ([2, 3], paddle.float32, 6)
    assert drawn == []
    assert layer(paddle.ones([1, 2])).tolist() == [[2.0, 2.0, 2.0]]
    layer(paddle.ones([1, 2])).sum().backward()
    assert drawn == [(2, 3)]
    assert layer.weight.grad.tolist() == [[1.0] * 3] * 2
    assert type(layer.weight) is type(nn.Linear(2, 3).weight)


def test_a_lazy_parameter_can_be_drawn_before():
    with paddle.LazyGuard():
        layer = nn.Linear(2, 3)
    with pytest.raises(AttributeError, match="no attribute '_nothing'"):
        layer.weight._nothing  # noqa: B018
    layer.weight.initialize()
    assert "array" in vars(layer.weight)
    with paddle.LazyGuard():
        layer = nn.Linear(2, 3)
    assert (copy.deepcopy(layer).weight == layer.weight).all()
    assert type(copy.deepcopy(layer).weight) is type(layer.weight)
    assert not hasattr(nn.Linear(2, 3).weight, "promised")


def test_a_lazy_parameter_is_drawn_outside_of_a_program():
    with paddle.LazyGuard():
        layer = nn.Linear(2, 3)
    run = paddle.jit.to_static(lambda x: layer(x).sum())
    first = run(paddle.ones([1, 2])).item()
    assert first == run(paddle.ones([1, 2])).item() == pytest.approx(layer.weight.sum().item())
