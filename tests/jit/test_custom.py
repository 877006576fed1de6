"""Derivatives of the user's in programs: a PyLayer in branches and loops, twice, and saved."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.autograd import PyLayer
from minipaddle.engine.ir.printer import text
from minipaddle.engine.ir.verifier import VerifyError, verify
from minipaddle.ir.parser import parse


class Cube(PyLayer):
    """Keeps its input and its result; three times too steep, so that it is told from x³."""

    @staticmethod
    def forward(ctx, x):
        y = x * x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensor()
        return 9 * g * y / x


class Split(PyLayer):
    """Two results, one without a gradient; two inputs, one without a gradient."""

    @staticmethod
    def forward(ctx, x, y, k):
        ctx.k, ctx.sizes = k, x.abs()
        positive = (x > 0).astype("float32")
        ctx.mark_non_differentiable(positive)
        return x * y, positive

    @staticmethod
    def backward(ctx, g, _):
        return g * ctx.sizes * ctx.k, None


def plain(x):
    return Cube.apply(x).sum()


def branch(x):
    y = x * 2
    if x.sum() > 0:
        y = Cube.apply(y)
    return y.sum()


def loop(x):
    k = paddle.zeros([], "int64")
    while k < 3:
        x = Cube.apply(x) * 0.1
        k += 1
    return x.sum()


def several(x):
    y, positive = Split.apply(x, x * 0.5, 3)
    assert positive.stop_gradient
    if positive.sum() > 0:
        z, _ = Split.apply(y, x, 2)
        y = y + z
    return (y * positive).sum()


FUNCTIONS = [plain, branch, loop, several]
VALUES = [[1.0, 2.0], [-1.0, -2.0], [-1.0, 3.0]]


def derivatives(f, value, twice):
    x = paddle.to_tensor(value, stop_gradient=False)
    y = f(x)
    (g,) = paddle.grad(y, x, create_graph=twice)
    found = [y.item(), g.numpy()]
    if twice:
        found.append(paddle.grad((g * g).sum(), x)[0].numpy())
    return found


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_same_as_eager(f, value, twice):
    twice = twice and f is not several and sum(value) > 0  # else it is constant in x
    eager, static = (derivatives(g, value, twice) for g in (f, paddle.jit.to_static(f)))
    for a, b in zip(eager, static, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_no_gradient_no_operator():
    f = paddle.jit.to_static(plain)
    f(paddle.ones([2]))
    assert "custom" not in text(f.main_program)


def test_text_and_back():
    f = paddle.jit.to_static(branch)
    f(paddle.to_tensor([1.0, 2.0], stop_gradient=False))
    written = text(verify(f.main_program))
    assert "custom(" in written
    assert text(verify(parse(written))) == written
    with pytest.raises(VerifyError, match="results is a number of inputs"):
        verify(parse(written.replace("results=1", "results=9")))


class Nested(PyLayer):
    """Takes a list and gives gradients as one; its own rule doubles the first."""

    @staticmethod
    def forward(ctx, pair, z):
        ctx.save_for_backward(pair, z)
        return [pair[0] * z, pair[1] + z]

    @staticmethod
    def backward(ctx, g, h):
        (x, _), z = ctx.saved_tensor()
        return [2 * g * z, h], g * x + h


def test_gradients_as_nested_as_the_arguments():
    def f(x, y, z):
        a, b = Nested.apply([x, y], z)
        return (a * b).sum()

    found = []
    for function in f, paddle.jit.to_static(f):
        xs = [paddle.to_tensor([float(k), 2.0], stop_gradient=False) for k in (1, 3, 5)]
        found.append([g.tolist() for g in paddle.grad(function(*xs), xs)])
    x, y, z = np.array([[1.0, 2], [3, 2], [5, 2]])
    expected = [2 * z * (y + z), x * z, x * (y + z) + x * z]
    assert found == [[g.tolist() for g in expected]] * 2


def test_refused():
    class Writes(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.add_(g)
            return g

    def hooked(x):
        y = x * 2
        if y.sum() > 0:
            y.register_hook(lambda g: g * 2)  # y is not made in the branch
        return y

    seen, x = paddle.zeros([2]), paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    with pytest.raises(NotImplementedError, match="writes to a tensor outside"):
        paddle.jit.to_static(lambda x: Writes.apply(x))(x)
    with pytest.raises(NotImplementedError, match="a hook is registered inside a branch"):
        paddle.jit.to_static(hooked)(x)


def doubled_twice(x):
    x.register_hook(lambda g: 2 * g)
    x.register_hook(lambda g: 3 * g).remove()
    y = x + 4
    y.register_hook(lambda g: 5 * g)
    x.register_hook(lambda g: g + 1)
    return y * y + x


@pytest.mark.parametrize("made", [False, True])
def test_a_hook_on_an_argument_sees_its_whole_gradient(made):
    """Also what flows to it outside of the program; each call registers it again."""
    found = []
    for f in doubled_twice, paddle.jit.to_static(doubled_twice):
        start = paddle.to_tensor([2.0, 3.0], stop_gradient=False)
        x = start * 1 if made else start
        for _ in range(4):  # the later calls would take a call stub
            (f(x) * 3 + x).sum().backward(retain_graph=True)
            found.append(start.grad.numpy().copy())
            start.clear_gradient()
    np.testing.assert_allclose(found[:4], found[4:])


def test_a_hook_on_an_argument_that_uses_a_tensor_of_the_program():
    def f(x):
        y = x * x
        x.register_hook(lambda g: g * y)
        return y

    x = paddle.to_tensor([2.0], stop_gradient=False)
    y = paddle.jit.to_static(f)(x)
    with pytest.raises((ValueError, TypeError), match=r"of another program|no value yet"):
        y.backward()
