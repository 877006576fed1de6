"""What goes into a program and comes out of it: which objects, which values, which gradients."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.jit import cache

to_static = paddle.jit.to_static


def agree(function, use):
    """Eager mode and the program give the same, at the first run and at a later one."""
    expected = use(function)
    static = to_static(function)
    for _ in range(2):
        assert use(static) == expected
    return expected


def computed(values=(1.0, 2.0)):
    """A leaf and a tensor computed from it."""
    a = paddle.to_tensor(list(values), stop_gradient=False)
    return a, a * 3


# ---- which objects -------------------------------------------------------------------------------


def test_an_argument_that_is_returned_is_the_argument():
    def use(f):
        x = paddle.ones([2])
        return f(x) is x, x.tolist()

    assert agree(lambda x: x, use)[0]
    assert agree(lambda x: x.add_(paddle.ones([2])), use) == (True, [2.0, 2.0])


def test_a_tensor_of_the_outside_that_is_returned_is_itself():
    w = paddle.create_parameter([2], "float32")
    assert agree(lambda x: [w, x], lambda f: f(paddle.ones([1]))[0] is w)


def test_one_result_given_twice_is_one_tensor():
    def twice(x):
        y = x * 2
        return y, y

    def use(f):
        a, b = f(paddle.ones([2]))
        return a is b

    assert agree(twice, use)


def test_a_leaf_that_is_returned_stays_a_leaf():
    def use(f):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        y, square = f(x)
        (y * square).sum().backward()
        return y is x, x.is_leaf, x.grad.tolist()

    assert agree(lambda x: (x, x * x), use) == (True, True, [3.0, 12.0])


def test_a_numpy_array_alone_is_returned_anew():
    def use(f):
        y = f(paddle.ones([2]))
        y += 1  # the caller's own: the next run gives ones again
        return type(y), y.tolist()

    assert agree(lambda x: np.ones(3), use) == (np.ndarray, [2.0, 2.0, 2.0])


# ---- in-place changes ----------------------------------------------------------------------------


@pytest.mark.parametrize("returns", [False, True])
def test_the_gradient_goes_through_an_argument_changed_in_place(returns):
    def double(x):
        x.multiply_(paddle.to_tensor([2.0, 2.0]))
        return x if returns else None

    def use(f):
        a, x = computed()
        f(x)
        (x * x).sum().backward()
        return a.grad.tolist(), x.stop_gradient

    assert agree(double, use) == ([72.0, 144.0], False)


def test_an_argument_without_gradient_gets_one_from_what_is_written():
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)

    def use(f):
        w.clear_grad()
        x = paddle.ones([2])
        f(x)
        (x * w).sum().backward()
        return w.grad.tolist()

    assert agree(lambda x: [x.multiply_(w)], use) == [2.0, 4.0]


def test_what_is_overwritten_by_numbers_leads_back_no_further():
    def overwrite(x):
        x[...] = 5.0

    def use(f):
        a, x = computed()
        f(x)
        (x * a).sum().backward()
        return a.grad.tolist()

    assert agree(overwrite, use) == [5.0, 5.0]


@pytest.mark.parametrize("quietly", [False, True])
def test_the_second_derivative_knows_what_an_argument_held(quietly):
    two = paddle.to_tensor([2.0, 2.0])

    def cube(x):
        y = x * x * x
        with paddle.no_grad() if quietly else paddle.enable_grad():
            x.multiply_(two)
        return y if quietly else x * x

    def apart(x):
        return x * x * x if quietly else (x * two) * (x * two)

    def use(f):
        a, x = computed()
        (g,) = paddle.grad(f(x).sum(), [a], create_graph=True)
        g.sum().backward()
        return g.tolist(), a.grad.tolist()

    expected = use(apart)
    assert use(to_static(cube)) == expected


@pytest.mark.parametrize("checked", [False, True])
def test_the_second_derivative_knows_what_a_tensor_outside_held(checked):
    def use(convert):
        w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        b = w * w

        def scaled(x):
            if checked:
                assert x.sum() > 0.0
            b.multiply_(x)
            return b * b

        y = convert(scaled)(paddle.to_tensor([2.0, 3.0])).sum()
        (g,) = paddle.grad(y, [w], create_graph=True)
        g.sum().backward()
        return g.tolist(), w.grad.tolist()

    assert use(to_static) == use(lambda f: f) == ([16.0, 288.0], [48.0, 432.0])


def test_a_leaf_that_wants_a_gradient_may_not_be_written():
    static = to_static(lambda x: x.add_(paddle.ones([2])))
    static(computed()[1])  # this one was computed
    with pytest.raises(ValueError, match="in-place change of a leaf"):
        static(computed()[0])


def test_in_a_branch_only_a_run_knows_whether_an_argument_is_a_leaf():
    def f(x):
        if x.sum() > 0:
            x[0] = 1.0
        return x

    with pytest.raises(ValueError, match=r"of an argument .* if it is a leaf(?s:.*)clone\(\)"):
        to_static(f)(computed()[1] + 9)


def test_a_buffer_written_with_a_gradient():
    class Scaled(nn.Layer):
        def __init__(self):
            super().__init__()
            self.w = self.create_parameter([2], default_initializer=nn.initializer.Constant(2.0))
            self.register_buffer("b", paddle.ones([2]))

        def forward(self, x):
            self.b.multiply_(self.w)
            return self.b

    found = []
    for layer in (Scaled(), to_static(Scaled())):
        out = layer(paddle.ones([2]))
        (out * layer.b).sum().backward()
        found.append((layer.w.grad.tolist(), out is layer.b))
    assert found == [([4.0, 4.0], True)] * 2


def einsum_of_two(x):
    return paddle.einsum("i,j->ij", x, x)


def einsum_of_one(x):
    return paddle.einsum("i->i", x)


def normalized(x):
    mean, var = paddle.zeros([2]), paddle.ones([2])
    return nn.functional.batch_norm(x.reshape([1, 2]) * x.reshape([2, 1]), mean, var, training=True)


def reshaped(x):
    return (x * 2).reshape([1, 2])


@pytest.mark.parametrize("compute", [einsum_of_two, einsum_of_one, normalized, reshaped])
def test_what_nobody_else_sees_may_be_changed(compute):
    def changed(x):
        y = compute(x)
        y.multiply_(x)
        y[0] = 1.0
        return y

    def use(f):
        a, x = computed()
        y = f(x)
        (y * y).sum().backward()
        return np.round(y.numpy(), 4).tolist(), np.round(a.grad.numpy(), 3).tolist(), x.tolist()

    agree(changed, use)


def test_what_a_changed_view_looks_into_may_not_be_used():
    def base_afterwards(x):
        y = x * 2
        y.reshape([1, 2]).add_(paddle.ones([2]))
        return y  # in eager mode it changed too

    def in_the_next_round(x, n):
        y = x * 1
        view, s = y.reshape([1, 2]), paddle.zeros([])
        while n > 0:
            s = s + y.sum()
            view.add_(paddle.ones([2]))
            n = n - 1
        return s

    class Kept(nn.Layer):
        def forward(self, x):
            self.y = x * 2
            self.y.reshape([1, 2]).add_(paddle.ones([2]))
            return x

    x, n = paddle.ones([2]), paddle.to_tensor(2)
    for call in (
        lambda: to_static(base_afterwards)(x),
        lambda: to_static(in_the_next_round)(x, n),
        lambda: to_static(Kept())(x),
    ):
        with pytest.raises(NotImplementedError, match="of which a view was changed in place"):
            call()


# ---- values --------------------------------------------------------------------------------------


def test_a_tensor_made_inside_begins_anew_in_every_run():
    def run(x):
        t = paddle.to_tensor([0.5])
        y = x * t
        t.set_value(t * 0.5)
        return y * t

    agree(run, lambda f: f(paddle.ones([1])).tolist())


def test_a_constant_that_is_returned_is_the_callers():
    def use(f):
        return f(paddle.ones([2])).add_(paddle.ones([2])).tolist()

    assert agree(lambda x: paddle.to_tensor([1.0, 2.0]), use) == [2.0, 3.0]


def test_to_tensor_of_a_tensor_copies_what_it_holds_in_each_run():
    w = paddle.to_tensor([1.0, 2.0])
    static = to_static(lambda x: x + paddle.to_tensor(w))
    assert static(paddle.zeros([2])).tolist() == [1.0, 2.0]
    w.set_value(paddle.to_tensor([3.0, 4.0]))
    assert static(paddle.zeros([2])).tolist() == [3.0, 4.0]


def test_stop_gradient_of_a_tensor_outside_is_asked_at_each_call():
    w, x = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0], stop_gradient=False)
    static = to_static(lambda x: x * w)
    for _ in range(5):  # also by the written-out road
        static(x).sum().backward()
    w.stop_gradient = False
    static(x).sum().backward()
    assert w.grad.tolist() == [3.0, 4.0]
    assert "stop_gradient is False, was True" in static.explain()


@pytest.mark.parametrize("key", [3, (...,), [3], slice(3, 4)])
@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
def test_one_element_is_assigned_whatever_axes_of_size_one_it_has(key, shape):
    def assign(p, t):
        p[key] = t
        return p

    def use(f):
        p = paddle.arange(5.0)
        f(p, paddle.full(shape, 7.0))
        return p.tolist()

    agree(assign, use)

    def gradients(f):
        a, t = paddle.ones([5]), paddle.full(shape, 7.0)
        a.stop_gradient = t.stop_gradient = False
        (f(a * 2, t) ** 2).sum().backward()
        return a.grad.tolist(), t.grad.tolist()

    agree(assign, gradients)


def test_an_element_at_a_tensors_place_is_assigned():
    def assign(p, k, t):
        p[k] = t
        return p

    k = paddle.to_tensor(3)
    agree(assign, lambda f: f(paddle.zeros([5]), k, paddle.ones([1])).tolist())


def test_a_tensor_without_axes_is_changed_in_place():
    def add(y):
        z = y * 2
        z[...] += 1
        (z * z).backward()
        return z, y.grad

    def use(f):
        y = paddle.to_tensor(3.0, stop_gradient=False)
        return [t.tolist() for t in f(y)]

    assert agree(add, use) == [7.0, 28.0]


def test_a_loop_with_both_jumps_on_a_condition_of_one_axis():
    def run(x):
        s, i = paddle.zeros([1]), paddle.zeros([1])
        while i < x:
            i = i + 1
            if i < 5:
                continue
            if s > 10:
                break
            s = s + i
        return s

    assert agree(run, lambda f: f(paddle.full([1], 10.0)).tolist()) == [11.0]


# ---- the learning rate ---------------------------------------------------------------------------


def test_a_rate_is_read_at_each_run():
    rate = paddle.optimizer.lr.StepDecay(0.5, 1)
    sgd = paddle.optimizer.SGD(rate, parameters=nn.Linear(1, 1).parameters())
    static = to_static(lambda x: x * rate() + sgd.get_lr() + rate.last_lr)
    for k in range(3):
        assert static(paddle.ones([1])).item() == pytest.approx(1.5 * 0.1**k, rel=1e-6)
        rate.step()


def test_a_rate_after_its_step_is_refused():
    rate = paddle.optimizer.lr.StepDecay(0.5, 1)

    def stepped(x):
        rate.step()
        try:
            return x * rate()
        except NotImplementedError:
            return x

    with pytest.raises(NotImplementedError, match=r"after its schedule's step\(\)"):
        to_static(stepped)(paddle.ones([1]))
    with pytest.raises(NotImplementedError, match="scheduler\\(\\) is the rate at each run"):
        to_static(lambda x: x * rate.get_lr())(paddle.ones([1]))


def test_a_schedule_made_inside_is_made_in_every_run():
    def run(x):
        rate = paddle.optimizer.lr.NoamDecay(8, 4)
        first = rate()
        rate.step()
        rate.step()
        return x * rate() + first + rate.get_lr()

    agree(run, lambda f: f(paddle.ones([2])).tolist())

    def in_a_branch(x):
        rate = paddle.optimizer.lr.NoamDecay(8, 4)
        if x.sum() > 0:
            rate.step()
        return x * rate()

    with pytest.raises(NotImplementedError, match="inside a branch"):
        to_static(in_a_branch)(paddle.ones([2]))


def test_an_optimizer_made_inside_reads_a_schedule_made_inside():
    def run(x):
        w = paddle.to_tensor([1.0, 1.0], stop_gradient=False)
        rate = paddle.optimizer.lr.StepDecay(0.5, 1)
        sgd = paddle.optimizer.SGD(rate, parameters=[w])
        for _ in range(2):
            (w * x).sum().backward()
            sgd.step()
            sgd.clear_grad()
            rate.step()
        return w.detach() * 1

    agree(run, lambda f: f(paddle.ones([2])).tolist())


# ---- the cache -----------------------------------------------------------------------------------


def test_the_program_used_longest_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(cache, "MOST", 3)
    static = to_static(lambda x: x + 1)
    for n in (1, 2, 3, 1, 4, 1, 3, 2):  # 4 takes the place of 2, then 2 that of 4
        assert static(paddle.zeros([n])).tolist() == [1.0] * n
    found = static.program_cache
    assert len(found) == 3
    assert (found.added, found.calls, len(found.misses)) == (5, 8, 5)
    assert [key.specs[0][0] for key in found.entries] == [(1,), (3,), (2,)]
