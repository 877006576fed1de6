"""What a captured function does to the world outside of it, call after call."""

import pytest

import minipaddle as paddle
from minipaddle import nn

CONVERSIONS = [lambda f: f, paddle.jit.to_static]


def both(case):
    """Run a case eagerly and converted; both results."""
    return [case(convert) for convert in CONVERSIONS]


def ones(*shape, gradient=False):
    x = paddle.ones(shape)
    x.stop_gradient = not gradient
    return x


def write_argument(convert):
    def f(x):
        x.add_(paddle.ones([2]))
        return x * 2

    x = ones(2)
    found = convert(f)(x)
    return x.tolist(), found.tolist()


def gradient_of_argument(convert):
    def f(x):
        (x * x).sum().backward()
        return x * 1

    f, x = convert(f), ones(2, gradient=True)
    f(x)
    f(x)
    return x.grad.tolist()


def weight_as_argument(convert):
    w = paddle.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(1.0))
    opt = paddle.optimizer.SGD(0.1, parameters=[w])

    def f(w):
        (w * w).sum().backward()
        opt.step()
        opt.clear_grad()
        return w.sum()

    f = convert(f)
    return [f(w).item() for _ in range(3)], f(ones(2, gradient=True)).item(), w.tolist()


def old_value_of_a_buffer(convert):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", paddle.ones([2]))

        def forward(self, x):
            old = self.count
            y = x * old
            self.count = self.count + 1
            return y, old

    net, found = convert(Net()), []
    for _ in range(2):
        x = ones(2, gradient=True)
        y, old = net(x)
        y.sum().backward()
        found += [x.grad.tolist(), old.tolist()]
    return found


def swapped_buffers(convert):
    a, b = paddle.zeros([2]), paddle.ones([2])

    def f(x):
        kept = a.clone() + 0
        before = b + 0
        a.set_value(before)
        b.set_value(kept)
        return x + a

    f = convert(f)
    return [f(ones(2)).tolist() for _ in range(3)], a.tolist(), b.tolist()


def attribute_before_the_layer_is_called(convert):
    net = nn.Linear(2, 2)
    net.register_buffer("state", paddle.zeros([2]))

    def f(x):
        net.state = net.state + x
        return net.state

    f = convert(f)
    f(ones(2))
    return f(ones(2)).tolist(), net.state.tolist()


def cleared_gradients_are_zeros(convert):
    net = nn.Linear(2, 1)

    def f(x):
        net(x).sum().backward()
        net.clear_gradients()
        return x

    convert(f)(ones(1, 2))
    return net.weight.grad.tolist()


def gradient_assigned(convert):
    net = nn.Linear(2, 1)

    def f(x):
        net(x).sum().backward()
        net.weight.grad = net.weight.grad * 0.5
        return x

    f = convert(f)
    f(ones(1, 2))
    f(ones(1, 2))
    return net.weight.grad.tolist()


def result_of_what_was_walked_back(convert):
    net = nn.Linear(2, 1)
    net.weight.set_value(paddle.ones([2, 1]))

    def f(x):
        loss = net(x).sum()
        loss.backward()
        return loss.exp(), loss.detach()

    return [y.tolist() for y in convert(f)(ones(1, 2))]


@pytest.mark.parametrize(
    "case",
    [write_argument, gradient_of_argument, weight_as_argument, old_value_of_a_buffer,
     swapped_buffers, attribute_before_the_layer_is_called, cleared_gradients_are_zeros,
     gradient_assigned, result_of_what_was_walked_back],
    ids=lambda case: case.__name__,
)  # fmt: skip
def test_same_as_eager(case):
    eager, static = both(case)
    assert eager == static


def test_clearing_to_none_makes_one_program_for_a_waiting_gradient():
    net = nn.Linear(2, 1)
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x):
        opt.clear_grad(set_to_zero=False)
        loss = net(x).sum()
        loss.backward()
        opt.step()
        return loss

    for _ in range(5):
        step(ones(1, 2))
    assert len(step.program_cache) == 2
