"""A call that was written out does what the ordinary road does, or leaves it to that."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler

OFTEN = 2  # calls, after which a stub serves

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def often(function, *args):
    """Call it until its road is written out."""
    for _ in range(OFTEN):
        result = function(*args)
    assert function.stubs
    return result


def native(function):
    return paddle.jit.to_static(function, backend="native")


class Roads:
    """Counts the calls that take the ordinary road."""

    def __init__(self, function):
        self.function, self.ordinary = function, 0
        run = function.run

        def counted(*args):
            self.ordinary += 1
            return run(*args)

        function.run = counted

    def __call__(self, *args, **kwargs):
        """(result, did it take the ordinary road?)"""
        before = self.ordinary
        return self.function(*args, **kwargs), self.ordinary > before


def trained(convert=lambda step: step):
    """A net and its training step."""
    paddle.seed(3)
    net = paddle.nn.Sequential(paddle.nn.Linear(6, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 3))
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    def step(x, y):
        loss = paddle.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return net, adam, convert(step)


def batch(k):
    classes = np.random.default_rng(k).integers(0, 3, 5)
    return paddle.to_tensor(numbers(5, 6, seed=k)), paddle.to_tensor(classes)


def test_training_goes_on_as_in_eager_mode_whatever_happens_between_the_steps():
    (a, adam_a, eager), (b, adam_b, step) = trained(), trained(native)
    roads = Roads(step)
    for k in range(24):
        x, y = batch(k)
        wanted, (loss, ordinary) = eager(x, y), roads(x, y)
        assert loss.item() == pytest.approx(wanted.item(), rel=1e-4), k
        assert ordinary is (k < OFTEN or k in (10, 11)), k
        for net, adam in ((a, adam_a), (b, adam_b)):
            if k == 6:
                adam.set_lr(0.003)
            if k == 9:  # somebody looks at a gradient that was cleared: zeros are made
                assert net[0].weight.grad.abs().sum().item() == 0
            if k == 10:
                net.eval()
            if k == 11:
                net.train()
            if k == 14:
                net[0].weight.set_value(numbers(6, 8, seed=99))
            if k == 16:
                net[0].bias.data = paddle.zeros([8])
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-3, atol=1e-5)
    assert step.cache.calls == 24


def test_a_result_that_somebody_holds_stays_as_it_is():
    f = native(lambda x: (x + 1, [x * 2, 7]))
    x = paddle.to_tensor(numbers(4))
    often(f, x)
    kept = [f(paddle.full([4], float(k))) for k in range(5)]
    views = [y.numpy()[1:] for y, _ in kept]
    more = f(paddle.full([4], 50.0))
    del more
    f(paddle.full([4], 60.0))
    for k, (y, (z, seven)) in enumerate(kept):
        assert (y.tolist(), z.tolist()) == ([k + 1.0] * 4, [2.0 * k] * 4)
        assert (views[k].tolist(), seven) == ([k + 1.0] * 3, 7)


def test_memory_is_used_again_when_nobody_holds_it_and_looks_new():
    f = native(lambda x: x + 1)
    x = paddle.to_tensor(numbers(4))
    often(f, x)
    y = f(x)
    place = y.array.ctypes.data
    del y
    y = f(x)
    assert y.array.ctypes.data == place
    y.add_(y)
    assert y.inplace_version == 1
    del y
    assert f(x).inplace_version == 0
    big = native(lambda x: x + 1)
    x = paddle.zeros([1 << 17])
    often(big, x)
    gone = weakref.ref(big(x).array)
    assert gone() is None


def test_memory_that_is_used_again_begins_where_a_vector_does():
    f = native(lambda x: x + 1)
    often(f, paddle.zeros([40]))
    y = f(paddle.zeros([40]))
    place = y.array.ctypes.data
    assert place % 64 == 0
    view, part = y.array[1:], y[2:]
    del y
    other = f(paddle.ones([40]))
    assert other.array.ctypes.data != place  # somebody looks at a part of the result
    assert view.tolist() == [1.0] * 39
    assert part.tolist() == [1.0] * 38


def test_a_class_may_change_the_mode_of_its_layers():
    class Dropped(paddle.nn.Layer):
        def forward(self, x):
            return x * (2.0 if self.training else 3.0)

    layer = Dropped()
    f = native(layer.forward)
    often(f, paddle.ones([3]))
    Dropped.training = False
    assert f(paddle.ones([3])).tolist() == [3.0] * 3
    Dropped.training = True
    assert f(paddle.ones([3])).tolist() == [2.0] * 3
    layer.eval()
    assert f(paddle.ones([3])).tolist() == [3.0] * 3


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (x.astype("float64"),),
        lambda x: (x[:2],),
        lambda x: (paddle.to_tensor(x.numpy(), stop_gradient=False),),
        lambda x: (x.T.clone().T,),
        lambda x: ([x],),
        lambda x: (x, 2),
        lambda x: (x.numpy(),),
    ],
    ids=["dtype", "shape", "stop_gradient", "strides", "nesting", "constant", "array"],
)
def test_other_arguments_take_the_ordinary_road(other):
    def f(x, k=1):
        x = x[0] if isinstance(x, list) else paddle.to_tensor(x)
        return (x * k).sum(0)

    g, x = native(f), paddle.to_tensor(numbers(3, 3))
    often(g, x)
    given = other(x)
    np.testing.assert_allclose(g(*given).numpy(), f(*given).numpy(), rtol=1e-5)
    np.testing.assert_allclose(g(x).numpy(), f(x).numpy(), rtol=1e-5)


def test_constants_and_nests_are_told_apart():
    def f(pair, k, name=None):
        return pair[0] * k + pair[1][0]

    g = native(f)
    x, y = paddle.to_tensor([1.0]), paddle.to_tensor([5.0])
    often(g, [x, (y,)], 3)
    roads = Roads(g)
    assert roads([x, (y,)], 3)[1] is False
    assert roads([x, (y,)], 4)[0].item() == 9
    assert roads([y, (x,)], 3)[0].item() == 16
    assert roads([x, (y,)], True)[0].item() == 6
    assert g([x, (y,)], 3, name="n").item() == 8


def test_a_gradient_flows_through_a_written_out_call():
    w = paddle.create_parameter([3], "float32")
    w.set_value(numbers(3))
    f = native(lambda x: (x * w).tanh())
    x = paddle.to_tensor(numbers(3, seed=1), stop_gradient=False)
    for _ in range(OFTEN + 2):
        w.clear_gradient()
        x.clear_gradient()
        first, second = f(x), f(x + 1)
        (first.sum() + 2 * second.sum()).backward()
    t = np.tanh
    slope = lambda v: 1 - t(v) ** 2
    a, v = x.numpy(), w.numpy()
    np.testing.assert_allclose(
        w.grad.numpy(), a * slope(a * v) + 2 * (a + 1) * slope((a + 1) * v), rtol=1e-4
    )
    np.testing.assert_allclose(x.grad.numpy(), v * slope(a * v) + 2 * v * slope((a + 1) * v), 1e-4)
    with paddle.no_grad():
        assert f(x).stop_gradient


def test_an_input_that_shares_memory_with_a_weight_takes_the_ordinary_road():
    net = paddle.nn.Linear(3, 3)
    sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    def step(x):
        net(x).sum().backward()
        sgd.step()
        sgd.clear_grad()
        return x.sum()

    g = native(step)
    often(g, paddle.ones([3, 3]))
    roads = Roads(g)
    assert roads(paddle.ones([3, 3]))[1] is False
    assert roads(net.weight.detach())[1] is True


def test_an_index_that_is_bad_is_told_and_the_next_call_is_right():
    table = paddle.to_tensor(numbers(5, 2))
    f = native(lambda k: paddle.gather(table, k) * 2)
    good = paddle.to_tensor([0, 4])
    wanted = often(f, good).numpy()
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        f(paddle.to_tensor([0, 5]))
    np.testing.assert_array_equal(f(good).numpy(), wanted)


def test_random_numbers_go_on():
    f = native(lambda x: paddle.nn.functional.dropout(x, 0.5))
    x = paddle.ones([64])
    paddle.seed(7)
    ordinary = [f(x).numpy() for _ in range(OFTEN)] + [f(x).numpy() for _ in range(3)]
    paddle.seed(7)
    again = [f(x).numpy() for _ in range(OFTEN + 3)]
    for a, b in zip(ordinary, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len({a.tobytes() for a in again}) == OFTEN + 3


def test_a_plugged_slot_is_asked():
    w = paddle.zeros([2])

    def f(x):
        w.set_value(w + x)
        return w * 1

    g, x = native(f), paddle.ones([2])
    often(g, x)
    seen = []

    def mine(captured, inputs, outputs):
        seen.append(len(outputs))

    with paddle.plugged("jit.write_back", mine):
        for _ in range(OFTEN + 2):
            g(x)
    assert len(seen) == OFTEN + 2
    assert g(x)[0].item() == w[0].item()


def test_two_threads_call_at_once():
    f = native(lambda x: paddle.matmul(x, x).tanh().sum())
    xs = [paddle.to_tensor(numbers(40, 40, seed=k) * 0.1) for k in range(4)]
    wanted = [f(x).item() for x in xs]
    often(f, xs[0])
    wrong = []

    def work(k):
        for _ in range(200):
            if f(xs[k]).item() != wanted[k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_switched_off_function_runs_as_it_is_written():
    g, x = native(lambda x: x * 2), paddle.ones([2])
    often(g, x)
    g.function = lambda x: "as it is written"
    assert g(x).tolist() == [2.0, 2.0]
    paddle.jit.enable_to_static(False)
    try:
        assert g(x) == "as it is written"
    finally:
        paddle.jit.enable_to_static(True)


def python_calls(function):
    """The functions in Python that a call runs."""
    seen = []
    sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code.co_name))
    function()
    sys.setprofile(None)
    return seen[1:]  # of `function` itself


@pytest.mark.parametrize("depth", [1, 12])
def test_a_training_step_runs_no_python_however_many_states_it_has(depth):
    nn = paddle.nn
    net = nn.Sequential(*(part for _ in range(depth) for part in (nn.Linear(4, 4), nn.Tanh())))
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    g, x = native(step), paddle.to_tensor(numbers(3, 4))
    often(g, x)
    g(x)
    assert python_calls(lambda: g(x)) == []
    net[0].weight.data = paddle.zeros([4, 4])
    replaced = python_calls(lambda: g(x))
    assert replaced.count("again") == 1
    assert python_calls(lambda: g(x)) == []
    y = paddle.to_tensor(numbers(3, 4, seed=1))
    assert python_calls(lambda: g(y)).count("bind") == 1


def test_writes_are_counted_by_programs_and_by_hand():
    w = paddle.create_parameter([3], "float32")

    def step(x):
        w.set_value(w + x.sum())
        return x.sum()

    f, one, two = native(step), paddle.ones([1]), paddle.ones([2])
    for x in (one, two):
        for _ in range(OFTEN + 2):
            f(x)
    assert len(f.stubs) == 2
    before = w.inplace_version
    for k, call in enumerate([lambda: f(one), lambda: f(two), lambda: w.zero_(), lambda: f(one)]):
        call()
        assert w.inplace_version == before + k + 1
    w.data = paddle.zeros([3])
    f(one)
    f(two)
    assert w.inplace_version == 2
    assert w.tolist() == [3.0] * 3


def test_a_tape_notices_what_a_program_has_written():
    w = paddle.create_parameter([3], "float32")
    v = paddle.ones([3])
    v.stop_gradient = False

    def step(x):
        w.set_value(w + x)
        return x.sum()

    f, x = native(step), paddle.ones([3])
    often(f, x)
    f(x)
    y = (v * w).sum()
    f(x)
    with pytest.raises(RuntimeError, match="overwritten"):
        y.backward()


def test_settings_are_those_of_the_thread_that_calls():
    w = paddle.create_parameter([3], "float32")
    f, x = native(lambda x: x * w), paddle.ones([3])
    often(f, x)
    assert not f(x).stop_gradient
    seen = []

    def other():
        with paddle.no_grad():
            seen.append(f(x).stop_gradient)
        seen.append(f(x).stop_gradient)

    for _ in range(2):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert not f(x).stop_gradient
    assert seen == [True, False] * 2
    with paddle.no_grad():
        assert f(x).stop_gradient
    w.stop_gradient = True
    assert f(x).stop_gradient
    w.stop_gradient = False
    assert not f(x).stop_gradient


def test_other_default_settings_are_noticed():
    f, x = native(lambda x: x + paddle.ones([2])), paddle.ones([2])
    often(f, x)
    for dtype in ("float64", "float32", "float64"):
        paddle.set_default_dtype(dtype)
        try:
            assert str(f(x).dtype) == f"paddle.{dtype}"
        finally:
            paddle.set_default_dtype("float32")


def test_errors_take_the_ordinary_road():
    f, x = native(lambda x, k=2: x * k), paddle.ones([2])
    often(f, x)
    with pytest.raises(TypeError):
        f(x, 2, 3)
    with pytest.raises(TypeError):
        f()
    assert f(x).tolist() == [2.0, 2.0]


def test_a_call_with_keywords_is_written_out_for_each_order_of_them():
    def f(x, *more, scale=2, shift=None, **others):
        for k, each in enumerate([*more, shift, *others.values()]):
            x = x * scale + each * (k + 1)
        return x

    roads, (x, y, z) = Roads(native(f)), (paddle.to_tensor(numbers(3, seed=k)) for k in range(3))
    calls = [
        lambda x: roads(x, y, shift=z),
        lambda x: roads(x, shift=z, scale=3),
        lambda x: roads(scale=3, shift=z, x=x),
        lambda x: roads(x, **{"".join(["shi", "ft"]): z, "a": y, "b": x}),
    ]
    expected = [f(x, y, shift=z), f(x, shift=z, scale=3), f(x, shift=z, scale=3)]
    expected.append(f(x, shift=z, a=y, b=x))
    for call in calls:
        for _ in range(OFTEN):
            call(paddle.ones([3]))
    for call, result in zip(calls, expected, strict=True):
        again, ordinary = call(x)
        assert not ordinary
        np.testing.assert_allclose(again, result, rtol=1e-6)
    for arguments in ({"shift": z, "b": y, "a": x}, {"shift": z, "scale": 4}, {"shift": x, "c": y}):
        again, ordinary = roads(x, **arguments)  # other names, another order, another constant
        assert ordinary
        np.testing.assert_allclose(again, f(x, **arguments), rtol=1e-6)


def test_layers_and_methods_are_called_with_keywords():
    class Scaled(paddle.nn.Layer):
        def forward(self, x, mask=None, *, scale=1.0):
            return x * scale if mask is None else x * mask * scale

    class Plain:
        @native
        def times(self, x, k=2):
            return x * k

    net, x, mask = paddle.jit.to_static(Scaled(), backend="native"), paddle.ones([2]), numbers(2)
    mask, plain = paddle.to_tensor(mask), Plain()
    calls = [lambda: net(x, mask=mask, scale=3.0), lambda: net(x, scale=3.0)]
    for call in (*calls, lambda: plain.times(x, k=3), lambda: plain.times(x=x)):
        for _ in range(OFTEN):
            call()
    roads = net.forward = Roads(net.forward)
    for _ in range(2):
        assert net(x, scale=3.0)[0].tolist() == [3.0, 3.0]
        np.testing.assert_allclose(net(x, mask=mask, scale=3.0)[0], mask * 3.0)
        assert plain.times(x, k=3).tolist() == [3.0, 3.0]
        assert plain.times(x=x).tolist() == [2.0, 2.0]
    assert roads.ordinary == 0
    assert len(plain.times.stubs) == 2


def test_a_wrong_keyword_is_told_as_python_tells_it():
    f, x = native(lambda x, *, k=2: x * k), paddle.ones([2])
    often(f, x)
    for _ in range(OFTEN):
        f(x, k=2)
    for arguments, message in (({"c": 1}, "unexpected keyword argument 'c'"), ({"x": x}, "'x'")):
        with pytest.raises(TypeError, match=message) as caught:
            f(x, **arguments)
        assert caught.traceback[0].path.name == "test_bound.py"
    assert f(x, k=2).tolist() == [2.0, 2.0]


def test_a_stub_and_what_it_holds_are_freed():
    def used():
        w, x = paddle.ones([1 << 10]), paddle.ones([1 << 10])
        f = native(lambda x: x + w)
        often(f, x)
        f(x)
        f(paddle.zeros([1 << 10]))
        return [weakref.ref(x) for x in (w.array, f, f.stubs[0][1])]

    gone = used()
    gc.collect()
    assert [each() for each in gone] == [None] * 3
