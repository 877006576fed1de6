"""Branches and loops on a tensor that change a size: a prefix that grows, a choice of lengths."""

import itertools

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from minipaddle.static import InputSpec


def grown(x, n):
    y, i = x, 0
    while i < n:
        y, i = paddle.concat([y, y[:1] + i]), i + 1
    return y * 2 + y.sum()


def doubled(x, n):
    y, i = x, 0
    while i < n:
        y, i = paddle.concat([y, y]), i + 1
    return y


def shortened(x, n):
    y, i = x, 0
    while i < n:
        y, i = y[1:], i + 1
    return y, y.sum(0)


def replaced_once(x, n):
    y, i = x[:1], 0
    while i < n:
        y, i = x, i + 1
    return y


def exchanged(x, n):
    a, b, i = x[:1], x, 0
    while i < n:
        a, b, i = b, a, i + 1
    return a, b


def grown_to_an_end(x, n):
    y = x
    for k in range(1, n + 1):
        if y.sum() > 20:
            break
        y = paddle.concat([y, y[-1:] * k])
    return y


def grown_in_a_loop_of_a_loop(x, n):
    y, i = x, 0
    while i < n:
        z, j = y[:1], 0
        while j < i:
            z, j = paddle.concat([z, y[-1:] * 2]), j + 1
        y, i = paddle.concat([y, z]), i + 1
    return y


def chosen(x, n):
    y = x[:2] if n > 1 else x
    return y * 3


def chosen_of_unseen(x, n):
    y = x[x > 1] if n > 1 else x
    if n > 2:
        y = paddle.concat([y, y])
    return y, y.shape[0] * 2


FUNCTIONS = [grown, doubled, shortened, replaced_once, exchanged, grown_to_an_end,
             grown_in_a_loop_of_a_loop, chosen, chosen_of_unseen]  # fmt: skip


def same(found, expected) -> None:
    found, expected = ([*x] if isinstance(x, tuple) else [x] for x in (found, expected))
    for a, b in zip(found, expected, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_program_serves_all_sizes(function, backend):
    static = paddle.jit.to_static(function, backend=backend)
    x = paddle.arange(3, dtype="float32")
    for n in map(paddle.to_tensor, (2, 0, 3, 1)):
        same(static(x, n), function(x, n))
    assert len(static.program_cache) == 1


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_saved_program_serves_all_sizes(function, tmp_path):
    specs = [InputSpec([None], "float32"), InputSpec([], "int64")]
    path = str(tmp_path / "net")
    paddle.jit.save(paddle.jit.to_static(function), path, input_spec=specs)
    loaded = paddle.jit.load(path)
    for size in (3, 4, 7):
        x = paddle.arange(size, dtype="float32")
        for n in map(paddle.to_tensor, (0, 1, 3)):
            same(
                tuple(paddle.utils.flatten(loaded(x, n))),
                tuple(paddle.utils.flatten(function(x, n))),
            )


class Decoder(nn.Layer):
    """Greedy decoding: the words so far are read again for each further one."""

    def __init__(self, words=7, longest=6):
        super().__init__()
        self.embed, self.out, self.longest = nn.Embedding(words, 4), nn.Linear(4, words), longest

    def forward(self, x):
        words = paddle.full([x.shape[0], 1], 2, "int64")
        sure = paddle.ones([x.shape[0], 1])
        for _ in range(1, paddle.to_tensor(self.longest)):
            scores = self.out((self.embed(words) + x.unsqueeze(1)).mean(1))
            sure = paddle.concat([sure, nn.functional.softmax(scores).max(-1, keepdim=True)], 1)
            word = scores.argmax(-1)
            words = paddle.concat([words, word.unsqueeze(1)], axis=1)
            if paddle.equal_all(word, paddle.full_like(word, 3)):
                break
        return words, sure


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_greedy_decoding(seed, tmp_path):
    paddle.seed(seed)
    net = Decoder()
    net.eval()
    xs = [paddle.randn([n, 4]) for n in (2, 1, 2, 5)]
    with paddle.no_grad():
        expected = [net(x) for x in xs]
        static = paddle.jit.to_static(net)
        for x, y in zip(xs, expected, strict=True):
            same(static(x), y)
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 4], "float32")])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    for x, y in zip(xs, expected, strict=True):
        same(tuple(loaded(x)), y)


@pytest.mark.parametrize("n", [1, 3])
def test_the_gradient_of_a_choice_of_lengths(n):
    grads = []
    for function in (chosen, paddle.jit.to_static(chosen)):
        x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
        function(x, paddle.to_tensor(n)).pow(2).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(*grads)


def test_a_second_gradient_of_a_choice_of_lengths():
    def second(x, n):
        y = (x[:2] if n > 1 else x) ** 3
        (g,) = paddle.grad(y.sum(), x, create_graph=True)
        return paddle.grad((g * x).sum(), x)[0]

    for n in map(paddle.to_tensor, (0, 2)):
        x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
        same(paddle.jit.to_static(second)(x, n), second(x, n))


def test_a_gradient_through_a_growing_value_is_refused():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    static = paddle.jit.to_static(grown)
    with pytest.raises(NotImplementedError, match=r"round to round\n  at: .*, in grown\n"):
        static(x, paddle.to_tensor(1))
    with paddle.no_grad():
        same(static(x, paddle.to_tensor(1)), grown(x, paddle.to_tensor(1)))


def decides(x, n):
    y, i = x, 0
    while i < n:
        if y.shape[0] > 4:
            y = y + 10
        y, i = paddle.concat([y, y[:1]]), i + 1
    return y


def broadcasts(x, n):
    y, i = x[:1], 0
    while i < n:
        y, i = y + x, i + 1
    return y


@pytest.mark.parametrize("function", [decides, broadcasts])
def test_a_decision_about_a_changing_size_holds_or_raises(function):
    static, x = paddle.jit.to_static(function), paddle.arange(3, dtype="float32")
    none, *others = map(paddle.to_tensor, (0, 1, 2))
    same(static(x, none), function(x, none))
    for n in others:
        with pytest.raises(ValueError, match="the program assumes that u"):
            static(x, n)


def test_another_number_of_axes_is_refused():
    def deeper(x, n):
        y, i = x, 0
        while i < n:
            y, i = y.unsqueeze(0), i + 1
        return y

    with pytest.raises(Dygraph2StaticException, match="`y` is not the same kind of value"):
        paddle.jit.to_static(deeper)(paddle.arange(3), paddle.to_tensor(1))


def test_a_size_that_one_branch_knows_is_not_asked_of_the_other():
    """A return inside two conditions: outside, what it returns is blank."""
    w = paddle.to_tensor([2.0, 3.0, 4.0])

    def f(x, y):
        if x.sum() > 0:
            if y > 0:
                return w * 2
            if y > -1:
                return x[1:]
        return x * 3

    spec = [InputSpec(["n"], "float32"), InputSpec([], "float32")]
    g = paddle.jit.to_static(f, input_spec=spec)
    for x, y in itertools.product(([1.0, 2.0], [-1.0, 0.0, 0.0, 0.5]), (1.0, -0.5, -2.0)):
        given = paddle.to_tensor(x), paddle.to_tensor(y)
        assert g(*given).tolist() == f(*given).tolist()


def test_a_call_like_the_last_one_takes_the_fast_path():
    """A stub knows the sizes it is for: results, gradients and numbers are of this call."""

    def scaled(x, w):
        return (x @ w) * x.shape[0], x.shape[0]

    specs = [paddle.static.InputSpec([None, 3]), paddle.static.InputSpec([3, 2])]
    static = paddle.jit.to_static(scaled, input_spec=specs, backend="native")
    w = paddle.rand([3, 2])
    w.stop_gradient = False
    for n in (4, 4, 4, 6, 6, 6, 4, 6, 4, 4):
        x = paddle.rand([n, 3])
        y, rows = static(x, w)
        (gradient,) = paddle.grad(y.sum(), w)
        wanted, _ = scaled(x, w)
        assert rows == n
        np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-5)
        np.testing.assert_allclose(
            gradient.numpy(), n * x.sum(0).numpy()[:, None] + 0 * w.numpy(), rtol=1e-5
        )
    assert len(static.stubs) == 2 or not static.stubs  # none where C cannot be called
