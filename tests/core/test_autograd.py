"""backward, grad, the switches, hooks, PyLayer, in-place writes, and the memory of a long tape."""

import gc
import math
import tracemalloc
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.autograd import PyLayer
from minipaddle.engine.core.op import OPS, opaque


def leaf(data, dtype="float64"):
    return paddle.to_tensor(data, dtype=dtype, stop_gradient=False)


# ---- backward --------------------------------------------------------------------------------


def test_backward_accumulates_until_cleared():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]
    x.clear_gradient()
    assert x.grad.tolist() == [0.0, 0.0]
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None
    (3 * x).sum().backward()
    x.clear_grad()
    assert x.grad.tolist() == [0.0, 0.0]


def test_a_value_used_twice_gets_both_gradients():
    x = leaf(3.0)
    y = x * x
    (y * y + y).backward()
    assert x.grad.item() == 4 * 27 + 6


def test_gradients_of_several_leaves_do_not_share_memory():
    x, y, seed = leaf([1.0]), leaf([2.0]), leaf([1.0]).detach()
    (x + y).backward(seed)
    x.grad.set_value(np.array([7.0]))
    assert y.grad.tolist() == [1.0]
    assert seed.tolist() == [1.0]


def test_a_gradient_given_weighs_the_elements():
    x = leaf([1.0, 2.0])
    (x * x).backward(paddle.to_tensor([1.0, 10.0], dtype="float64"))
    assert x.grad.tolist() == [2.0, 40.0]


def test_backward_without_a_gradient_sums():
    x = leaf([1.0, 2.0])
    (x * x).backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_gradient_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="expected: the same shape"):
        (leaf([1.0, 2.0]) * 2).backward(paddle.ones([3]))


def test_backward_of_a_leaf():
    x = leaf([1.0, 2.0])
    x.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_backward_from_nothing_is_taught():
    with pytest.raises(RuntimeError, match="stop_gradient"):
        paddle.ones([1]).backward()


def test_a_second_backward_says_what_to_do():
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="backward a second time through multiply") as error:
        y.backward()
    assert "retain_graph=True" in str(error.value)


def test_retain_graph():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0


def test_backward_of_several_tensors():
    x = leaf([1.0, 2.0])
    weight = paddle.to_tensor([5.0, 5.0], dtype="float64")
    paddle.autograd.backward([x * 2, x * 3], [None, weight])
    assert x.grad.tolist() == [17.0, 17.0]
    with pytest.raises(ValueError, match="2 results but 1 gradients"):
        paddle.autograd.backward([x * 2, x * 3], [weight])


def test_broadcast_inputs_get_sums():
    x, b = leaf(np.ones((2, 3))), leaf(np.ones(3))
    (x * b * 2).sum().backward()
    assert b.grad.tolist() == [4.0, 4.0, 4.0]
    assert x.grad.shape == [2, 3]


def test_a_cotangent_has_the_dtype_of_its_input():
    x = leaf([1.0, 2.0], "float32")
    y = leaf([3.0, 4.0])
    (x * y).sum().backward()
    assert x.grad.dtype == paddle.float32
    assert y.grad.dtype == paddle.float64


def test_what_has_no_derivative_stops_the_tape():
    x = leaf([1.5, 2.5])
    assert (x > 2).stop_gradient
    assert paddle.argmax(x).stop_gradient


def test_an_unused_result_of_several():
    x = leaf([[4.0, 1.0], [1.0, 3.0]])
    w, v = paddle.linalg.eigh(x)
    w.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(2), atol=1e-12)
    assert v.shape == [2, 2]


# ---- grad ------------------------------------------------------------------------------------


def test_grad_leaves_dot_grad_alone():
    x = leaf(3.0)
    (dx,) = paddle.grad(x * x, x)
    assert dx.item() == 6.0
    assert x.grad is None
    assert dx.stop_gradient


def test_grad_to_third_order():
    x = leaf(2.0)
    (d1,) = paddle.grad(x**4, x, create_graph=True)
    (d2,) = paddle.grad(d1, x, create_graph=True)
    (d3,) = paddle.grad(d2, x)
    assert (d1.item(), d2.item(), d3.item()) == (32.0, 48.0, 48.0)


def test_grad_to_third_order_of_a_composition():
    """As Cauchy's formula has it: from values on a circle around the place."""
    data, circle = np.array([0.3, -0.7, 1.1]), 0.5 * np.exp(2j * np.pi * np.arange(64) / 64)
    around = data[:, None] + circle
    values = np.exp(np.sin(around)) / (1 + around**2)
    x = leaf(data)
    y = paddle.exp(paddle.sin(x)) / (1 + x * x)
    for order in (1, 2, 3):
        (y,) = paddle.grad(y.sum(), x, create_graph=True)
        expected = math.factorial(order) * (values / circle**order).mean(1).real
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-11)


def test_grad_by_several_inputs_and_outputs():
    x, y = leaf(2.0), leaf(3.0)
    dx, dy = paddle.grad([x * y, x * x], [x, y])
    assert (dx.item(), dy.item()) == (3.0 + 4.0, 2.0)


def test_grad_by_a_computed_tensor():
    x = leaf(2.0)
    y = x * x
    (dy,) = paddle.grad(y**3, y)
    assert dy.item() == 48.0


def test_grad_outputs():
    x = leaf([1.0, 2.0])
    (dx,) = paddle.grad(x * x, x, grad_outputs=paddle.to_tensor([1.0, 10.0], dtype="float64"))
    assert dx.tolist() == [2.0, 40.0]


def test_unused_inputs():
    x, y = leaf(2.0), leaf(3.0)
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        paddle.grad(x * x, [x, y])
    dx, dy = paddle.grad(x * x, [x, y], allow_unused=True)
    assert (dx.item(), dy) == (4.0, None)


def test_no_grad_vars_block_a_path():
    x = leaf(2.0)
    y = x * x
    (dx,) = paddle.grad(y * x, x, no_grad_vars=[y])
    assert dx.item() == 4.0


def test_grad_retains_when_told():
    x = leaf(2.0)
    y = x * x
    paddle.grad(y, x, retain_graph=True)
    paddle.grad(y, x)
    with pytest.raises(RuntimeError, match="a second time"):
        paddle.grad(y, x)


# ---- switches --------------------------------------------------------------------------------


def test_no_grad_as_context_and_decorator():
    x = leaf(2.0)
    with paddle.no_grad():
        assert not paddle.is_grad_enabled()
        assert (x * x).stop_gradient
    assert paddle.is_grad_enabled()

    @paddle.no_grad()
    def square(x):
        return x * x

    assert square(x).stop_gradient
    assert paddle.no_grad(lambda x: x * x)(x).stop_gradient
    assert not (x * x).stop_gradient


def test_no_grad_ends_with_an_exception():
    with pytest.raises(KeyError), paddle.no_grad():
        raise KeyError
    assert paddle.is_grad_enabled()


def test_enable_grad_inside_no_grad():
    x = leaf(2.0)
    with paddle.no_grad():
        with paddle.enable_grad():
            assert not (x * x).stop_gradient
        assert not paddle.enable_grad(lambda: x * x)().stop_gradient
        assert (x * x).stop_gradient


def test_set_grad_enabled_as_function_and_context():
    with paddle.set_grad_enabled(False):
        assert not paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()
    before = paddle.set_grad_enabled(False)
    assert not paddle.is_grad_enabled()
    with before:
        pass
    assert paddle.is_grad_enabled()


def test_modes():
    assert paddle.in_dynamic_mode()
    assert paddle.disable_static() is None
    paddle.enable_static()
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()


def test_stop_gradient_and_detach():
    x = leaf([1.0, 2.0])
    y = (x * 2).detach()
    assert y.stop_gradient
    assert y.is_leaf
    z = x * 3
    z.stop_gradient = True
    assert (z * 2).stop_gradient
    (x * y).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    w = (x * 2).detach_()
    assert w.stop_gradient
    assert w.record is None


def test_is_leaf():
    x = leaf(1.0)
    assert x.is_leaf
    y = x * 2
    assert x.is_leaf
    assert not y.is_leaf


# ---- hooks -----------------------------------------------------------------------------------


def test_a_hook_sees_and_changes_the_gradient():
    x, seen = leaf([1.0, 2.0]), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = x.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1.0, 1.0]]
    assert x.grad.tolist() == [20.0, 20.0]
    x.clear_grad()
    assert handle.remove()
    assert not handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_hook_on_a_computed_tensor_changes_what_flows_on():
    x = leaf(2.0)
    y = x * 3
    y.register_hook(lambda g: g * 0)
    (y * y).backward()
    assert x.grad.item() == 0.0


def test_a_hook_needs_a_gradient():
    with pytest.raises(RuntimeError, match="it gets no gradient"):
        paddle.ones([1]).register_hook(lambda g: g)


def test_retain_grads():
    x = leaf(2.0)
    y = x * 3
    y.retain_grads()
    x.retain_grads()
    (y * y).backward()
    assert y.grad.item() == 12.0
    assert x.grad.item() == 36.0


def test_saved_tensors_hooks():
    x, packed, unpacked = leaf([1.0, 2.0]), [], []

    def pack(t):
        packed.append(t.shape)
        return t.numpy()

    def unpack(a):
        unpacked.append(a.shape)
        return paddle.to_tensor(a)

    with paddle.autograd.saved_tensors_hooks(pack, unpack):
        y = paddle.exp(x * x) + paddle.linalg.eigh(x.reshape([1, 2]).T @ x.reshape([1, 2]))[0]
    expected = paddle.grad(
        paddle.exp(x * x) + paddle.linalg.eigh(x.reshape([1, 2]).T @ x.reshape([1, 2]))[0], x
    )
    assert packed[:2] == [[2], [2]]
    assert not unpacked
    y.sum().backward()
    assert len(unpacked) == len(packed)
    np.testing.assert_allclose(x.grad.numpy(), expected[0].numpy())


# ---- PyLayer ---------------------------------------------------------------------------------


class Power(PyLayer):
    """x^n and 2x, with what a PyLayer may keep: an input, a result, a number."""

    @staticmethod
    def forward(ctx, x, n, shift=0):
        y = x**n
        ctx.save_for_backward(x, y)
        ctx.n = n
        return y, x * 2 + shift

    @staticmethod
    def backward(ctx, gy, gz):
        x, y = ctx.saved_tensor()
        return gy * ctx.n * y / x + gz * 2


def test_pylayer_to_second_order():
    x = leaf([2.0, 3.0])
    y, z = Power.apply(x, 3)
    assert not y.stop_gradient
    (dx,) = paddle.grad((y * z).sum(), x, create_graph=True)
    np.testing.assert_allclose(dx.numpy(), 8 * np.array([8.0, 27.0]))
    (ddx,) = paddle.grad(dx.sum(), x)
    np.testing.assert_allclose(ddx.numpy(), 24 * np.array([4.0, 9.0]))


def test_pylayer_with_one_of_its_results():
    x = leaf([2.0])
    y, _ = Power.apply(x, 3, shift=1)
    y.backward()
    assert x.grad.item() == 12.0
    with pytest.raises(RuntimeError, match="a second time through Power"):
        y.backward()


def test_pylayer_without_gradients():
    y, z = Power.apply(paddle.ones([1]), 2)
    assert y.stop_gradient
    with paddle.no_grad():
        y, z = Power.apply(leaf([2.0]), 2)
    assert y.stop_gradient
    assert z.stop_gradient


def test_pylayer_keeps_nothing_alive():
    x = leaf([2.0])
    y, _ = Power.apply(x, 3)
    gone = weakref.ref(y)
    gc.disable()
    try:
        del y, _
        assert gone() is None
    finally:
        gc.enable()


class Product(PyLayer):
    @staticmethod
    def forward(ctx, pair, *, scale=1.0):
        ctx.save_for_backward(*pair)
        ctx.scale = scale
        out = pair[0] * pair[1] * scale
        sign = paddle.sign(out)
        ctx.mark_non_differentiable(sign)
        ctx.mark_not_inplace(out)
        return [out, sign, "text"]

    @staticmethod
    def backward(ctx, g, _):
        return g * ctx.saved_tensor()[1] * ctx.scale, None


def test_pylayer_with_lists_other_values_and_no_gradient():
    a, b = leaf([2.0]), leaf([3.0])
    out, sign, text = Product.apply([a, b], scale=2.0)
    assert text == "text"
    assert sign.stop_gradient
    out.backward()
    assert a.grad.item() == 6.0
    assert b.grad is None


def wrong(result):
    class Wrong(PyLayer):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return result

    return Wrong


@pytest.mark.parametrize("result", [None, (None,), (1.0, 2.0), (None, None, None)])
def test_pylayer_with_a_wrong_backward(result):
    with pytest.raises(ValueError, match="for each of the 2 tensors"):
        wrong(result).apply(leaf([1.0]), leaf([1.0])).backward()


def test_pylayer_with_a_gradient_of_the_wrong_shape():
    layer = wrong((paddle.ones([3]), None))
    with pytest.raises(ValueError, match=r"derivative of Wrong for input 0 has shape \[3\]"):
        layer.apply(leaf([1.0]), leaf([1.0])).backward()


def test_a_rule_that_returns_a_tuple_is_named():
    @opaque
    def doubled_twice(m, x, y):
        return 2 * x + 2 * y

    doubled_twice.shape(lambda x, y: x)
    doubled_twice.vjp(x=lambda g: 2 * g, y=lambda g: (2 * g, 2 * g))
    try:
        with pytest.raises(TypeError, match="rule of doubled_twice for input 1 gives a tuple"):
            doubled_twice(leaf([1.0]), leaf([1.0])).backward()
    finally:
        del OPS["doubled_twice"]


def test_pylayer_that_returns_its_input():
    class Tenfold(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf([1.0])
    y = Tenfold.apply(x)
    assert y is not x
    y.backward()
    assert x.grad.item() == 10.0


def test_pylayer_refuses_overwritten_tensors():
    x = leaf([2.0])
    h = x * 1
    y, _ = Power.apply(h, 2)
    with paddle.no_grad():
        h.set_value(np.array([5.0]))
    with pytest.raises(RuntimeError, match="overwritten in place"):
        y.backward()


def test_pylayer_needs_its_methods():
    with pytest.raises(NotImplementedError, match="forward"):
        PyLayer.apply(leaf([1.0]))
    with pytest.raises(NotImplementedError, match="backward"):
        PyLayer.backward(None)
    with pytest.raises(NotImplementedError, match="set_materialize_grads"):
        paddle.autograd.PyLayerContext().set_materialize_grads(False)
    paddle.autograd.PyLayerContext().set_materialize_grads(True)


# ---- in place --------------------------------------------------------------------------------


def test_backward_over_an_overwritten_input_is_refused_by_name():
    x = leaf([1.0, 2.0])
    h = x * 1
    y = h * h
    h.add_(paddle.ones([2], "float64"))
    with pytest.raises(RuntimeError, match=r"backward through multiply: its input '[xy]' was over"):
        y.sum().backward()


def test_backward_over_an_overwritten_result_is_refused_by_name():
    x = leaf([1.0, 2.0])
    y = paddle.exp(x)
    z = y + 1
    y.scale_(2.0)
    with pytest.raises(RuntimeError, match="backward through exp: its result was overwritten"):
        z.sum().backward()


def test_an_overwrite_that_no_derivative_asks_for_is_fine():
    x = leaf([1.0, 2.0])
    h = x * 1
    y = h + 5
    h.scale_(2.0)
    (y.sum() + h.sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_an_overwrite_through_a_view_counts():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    h = x * 1
    y = h * h
    with paddle.no_grad():
        h.detach()[0].fill_(0.0)
    with pytest.raises(RuntimeError, match="overwritten in place"):
        y.sum().backward()


def test_in_place_on_a_leaf_that_wants_a_gradient():
    x = leaf([1.0])
    with pytest.raises(ValueError, match="in-place change of a leaf"):
        x.add_(x * 2)
    with paddle.no_grad():
        x.add_(paddle.ones([1], "float64"))
    assert x.tolist() == [2.0]
    assert x.inplace_version == 1


def test_become_takes_over_the_past():
    x = leaf([1.0, 2.0])
    h = x * 2
    h.scale_(3.0)
    h.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_become_of_a_view_of_tracked_memory_leaves_the_memory():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    h = x * 1
    row = h[0]
    row.scale_(10.0)
    assert row.tolist() == [10.0, 20.0]
    assert h.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (row.sum() + h.sum()).backward()
    assert x.grad.tolist() == [[11.0, 11.0], [1.0, 1.0]]


def test_become_of_an_untracked_view_writes_through_it():
    x = paddle.zeros([2, 2])
    x[0].fill_(5.0)
    assert x.tolist() == [[5.0, 5.0], [0.0, 0.0]]


def test_become_of_an_expanded_tensor_makes_room():
    x = paddle.zeros([1, 2])
    y = x.expand([3, 2])
    y[0].fill_(0.0)
    y.fill_(8.0)
    assert y.tolist() == [[8.0, 8.0]] * 3
    assert x.tolist() == [[0.0, 0.0]]


def test_become_of_something_uncomputed_forgets_the_past():
    x = leaf([2.0])
    y = x * 3
    y.uniform_(1.0, 1.0)
    (y * y).sum().backward()
    assert x.grad is None


def test_become_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        paddle.zeros([2]).become(paddle.zeros([3]))


# ---- memory and depth ------------------------------------------------------------------------


@pytest.mark.sweep
def test_a_chain_of_100_000_operators():
    x = leaf(0.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert y.item() == 100_000.0
    assert x.grad.item() == 1.0
    del y


def test_memory_falls_as_the_walk_goes():
    """A chain keeps 50 arrays; the walk must not hold 50 cotangents beside them."""
    size, depth = 1_000_000, 50
    x = leaf(np.full(size // 8, 0.1))
    tracemalloc.start()
    try:
        y = x
        for _ in range(depth):
            y = paddle.tanh(y)
        kept, _ = tracemalloc.get_traced_memory()
        total = y.sum()
        del y
        tracemalloc.reset_peak()
        total.backward()
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept > 0.95 * depth * size
    assert peak < kept + 8 * size
    assert left < 4 * size


def test_a_tape_that_is_dropped_is_freed_at_once():
    x = leaf(np.ones(10))
    y = paddle.exp(x)
    gone = weakref.ref(y.record)
    z = y * y
    del y, z
    assert gone() is None


def test_backward_frees_what_was_kept():
    x = leaf(np.ones(1000))
    y = paddle.exp(x)
    kept = weakref.ref(y.array)
    total = (y * 2).sum()
    del y
    assert kept() is not None
    total.backward()
    assert kept() is None


# ---- the walk itself -------------------------------------------------------------------------


def test_pieces_of_a_tuple_meet_place_by_place():
    from minipaddle.engine.core.grad import TupleCotangent

    met = TupleCotangent({0: 1.0, 1: 2.0}) + TupleCotangent({1: 10.0, 2: 5.0})
    assert type(met) is TupleCotangent
    assert met == {0: 1.0, 1: 12.0, 2: 5.0}


def test_what_is_added_up_is_not_written_over():
    a, b = leaf([1.0]), leaf([2.0])
    ten = a * 10
    (a + b + ten).backward()  # a and b are handed one cotangent; the one of ten comes after it
    assert (a.grad.item(), b.grad.item()) == (11.0, 1.0)
