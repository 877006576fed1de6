"""Tapes served by programs: the gradients of the walk, when it walks after all, what is kept."""

import gc
import threading
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import opaque
from minipaddle.engine.core.record import FREED
from minipaddle.engine.core.slots import OPS
from minipaddle.executors import hot
from minipaddle.executors.hot import tapes
from minipaddle.nn import functional as F
from tests.executors.hot import at_once, compiles, flag, served
from tests.executors.tapes import fuzz

pytestmark = compiles

WALKS = 4
"""So many walks in a row: of the first a tape is noted, in the second and third one C is compiled.
"""


@pytest.fixture(autouse=True)
def soon():
    with at_once():
        yield


def leaf(*shape, seed=0, dtype="float32"):
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return paddle.to_tensor(values, stop_gradient=False)


def repeat(step) -> list:
    """What a step returns in C; it must be what the walk returns."""
    with flag(False):
        expected = [x.numpy() for x in step()]
    for _ in range(WALKS):
        found = [x.numpy() for x in step()]
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return found


def both(w, v, rows=5):
    return F.cross_entropy(F.relu(leaf(rows, 7, seed=1).detach() @ w) @ v, paddle.arange(rows) % 4)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    how, wrong = fuzz(seed)
    assert not wrong, wrong
    assert how in ("C", "the walk")


def test_most_random_graphs_are_served():
    assert [fuzz(seed)[0] for seed in range(5)].count("C") >= 3


def test_a_step_of_a_network():
    def step():
        w, v = leaf(7, 6), leaf(6, 4)
        both(w, v).backward()
        return w.grad, v.grad

    repeat(step)
    assert served(tapes.TAPES) == 1


def test_other_shapes_are_another_tape():
    def step(rows):
        w, v = leaf(7, 6), leaf(6, 4)
        both(w, v, rows).backward()
        return w.grad, v.grad

    repeat(lambda: step(5))
    repeat(lambda: step(8))
    repeat(lambda: step(5))
    assert served(tapes.TAPES) == 2


def test_what_distinguishes_tapes():
    """Numbers and attributes that are equal in Python, or nearly."""
    x = leaf(3)
    functions = [
        lambda: x * 2.0, lambda: x * 2, lambda: x * True, lambda: x / 1.0,
        lambda: x * 0.0, lambda: x * -0.0, lambda: x * float("inf"),
        lambda: x.sum(0), lambda: x.sum(0, keepdim=True), lambda: x.astype("float64"),
        lambda: x + x, lambda: x + x.detach(), lambda: x.detach() * x, lambda: x * x,
        lambda: F.leaky_relu(x, 0.5), lambda: F.leaky_relu(x, 0.25), lambda: F.softmax(x),
    ]  # fmt: skip

    def step(function):
        (g,) = paddle.grad((function() * 3.0).sum(), x)
        return (paddle.copysign(paddle.ones([3]), g), g)

    for function in functions:
        repeat(lambda function=function: step(function))
    for function in functions:  # and when all are known
        repeat(lambda function=function: step(function))
    assert served(tapes.TAPES) == len(functions)


def test_gradients_add_up():
    def step():
        w, v = leaf(7, 6), leaf(6, 4)
        for _ in range(2):
            both(w, v).backward()
        before = w.grad
        w.clear_gradient()
        both(w, v).backward()
        return before, w.grad, v.grad

    repeat(step)


def test_leaves_that_are_shared():
    def step():
        w = leaf(4, 4)
        other = F.tanh(w)
        ((w @ w) * w + other @ other.T + w.detach()).sum().backward()
        return (w.grad,)

    repeat(step)
    assert served(tapes.TAPES) == 1


def test_gradients_share_no_memory():
    a, b = leaf(3), leaf(3)
    for _ in range(WALKS + 1):
        a.clear_gradient(False), b.clear_gradient(False)
        g = paddle.ones([3])
        (a + b).backward(g)
        for x in (a.grad, b.grad):
            assert not np.shares_memory(x.array, g.array)
        assert not np.shares_memory(a.grad.array, b.grad.array)
        with paddle.no_grad():
            a.grad.add_(paddle.ones([3]))
        assert (a.grad.tolist(), b.grad.tolist()) == ([2, 2, 2], [1, 1, 1])
    assert served(tapes.TAPES) == 1


def test_a_gradient_that_was_left_does_not_change():
    w, v = leaf(7, 6), leaf(6, 4)
    left = []
    for k in range(WALKS + 2):
        (both(w, v) * paddle.to_tensor(float(k))).backward()
        left.append((w.grad, w.grad.numpy()))
        w.clear_gradient(False)
    for now, then in left:
        np.testing.assert_array_equal(now.numpy(), then)


def test_a_hook_registered_later_is_called():
    w, v = leaf(7, 6), leaf(6, 4)
    seen = []
    for k in range(WALKS + 2):
        w.clear_gradient(False)
        if k == WALKS:
            assert served(tapes.TAPES) == 1
            handle = w.register_hook(lambda g: seen.append(1) or g * 0.0)
        both(w, v).backward()
        assert (np.abs(w.grad.numpy()).max() == 0) == (k == WALKS)
        if k == WALKS:
            handle.remove()
    assert seen == [1]


def test_a_hook_inside_is_called():
    w = leaf(3)

    def step(hook):
        y = w * w
        if hook:
            y.register_hook(lambda g: g * 10.0)
        return paddle.grad((y * y).sum(), w)

    plain, hooked = repeat(lambda: step(False)), repeat(lambda: step(True))
    np.testing.assert_allclose(hooked[0], 10 * plain[0], rtol=1e-6)


def test_a_graph_that_is_kept():
    for _ in range(WALKS + 1):
        x = leaf(3)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        np.testing.assert_allclose(x.grad.numpy(), 4 * x.numpy(), rtol=1e-6)
        with pytest.raises(RuntimeError, match="backward a second time through"):
            y.backward()
    assert served(tapes.TAPES) == 1


def test_grad_of_what_is_wanted():
    """The same tape, asked for other gradients."""
    x, w = leaf(3), leaf(3, seed=1)
    y = F.tanh(x * w)
    loss = (y * y * w).sum()
    for inputs in ([x], [w], [y], [w, x], [y, w]):
        repeat(lambda inputs=inputs: paddle.grad(loss, inputs, retain_graph=True))
    repeat(lambda: paddle.grad([loss, y.sum()], [x], [w.sum() * 1.0, None], retain_graph=True))
    unused = leaf(2)
    for _ in range(WALKS):
        found = paddle.grad(loss, [x, unused], retain_graph=True, allow_unused=True)
        assert found[1] is None
        with pytest.raises(RuntimeError, match="was not used"):
            paddle.grad(loss, [unused], retain_graph=True)
    assert served(tapes.TAPES) >= 6


def test_gradients_that_are_differentiated_again():
    x = leaf(3, dtype="float64")

    def step():
        (g,) = paddle.grad((x**3).sum(), x, create_graph=True)
        return paddle.grad((g * g).sum(), x)

    (found,) = repeat(step)
    np.testing.assert_allclose(found, 36 * x.numpy() ** 3, rtol=1e-12)


def test_blocked_values():
    x = leaf(3)

    def step():
        y = x * 2.0
        return paddle.grad((y * x).sum(), x, no_grad_vars=[y])

    (found,) = repeat(step)
    np.testing.assert_allclose(found, 2 * x.numpy(), rtol=1e-6)


def test_parts_without_gradient():
    x = leaf(3)

    def step():
        with paddle.no_grad():
            scale = x * 2.0
        return paddle.grad((scale * x).sum(), x)

    (found,) = repeat(step)
    np.testing.assert_allclose(found, 2 * x.numpy(), rtol=1e-6)


def test_several_results():
    x = leaf(6, 4)

    def step():
        a, b, c = paddle.split(x, 3)
        values, _ = paddle.topk(a * c, 2)
        return paddle.grad(values.sum() + paddle.unbind(b)[1].sum(), x)

    repeat(step)
    assert served(tapes.TAPES) == 1


def test_an_input_overwritten_since_is_an_error():
    for _ in range(WALKS + 1):
        x = leaf(3)
        y = x * 1.0
        z = (y * y).sum()
        y.add_(paddle.ones([3]))
        with pytest.raises(RuntimeError, match="was overwritten in place"):
            z.backward()
    for k in range(WALKS + 1):
        x = leaf(3)
        y = x * 1.0
        z = (y * y).sum()
        if k == WALKS:
            assert served(tapes.TAPES) == 1
            y.add_(paddle.ones([3]))
            with pytest.raises(RuntimeError, match="was overwritten in place"):
                z.backward()
        else:
            z.backward()


def test_parameters_that_a_step_overwrites():
    """Between a forward and a backward that is an error; after it the next step reads them."""

    def steps(count):
        paddle.seed(0)
        net = paddle.nn.Sequential(paddle.nn.Linear(7, 6), paddle.nn.Tanh(), paddle.nn.Linear(6, 4))
        optimizer = paddle.optimizer.Adam(0.1, parameters=net.parameters())
        for _ in range(count):
            F.cross_entropy(net(leaf(5, 7).detach()), paddle.arange(5) % 4).backward()
            optimizer.step()
            optimizer.clear_grad()
        return net.parameters()

    repeat(lambda: steps(6))
    assert served(tapes.TAPES) == 1


class Twice(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return g * 2.0


WALKED = {
    "PyLayer": lambda x: Twice.apply(x),
    "recompute": lambda x: paddle.distributed.fleet.utils.recompute(F.tanh, x),
}


@pytest.mark.parametrize("name", WALKED)
def test_what_is_walked(name):
    x = leaf(3)
    repeat(lambda: paddle.grad(WALKED[name](x).sum(), x))
    assert not tapes.TAPES.codes


def test_saved_tensors_that_are_packed():
    x, unpacked = leaf(3), []

    def step():
        with paddle.autograd.saved_tensors_hooks(
            lambda t: t.numpy(), lambda a: unpacked.append(1) or paddle.to_tensor(a)
        ):
            y = (x * x).sum()
        return paddle.grad(y, x)

    repeat(step)
    assert len(unpacked) == 2 * (WALKS + 1)


def test_a_readers_rule_is_followed():
    x = leaf(3)
    step = lambda: paddle.grad(F.tanh(x).sum(), x)
    repeat(step)
    assert served(tapes.TAPES) == 1
    with paddle.plugged("ops.tanh.vjp", lambda g: g * 0):
        assert step()[0].tolist() == [0, 0, 0]


def test_memory_is_released():
    arrays = []

    def step():
        w = leaf(7, 6)
        h = F.tanh(leaf(5, 7, seed=1) @ w)
        arrays.append(weakref.ref(h.array))
        loss = (h * h).sum()
        record = loss.record
        loss.backward()
        assert record.saved is FREED
        assert record.inputs[0].saved is FREED
        del h, record
        assert arrays[-1]() is None  # though the loss lives

    for _ in range(WALKS + 1):
        step()
    assert served(tapes.TAPES) == 1
    gc.collect()
    assert [there() for there in arrays] == [None] * len(arrays)


def test_counts_decide_who_computes(monkeypatch):
    monkeypatch.setattr(tapes, "CALL", 7)
    monkeypatch.setattr(hot.EagerKernel, "start", 20)
    monkeypatch.setattr(hot.EagerKernel, "serve", 41)
    x, how = leaf(3), []
    for _ in range(8):
        paddle.grad(x.exp(), x, paddle.ones([3]))
        how += [str(tape).split(", waited")[0] for tape in tapes.TAPES.codes.values()]
    assert how == [
        "NumPy, 10 elements so far",
        "NumPy, 20 elements so far", "NumPy, 30 elements so far", "NumPy, 40 elements so far",
        "C", "C", "C",
    ]  # fmt: skip
    assert "derivative of 2 records before exp : float32[3]: C" in hot.report()


def test_few_tapes_are_kept(monkeypatch):
    monkeypatch.setattr(tapes.TAPES, "most", 4)
    x = leaf(3)
    for k in range(10):
        for _ in range(2):
            paddle.grad((x * float(k)).sum(), x)
    assert len(tapes.TAPES.codes) == 4


def test_a_rule_that_cannot_be_traced_is_walked():
    asks = opaque(lambda m, x: x * 2)
    del OPS[asks.name]
    asks.infer = lambda x: x
    asks.vjp(lambda g: g * (2.0 if g.sum().item() > 0 else 3.0))
    x = leaf(3)
    (found,) = repeat(lambda: paddle.grad(asks(x).sum(), x))
    assert found.tolist() == [2, 2, 2]
    assert "NumPy: " in hot.report()


def test_nan_and_infinity():
    values = paddle.to_tensor([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38], stop_gradient=False)
    for function in (F.relu, F.softmax, paddle.sqrt, paddle.max, lambda x: x * x, paddle.logsumexp):
        step = lambda function=function: paddle.grad(function(values).sum(), values)
        repeat(step)


def test_a_thread_of_its_own():
    x, found = leaf(3), []
    repeat(lambda: paddle.grad((x * x).sum(), x))
    thread = threading.Thread(target=lambda: found.extend(paddle.grad((x * x).sum(), x)))
    thread.start()
    thread.join()
    np.testing.assert_allclose(found[0].numpy(), 2 * x.numpy(), rtol=1e-6)


def test_a_gradient_that_is_a_view_stays_one():
    """C would write 16,384 numbers that are equal."""
    x = leaf(128, 128)
    for step in (lambda: x.sum(), lambda: x.mean(), lambda: x.sum(0).sum()):
        (found,) = repeat(lambda step=step: paddle.grad(step(), x))
        assert paddle.grad(step(), x)[0].array.strides == (0, 0), found
    assert served(tapes.TAPES) == 0


def test_a_result_that_nothing_leads_to():
    x = leaf(3)
    with pytest.raises(RuntimeError, match="was not used"):
        paddle.grad(x.isnan(), x)
