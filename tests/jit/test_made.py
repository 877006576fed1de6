"""Layers and parameters that a converted function makes: as in eager mode, or a refusal."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from minipaddle.static import InputSpec


def linear(x):
    return nn.Linear(2, 3)(x)


def on_either_side(x):
    if x.sum() > 0:
        return nn.Linear(2, 2)(x)
    return nn.Linear(2, 2, bias_attr=False)(x) * 2


def in_each_iteration(x):
    n = x.sum()
    while n > 0:
        x, n = nn.Linear(2, 2)(x), n - 3
    return x


def several(x):
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.BatchNorm1D(4), nn.Dropout(0.5))
    return net(x)


def evaluated(x):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1D(2), nn.Dropout(0.5))
    net.eval()
    return net(x)


def recurrent(x):
    return nn.GRU(2, 2)(x.unsqueeze(0))[0] + nn.MultiHeadAttention(2, 1)(x.unsqueeze(0))


def trained(x):
    layer = nn.Linear(2, 2)
    adam = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
    for _ in range(3):
        (layer(x.detach()) ** 2).sum().backward()
        adam.step()
        adam.clear_grad()
    return layer(x)


def its_gradient(x):
    layer = nn.Linear(2, 2)
    layer(x).sum().backward()
    return layer(x), layer.weight.grad, layer.weight, layer.state_dict()


def initialised(x):
    given = paddle.ParamAttr(initializer=nn.initializer.Assign([[1.0, 2.0], [3.0, 4.0]]))
    layer = nn.Linear(2, 2, weight_attr=given)
    layer.bias.set_value(paddle.ones([2]) * x.sum())
    layer.weight.stop_gradient = True
    return layer(x)


def hooked(x):
    layer = nn.utils.weight_norm(nn.Linear(2, 2))
    layer.register_forward_post_hook(lambda layer, inputs, y: y * 2)
    return layer(x)


def lazily(x):
    with paddle.LazyGuard():
        layer = nn.Linear(2, 2)
    return layer(x)


class Inside(nn.Layer):
    def forward(self, x):
        return nn.Linear(2, 2)(x) + nn.Embedding(4, 2)(paddle.to_tensor([1]))


MAKERS = [
    linear, on_either_side, in_each_iteration, several, evaluated, recurrent, trained, its_gradient,
    initialised, hooked, lazily, Inside(),
]  # fmt: skip


def calls(function):
    """What four calls give, and the gradients of their inputs."""
    paddle.seed(3)
    found = []
    for sign in (1, -1, 1, 1):
        x = paddle.to_tensor([[1.0, 2.0], [0.5, -0.5], [3.0, 1.0]]) * sign
        x.stop_gradient = False
        results = paddle.utils.flatten(function(x))
        if not results[0].stop_gradient:
            results[0].sum().backward()
            found.append(x.grad.numpy())
        found += [y.numpy() for y in results]
    return found


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", MAKERS, ids=lambda f: getattr(f, "__name__", "Inside"))
def test_each_call_draws_new_parameters(function, backend):
    """The same numbers as in eager mode after the same seed."""
    eager = calls(function)
    converted = paddle.jit.to_static(getattr(function, "forward", function), backend=backend)
    for a, b in zip(eager, calls(converted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


# ---- optimizers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SGD", "Momentum", "Adam", "RMSProp"])
def test_an_optimizer_made_inside_begins_anew(kind):
    layer = nn.Linear(2, 2)
    weight = layer.weight.numpy().copy()

    def steps(x):
        optimizer = getattr(paddle.optimizer, kind)(0.1, parameters=layer.parameters())
        for _ in range(2):
            (layer(x) ** 2).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        return layer(x)

    outcomes = []
    for f in (steps, paddle.jit.to_static(steps)):
        layer.weight.set_value(weight)
        layer.bias.set_value(paddle.zeros([2]))
        outcomes.append([f(paddle.ones([1, 2])).numpy() for _ in range(4)])
    np.testing.assert_allclose(*outcomes, rtol=2e-5, atol=1e-6)


class Held:
    optimizer = None


@pytest.mark.parametrize("half", [False, True])
def test_an_optimizer_that_is_kept_goes_on(half):
    dtype = "float16" if half else "float32"

    def step(layer, x):
        if Held.optimizer is None:
            given = {"parameters": layer.parameters(), "multi_precision": half}
            Held.optimizer = paddle.optimizer.Adam(0.1, **given)
        (layer(x) ** 2).sum().backward()
        Held.optimizer.step()
        Held.optimizer.clear_grad()
        return layer(x)

    outcomes = []
    for convert in (lambda f: f, paddle.jit.to_static):
        paddle.seed(3)
        Held.optimizer, layer = None, nn.Linear(2, 2).astype(dtype)
        f = convert(lambda x, layer=layer: step(layer, x))
        outcomes.append([f(paddle.ones([1, 2], dtype)).numpy() for _ in range(4)])
    np.testing.assert_allclose(*outcomes, rtol=2e-3, atol=1e-3)
    Held.optimizer = None


def test_copies_of_an_optimizer_that_nobody_keeps_are_refused():
    layer = nn.Linear(2, 2).astype("float16")

    def step(x):
        given = {"parameters": layer.parameters(), "multi_precision": True}
        optimizer = paddle.optimizer.Adam(0.1, **given)
        (layer(x) ** 2).sum().backward()
        optimizer.step()

    with pytest.raises(Dygraph2StaticException, match="with multi_precision is made by the conv"):
        paddle.jit.to_static(step)(paddle.ones([1, 2], "float16"))


# ---- what outlives the call, or does not ---------------------------------------------------------


def test_a_program_serves_all_calls():
    static = paddle.jit.to_static(linear)
    a, b = static(paddle.ones([1, 2])), static(paddle.ones([1, 2]))
    assert a.tolist() != b.tolist()
    assert len(static.program_cache) == 1


def test_a_saved_program_draws_too(tmp_path):
    paddle.jit.save(on_either_side, tmp_path / "m", input_spec=[InputSpec([None, 2])])
    loaded = paddle.jit.load(tmp_path / "m")
    assert loaded(paddle.ones([1, 2])).tolist() != loaded(paddle.ones([1, 2])).tolist()


KEPT: dict = {}


class Later(nn.Layer):
    """Makes a part in its first call."""

    def __init__(self):
        super().__init__()
        self.part = None

    def forward(self, x):
        if self.part is None:
            self.part = nn.Linear(2, 2)
        return self.part(x)


class Adds(nn.Layer):
    def forward(self, x):
        self.add_sublayer("part", nn.Linear(2, 2))
        return self.part(x)


class Appends(nn.Layer):
    def __init__(self):
        super().__init__()
        self.parts = nn.LayerList()

    def forward(self, x):
        self.parts.append(nn.Linear(2, 2))
        return self.parts[-1](x)


class Weighs(nn.Layer):
    def forward(self, x):
        self.weight = self.create_parameter([2])
        return x * self.weight


def keeps(x):
    KEPT["layer"] = nn.Linear(2, 2)
    return KEPT["layer"](x)


def returns_it(x):
    return nn.Linear(2, 2)


def returns_a_function(x):
    layer = nn.Linear(2, 2)
    return lambda y: layer(y)


KEEPERS = [Later, Adds, Appends, Weighs, lambda: keeps, lambda: returns_it,
           lambda: returns_a_function]  # fmt: skip


@pytest.mark.parametrize("make", KEEPERS)
def test_a_parameter_that_outlives_the_call_is_refused(make):
    function = make()
    with pytest.raises(Dygraph2StaticException, match=r"_0 is made by the converted function, and"):
        paddle.jit.to_static(getattr(function, "forward", function))(paddle.ones([3, 2]))
    assert not KEPT
