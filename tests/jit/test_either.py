"""What the sides of a condition on a tensor leave may be tensors of two kinds."""

import operator

import pytest

import minipaddle as paddle
from minipaddle.jit import save, to_static
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from minipaddle.static import InputSpec

VALUES = ([1.0, 2.0], [-1.0, -0.5], [-1.0, -8.0], [8.0, 2.0])


def bound(x):
    y = x.sum()
    if y > 0:
        y = x * 2
    else:
        y = paddle.ones([1, 2], "int32")
    return y


def returned(x):
    if x.sum() > 0:
        return x * 2
    return x.sum()


def chosen(x):
    return (x * 2 if x.sum() > 0 else x.sum()), x


def of_three_kinds(x):
    if x.sum() > 0:
        y = x * 2
    elif x.sum() > -2:
        y = paddle.ones([1, 2], "int32")
    else:
        y = x.sum()
    return {"a": [returned(x), y]}


def written_later(x):
    items = []
    if x.sum() > 0:
        items.append(x * 2)
    else:
        items.append(paddle.ones([1, 2], "int32"))
    if x.sum() > 5:
        items[0] = x
    return items


def overwritten(x):
    y = bound(x)
    if x.sum() > 5:
        y = x
    y = y if x.sum() > 20 else x + 1
    return y


def asked(x):
    y = returned(x)
    if isinstance(y, paddle.Tensor) and type(y) is paddle.Tensor and y is not None:
        return x * 3
    return y


def beside_a_loop(x):
    k = paddle.zeros([], "int32")
    while k < 3:
        y = x * k if x.sum() > 0 else x.sum()  # noqa: F841
        k += 1
    return x * k


def flat(values):
    if isinstance(values, paddle.Tensor):
        return [values]
    return [y for x in (values.values() if isinstance(values, dict) else values) for y in flat(x)]


@pytest.mark.parametrize(
    "function",
    [bound, returned, chosen, of_three_kinds, written_later, overwritten, asked, beside_a_loop],
    ids=lambda f: f.__name__,
)
def test_the_value_is_the_one_there_is(function):
    static = to_static(function)
    for value in VALUES:
        found = []
        for call in (function, static):
            x = paddle.to_tensor(value, stop_gradient=False)
            results = flat(call(x))
            for y in results:
                if not y.stop_gradient:
                    y.sum().backward(retain_graph=True)
            given = [(y.dtype, y.tolist(), y.stop_gradient) for y in results]
            found.append((given, x.grad.tolist() if x.grad is not None else [0.0, 0.0]))
        assert found[0] == found[1]
    assert len(static.program_cache) == 1


def test_an_attribute_may_be_of_two_kinds():
    class Net(paddle.nn.Layer):
        def forward(self, x):
            self.last = [bound(x)]
            return x

    net = to_static(Net())
    for value in VALUES:
        x = paddle.to_tensor(value)
        net(x)
        assert net.last[0].tolist() == bound(x).tolist()


def loss(x):
    return (x * x).sum() if x.sum() > 0 else paddle.zeros([1]) + x.sum()


def in_operators(x):
    y = loss(x)
    return {"a": 2 * y + 1, "b": x / y, "c": -y, "d": y**2 - x, "e": y < x, "f": y == x}


def in_methods(x):
    y = x * 2 if x.sum() > 0 else (x * 3).reshape([1, 2])
    return y.sum(), y.reshape([-1]), y.T, y[0]


def in_functions(x):
    y = loss(x)
    return paddle.mean(y), paddle.stack([y, y]), paddle.nn.functional.relu(x * y), net(y)


def net(y):
    return sum([y, y, 1])


def of_two_conditions(x):
    y = loss(x)
    z = x if x.max() > 1 else x.sum()
    return y * z, (y + z).sum()


def in_a_condition(x):
    y = loss(x)
    if x.max() > 0.5:
        y = y * 3
    return y + 1


@pytest.mark.parametrize(
    "function",
    [in_operators, in_methods, in_functions, of_two_conditions, in_a_condition],
    ids=lambda f: f.__name__,
)
def test_what_uses_the_value_uses_the_one_there_is(function):
    test_the_value_is_the_one_there_is(function)


def test_a_step_walks_back_from_a_loss_of_two_kinds():
    def step(x):
        total = loss(x) * 2 + x.max() * 0.5
        total.backward()
        return total, x.grad

    static = to_static(step)
    for value in VALUES:
        found = []
        for call in (step, static):
            total, grad = call(paddle.to_tensor(value, stop_gradient=False))
            found.append((total.tolist(), grad.tolist()))
        assert found[0] == found[1]


def test_a_value_that_two_layers_take():
    """A detector's loss where nothing is found, in a layer's forward."""

    class Head(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.last = paddle.nn.Linear(2, 2)

        def forward(self, x):
            return self.last(x if x.sum() > 0 else x.reshape([1, 2])) * loss(x)

    head = Head()
    static = to_static(Head())
    static.set_state_dict(head.state_dict())
    for value in VALUES:
        x = paddle.to_tensor(value)
        assert static(x).tolist() == head(x).tolist()
        assert static(x).shape == head(x).shape


REFUSED = {
    "an attribute": lambda y, x: y.shape,
    "a condition": lambda y, x: x if y else -x,
    "a text": lambda y, x: f"{y}",
    "a number": lambda y, x: float(y),
    "items": lambda y, x: [each + 1 for each in y],
    "its length": lambda y, x: len(y),
    "an item that is written": lambda y, x: operator.setitem(y, 0, 1),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED.keys())
def test_what_python_would_have_to_know_is_refused(use):
    def f(x):
        try:
            return use(bound(x), x)
        except TypeError:
            return x

    with pytest.raises(Dygraph2StaticException, match="`y` is not the same kind of value on both"):
        to_static(f)(paddle.ones([2]))


def test_such_a_result_is_not_saved(tmp_path):
    static = to_static(returned, input_spec=[InputSpec([2])])
    with pytest.raises(ValueError, match="forward returns tensors of two kinds"):
        save(static, tmp_path / "model")
