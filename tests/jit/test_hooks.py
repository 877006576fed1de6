"""Hooks of tensors in programs: the derivative calls them, also that of a branch or a loop."""

import pytest

import minipaddle as paddle
from minipaddle.jit import to_static
from minipaddle.jit.dy2static.utils import Dygraph2StaticException

VALUES = ([2.0, 3.0], [-2.0, 1.0], [1.5, 0.2])


def at_the_root(x):
    y = x * x
    y.register_hook(lambda g: g * 3)
    return y * y


def on_one_side(x):
    if x.sum() > 1:
        y = x + 4
        z = y**2
        y.register_hook(lambda g: g * 2)
        y.register_hook(lambda g: g * 100).remove()
    else:
        y = x - 4
        z = y**3
        y.register_hook(lambda g: g * 3)
        y.register_hook(lambda g: g + 1)
    return z


def used_afterwards(x):
    if x.sum() > 1:
        y = x * 4
        y.register_hook(lambda g: g * g.sum() if g.sum() > 9 else g)
    else:
        y = x
    return y * y


def in_a_loop(x):
    k, y = paddle.zeros([], "int32"), x
    while k < 2:
        y = y * y
        y.register_hook(lambda g: g * 0.5)
        k += 1
    return y * x


def nested(x):
    z = x
    for k in range(3):
        if x.sum() > k:
            w = z * 2
            if x.sum() > k + 1:
                z = w * w
                z.register_hook(lambda g: g + 1)
            else:
                z = w
            w.register_hook(lambda g: g * 2)
    return z


@pytest.mark.parametrize("function", [at_the_root, on_one_side, used_afterwards, in_a_loop, nested])
def test_first_and_second_derivatives_pass_through_the_hooks(function):
    static = to_static(function)
    for value in VALUES:
        found = []
        for f in (function, static):
            x = paddle.to_tensor(value, stop_gradient=False)
            (first,) = paddle.grad(f(x).sum(), [x], create_graph=True)
            second = [] if first.stop_gradient else paddle.grad(first.sum(), [x])
            found.append((first.tolist(), *(g.tolist() for g in second)))
        assert found[0] == found[1]
    assert len(static.program_cache) == 1


def test_a_function_that_walks_back_itself_calls_the_hook_of_a_branch():
    def step(x):
        y = x * x
        if x.sum() > 2:
            y = y * 2
            y.register_hook(lambda g: g * 3)
        y.sum().backward()
        return x.grad

    static = to_static(step)
    for value in VALUES:
        given = [paddle.to_tensor(value, stop_gradient=False) for _ in range(2)]
        assert static(given[0]).tolist() == step(given[1]).tolist()


@pytest.mark.parametrize("always", [True, False])
def test_a_hook_that_changes_something_else_is_refused(always):
    """The backward of each run would have to change it."""
    seen = []

    def f(x):
        y = x * x
        if always or x.sum() > 0:
            y = y * 2
            y.register_hook(seen.append)
        return y

    x = paddle.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(Dygraph2StaticException, match="a hook that changes the list"):
        to_static(f)(x)
    assert not seen


def test_a_hook_of_an_argument_may_change_something_else():
    """It is called outside, by each backward."""
    seen = []

    @to_static
    def f(x):
        x.register_hook(lambda g: seen.append(g.tolist()))
        return x * x

    for k in (1.0, 2.0):
        f(paddle.to_tensor([k], stop_gradient=False)).backward()
    assert seen == [[2.0], [4.0]]


def test_a_hook_that_removes_itself_leaves_the_others():
    calls = []
    x = paddle.to_tensor([1.0], stop_gradient=False)

    def once(g):
        handle.remove()
        calls.append("once")

    handle = x.register_hook(once)
    x.register_hook(lambda g: calls.append("each time"))
    for _ in range(2):
        (x * 2).backward()
    assert calls == ["once", "each time", "each time"]


@pytest.mark.parametrize("kept", [True, False])
def test_each_call_registers_a_hook_of_a_parameter(kept):
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = paddle.nn.Linear(2, 1, bias_attr=False)

        def forward(self, x):
            y = self.linear(x)  # used before
            handle = self.linear.weight.register_hook(lambda g: g * 2)
            if not kept:
                handle.remove()
            return y

    found = []
    for net in (Net(), to_static(Net())):
        for _ in range(3):
            net(paddle.to_tensor([[1.0, 3.0]])).backward()
            found.append(net.linear.weight.grad.tolist())
            net.linear.weight.clear_gradient()
    assert found[:3] == found[3:]
    assert (found[2] == [[8.0], [24.0]]) is kept


def test_a_step_uses_the_hook_that_it_registers_on_a_parameter():
    def step(net, x):
        net.weight.register_hook(lambda g: g * 2 if g.sum() > 3 else g)
        net.weight.register_hook(lambda g: g + 1)
        net(x).sum().backward()

    found = []
    for call in (step, to_static(step)):
        net = paddle.nn.Linear(2, 1)
        for value in ([1.0, 1.0], [1.0, 3.0]):
            call(net, paddle.to_tensor([value]))
            found.append(net.weight.grad.tolist())
            net.weight.clear_gradient()
    assert found[:2] == found[2:]
