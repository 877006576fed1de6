"""Kernels in eager mode: the numbers of NumPy, who computes when, what is kept, what is printed."""

import gc
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.eager import tracer
from minipaddle.executors import eager_kernels
from minipaddle.nn import functional as F

compiles = pytest.mark.skipif(not eager_kernels.has_compiler(), reason="no C compiler")


@pytest.fixture
def at_once(monkeypatch):
    """Kernels serve from the second call on, arrays of any size; each test has its own."""
    for name in ("LEAST", "START", "SWITCH"):
        monkeypatch.setattr(eager_kernels, name, 1)
    for large in eager_kernels.LARGE:
        monkeypatch.setattr(large, "kernels", {})


def served(function):
    """The result of a function once the compiler has finished all that it calls."""
    for _ in range(3):  # the operators in a derivative are compiled too, until it is compiled
        function()
    return function()


def by_numpy(function):
    paddle.set_flags({"FLAGS_eager_kernels": False})
    try:
        return function()
    finally:
        paddle.set_flags({"FLAGS_eager_kernels": True})


def kinds() -> dict[str, set]:
    """How each function was computed."""
    return {
        large.name: {str(kernel).split(", waited")[0] for kernel in large.kernels.values()}
        for large in eager_kernels.LARGE
        if large.kernels
    }


def gradients(function, arrays, order=1):
    """The result and its derivatives, for a weight on the result that is not constant."""
    inputs = [paddle.to_tensor(a, stop_gradient=a.dtype.kind != "f") for a in arrays]
    moving = [x for x in inputs if not x.stop_gradient]
    y = function(*inputs)
    found = [y]
    for _ in range(order):
        weight = paddle.to_tensor(np.cos(np.arange(y.size)).reshape(y.shape), dtype=y.dtype)
        parts = paddle.grad((y * weight).sum(), moving, create_graph=order > 1, allow_unused=True)
        parts = [g for g in parts if g is not None]
        found += parts
        y = sum(g.sum() for g in parts)
    return [x.numpy() for x in found]


def normal(*shape, dtype="float32"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


LABEL = np.array([0, 6, 3, 3, -100])
CASES = {
    "softmax": (F.softmax, [normal(5, 7)]),
    "log_softmax, first axis": (lambda x: F.log_softmax(x, 0), [normal(5, 7)]),
    "softmax, float64": (F.softmax, [normal(3, 33, dtype="float64")]),
    "cross_entropy": (F.cross_entropy, [normal(5, 7), LABEL]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, 33, w, b), [normal(5, 33), *normal(2, 33)]),
    "group_norm": (lambda x: F.group_norm(x, 3), [normal(2, 6, 5, 3)]),
    "gelu": (F.gelu, [normal(3, 37)]),
    "silu, transposed": (lambda x: F.silu(x.T), [normal(3, 37)]),
    "sigmoid, every second": (lambda x: F.sigmoid(x[:, ::2]), [normal(3, 37)]),
    "sum": (lambda x: x.sum() * x.max(), [normal(1001)]),
    "depthwise": (
        lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=3),
        [normal(2, 3, 9, 7), normal(3, 1, 3, 3)],
    ),
}


@compiles
@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_what_numpy_does(name, at_once):
    function, arrays = CASES[name]
    call = lambda: gradients(function, arrays)
    wanted, found = by_numpy(call), served(call)
    assert any(set(how) == {"C"} for how in kinds().values())
    assert all(how == "C" for each in kinds().values() for how in each), eager_kernels.report()
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        scale = np.abs(b).max()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=3e-6 * max(scale, 1))


@compiles
@pytest.mark.parametrize(("groups", "kernel"), [(4, (4, 1, 3, 3)), (1, (4, 4, 3, 3))])
def test_images_stay_as_they_lie_where_a_kernel_takes_them(groups, kernel, at_once):
    """Each channel by itself: nothing moves. Else channels go to the end and back."""
    arrays = [normal(2, 4, 9, 7), normal(*kernel)]
    served(lambda: gradients(lambda x, w: F.conv2d(x, w, groups=groups), arrays))
    for name in ("conv", "conv_input_grad", "conv_weight_grad"):
        (large,) = (large for large in eager_kernels.LARGE if large.name == name)
        (kernel,) = large.kernels.values()
        names = {record.op.name for record in kernel.executable.kernels.of}
        assert (names == {name}) is (groups == 4), names


@compiles
def test_derivatives_of_second_order(at_once):
    call = lambda: gradients(F.gelu, [normal(2, 9, dtype="float64")], order=2)
    for a, b in zip(served(call), by_numpy(call), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@compiles
def test_nan_and_infinity(at_once):
    x = np.array([[np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [1, 2, 3]], "float32")
    for function in (F.softmax, F.relu, F.silu, F.gelu, lambda x: x.max(-1), lambda x: x.sum(-1)):
        call = lambda function=function: function(paddle.to_tensor(x)).numpy()
        np.testing.assert_allclose(served(call), by_numpy(call), rtol=1e-6)


@compiles
def test_accuracy_of_a_long_sum(at_once):
    x = np.random.default_rng(1).random(1 << 20).astype("float32")
    exact, call = x.astype("float64").sum(), lambda: paddle.to_tensor(x).sum().item()
    limit = max(abs(by_numpy(call) - exact), exact * np.finfo("float32").eps / 2)
    assert abs(served(call) - exact) <= 2 * limit


@compiles
def test_a_wrong_label_is_named_as_by_numpy(at_once):
    x, good = paddle.to_tensor(normal(5, 7)), paddle.to_tensor([0, 1, 2, 3, 4])
    served(lambda: F.cross_entropy(x, good))
    assert kinds()["cross_entropy"] == {"C"}
    with pytest.raises(IndexError, match="9 is no number from 0 to 6"):
        F.cross_entropy(x, paddle.to_tensor([0, 9, 2, 3, 4]))


@compiles
def test_hooks_and_views_see_the_gradient(at_once):
    def call():
        x = paddle.to_tensor(normal(4, 6), stop_gradient=False)
        seen = []
        y = F.softmax(x)
        y.register_hook(lambda g: seen.append(g.numpy()) or g * 2)
        y[1:].sum().backward()
        return [x.grad.numpy(), *seen]

    for a, b in zip(served(call), by_numpy(call), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@compiles
def test_a_kernel_keeps_no_array_alive(at_once):
    arrays = []

    def call():
        x = paddle.to_tensor(normal(5, 7))
        arrays.append(weakref.ref(x.array))
        F.softmax(x)

    served(call)
    assert kinds()["softmax"] == {"C"}
    gc.collect()
    assert [there() for there in arrays] == [None] * len(arrays)


@compiles
def test_counts_decide_who_computes(at_once, monkeypatch):
    monkeypatch.setattr(eager_kernels, "LEAST", 35)
    monkeypatch.setattr(eager_kernels, "START", 70)
    monkeypatch.setattr(eager_kernels, "SWITCH", 175)
    small, x, how = paddle.to_tensor(normal(34)), paddle.to_tensor(normal(5, 7)), []
    for _ in range(7):
        F.softmax(small)
        F.softmax(x)
        (here,) = kinds()["softmax"]
        how.append(here)
    assert how == [
        "NumPy, 35 elements so far", "NumPy, 70 elements so far", "NumPy, 105 elements so far",
        "NumPy, 140 elements so far", "C", "C", "C",
    ]  # fmt: skip
    assert "softmax of float32[5, 7]: C" in eager_kernels.report()


@compiles
def test_a_thread_that_traces_does_not_wait(at_once):
    """The thread that compiles needs the lock of traces."""
    x = paddle.to_tensor(normal(5, 7))
    with tracer.LOCK:
        for _ in range(3):
            F.softmax(x)
    (how,) = kinds()["softmax"]
    assert how.startswith("NumPy")
    served(lambda: F.softmax(x))
    assert kinds()["softmax"] == {"C"}


def test_the_flag_leaves_all_to_numpy(at_once):
    x = paddle.to_tensor(normal(5, 7))
    by_numpy(lambda: F.softmax(x))
    assert not kinds()
    assert by_numpy(eager_kernels.report).endswith("NumPy, by FLAGS_eager_kernels")


def test_a_readers_code_runs(at_once):
    with paddle.plugged("ops.softmax.body", lambda m, x, *, axis=-1: x * 0):
        for _ in range(3):
            assert F.softmax(paddle.ones([3])).tolist() == [0, 0, 0]
    assert not kinds()


def test_what_cannot_be_compiled_stays(at_once):
    def refuse():
        raise NotImplementedError("not this one")

    kernel = eager_kernels.Kernel(refuse)
    for _ in range(3):
        assert kernel([normal(3)], 3) is None
    assert str(kernel) == "NumPy: not this one"


BLOCKS = {
    "softmax": lambda x: F.softmax(x),
    "softmax, first axis": lambda x: F.softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, 33, x[0], x[1]),
    "scale for each row": lambda x: F.layer_norm(x, 33) * F.silu(x[:, :1] * x),
    "gelu": F.gelu,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_without_a_compiler(name, at_once, monkeypatch):
    monkeypatch.setattr(eager_kernels, "has_compiler", lambda: False)
    monkeypatch.setattr(eager_kernels, "BLOCKED", 1)
    monkeypatch.setattr(eager_kernels, "BLOCK", 300)
    assert eager_kernels.report().startswith("large arrays in eager mode: NumPy, in blocks")
    call = lambda: gradients(BLOCKS[name], [normal(7, 33)])
    for a, b in zip(call(), by_numpy(call), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
