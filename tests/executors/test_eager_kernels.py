"""Kernels in eager mode: the numbers of NumPy, who computes when, what is kept, what is printed."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.core.prelude import OPS
from minipaddle.engine.core.op import Op
from minipaddle.engine.eager import tracer
from minipaddle.executors import hot
from minipaddle.executors.hot import eager_kernels
from minipaddle.executors.hot.eager_kernels import Large
from minipaddle.nn import functional as F
from tests.executors.hot import at_once as hot_at_once
from tests.executors.hot import by_numpy, compiles


@pytest.fixture
def at_once(monkeypatch):
    """Arrays of any size count as large."""
    monkeypatch.setattr(Op, "least", 1)
    with hot_at_once():
        yield


@pytest.fixture
def without_walks(at_once):
    """No walk back is one program: each operator in it has a kernel."""
    paddle.set_flags({"FLAGS_eager_programs": False})


def served(function):
    """The result of a function once the compiler has finished all that it calls."""
    for _ in range(6):  # the operators in a derivative are compiled too, until it is compiled
        function()
    return function()


def codes(name: str) -> list:
    """The hot code of an operator or a derivative."""
    return [code for cache in hot.CACHES for code in cache if code.about.startswith(name + " of ")]


def who(name: str) -> set:
    """Who computes it."""
    return {str(code).split(", waited")[0] for code in codes(name)}


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
    "row": (
        lambda x, row: (x + row) * x.sum(1, keepdim=True) / (row * row + 1.0),
        [normal(5, 7), normal(7)],
    ),
    "a column and a row": (
        lambda column, row: (
            (row - column) / (row * row + 1.0) + column * row + paddle.outer(row, row)
        ),
        [normal(7, 1), normal(7)],
    ),
    "glu": (F.glu, [normal(5, 14)]),
    "halves, a broadcast row": (
        lambda x: F.softmax(x[:, 3:8]) * x[:1, 2:7].expand([5, 5]).cumsum(1) + F.silu(x[:, :5]),
        [normal(5, 14)],
    ),
    "transposed rows": (
        lambda x: F.softmax(x.T) * x.T.sum(1, keepdim=True) + x.T.cumsum(0),
        [normal(5, 7)],
    ),
    "std": (lambda x: x.std() * x.std(1, unbiased=False, keepdim=True), [normal(5, 64)]),
    "cdist": (paddle.cdist, [normal(5, 7), normal(6, 7)]),
    "smooth_l1": (F.smooth_l1_loss, [normal(3, 37), 3 * normal(3, 37)[::-1]]),
    "clip, erf, pow": (
        lambda x: paddle.erf(x.clip(-1, 0.5)) * (x.abs() + 1.0).pow(1.5),
        [normal(3, 37)],
    ),
    "cumsum, cumprod": (lambda x: x.cumsum(1) + x.cumprod(0).tril(), [normal(5, 7)]),
    "windows": (
        lambda x: F.avg_pool2d(x, 2) + F.max_pool2d(x, 3, 2, 1)[:, :, :4, :3],
        [normal(2, 3, 8, 6)],
    ),
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
    _, *lines = hot.report().splitlines()
    assert lines
    assert all(": C" in line for line in lines), hot.report()
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        scale = np.abs(b).max()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=3e-6 * max(scale, 1))


def test_several_results_are_a_tuple_also_in_blocks():
    """They were one array of both, whose rows happened to be these."""
    x = paddle.to_tensor(normal(1200, 1024))
    both = OPS["moments"](x, axes=(1,), centered=True)
    assert type(both) is tuple
    np.testing.assert_allclose(both[1].numpy(), x.numpy().var(1, keepdims=True), rtol=1e-4)


@compiles
@pytest.mark.parametrize(("groups", "kernel"), [(4, (4, 1, 3, 3)), (1, (4, 4, 3, 3))])
def test_images_stay_as_they_lie_where_a_kernel_takes_them(groups, kernel, at_once):
    """Each channel by itself: nothing moves. Else channels go to the end and back."""
    arrays = [normal(2, 4, 9, 7), normal(*kernel)]
    served(lambda: gradients(lambda x, w: F.conv2d(x, w, groups=groups), arrays))
    for name in ("conv", "conv_input_grad", "conv_weight_grad"):
        (kernel,) = codes(name)
        names = {record.op.name for record in kernel.executable.kernels.of}
        assert (names == {name}) is (groups == 4), names


@compiles
def test_derivatives_of_second_order(at_once):
    call = lambda: gradients(F.gelu, [normal(2, 9, dtype="float64")], order=2)
    for a, b in zip(served(call), by_numpy(call), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


VIEWS = {
    "turned": lambda x: x.T,
    "two axes changed": lambda x: x.transpose(1, 0, 2),
    "parts of rows": lambda x: x[..., 3:7],
    "parts of all axes": lambda x: x[2:, 1:5, 3:],
    "turned parts": lambda x: x[1:4, 3:4, 2:9].swapaxes(0, 2),
    "every second row": lambda x: x[:, ::2],
    "one column": lambda x: x[:, :1, :1],
    "repeated rows": lambda x: np.broadcast_to(x[:1], (5, 8, 10)),
    "repeated columns": lambda x: np.broadcast_to(x[..., :1], (6, 8, 10)),
    "one number": lambda x: np.broadcast_to(x[0, 0, 0], (4, 5)),
    "every second number": lambda x: x[..., ::2],
    "a column": lambda x: x[:, :, 3],
    "backwards": lambda x: x[::-1],
    "by columns": lambda x: np.asfortranarray(x)[1:3],
    "real parts": lambda x: x.astype("complex64").real,
    "unaligned": lambda x: np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view("float32"),
}
COPIED = {"every second number", "a column", "backwards", "by columns", "real parts"}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_seen_through(name):
    """C is given memory from a view's first number to its last, and how the view lies in it."""
    x = VIEWS[name](normal(6, 8, 10))
    memory, view = eager_kernels.memory_of(x, in_order=False)
    assert (memory is x) is (view is None)
    assert (view is None) is (name in COPIED)
    assert memory.flags.c_contiguous or view is None
    assert np.may_share_memory(memory, x)
    assert np.lib.array_utils.byte_bounds(memory) == np.lib.array_utils.byte_bounds(x)
    seen = eager_kernels.see(paddle.to_tensor(memory), view).numpy()
    np.testing.assert_array_equal(seen, x)
    if eager_kernels.memory_of(x, in_order=True)[0] is not x:
        assert [*x.strides] == sorted(x.strides, reverse=True)


@compiles
def test_views_alike_share_a_kernel(at_once):
    x = paddle.to_tensor(normal(5, 30))
    for k in range(8):
        found = F.softmax(x[:, k : k + 7]).numpy()
    assert len(codes("softmax")) == 1
    assert who("softmax") == {"C"}
    np.testing.assert_allclose(found, by_numpy(lambda: F.softmax(x[:, 7:14])).numpy(), rtol=1e-6)


PRODUCTS = {
    "matmul": (paddle.matmul, [normal(5, 7), normal(7, 3)]),
    "matmul of batches": (
        lambda x, y: x.transpose([0, 2, 1, 3]) @ y.transpose([0, 2, 3, 1]),
        [normal(2, 5, 3, 4), normal(2, 6, 3, 4)],
    ),
    "matmul with a vector": (paddle.matmul, [normal(5, 7), normal(7)]),
    "linear": (F.linear, [normal(2, 5, 7), normal(7, 3)]),
    "affine": (F.linear, [normal(5, 7), normal(7, 3), normal(3)]),
}


@compiles
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("count", [1, 2])
def test_with_several_threads_kernels_multiply(name, count, without_walks, monkeypatch):
    """The threads of a BLAS do not wait beside those of kernels."""
    monkeypatch.setattr(eager_kernels, "threads", lambda: count)
    function, arrays = PRODUCTS[name]
    columns = 128  # for which a product is as much work as its first input has elements
    tile = lambda a, k: np.tile(a, (1,) * (a.ndim - 1) + (columns // a.shape[-1],)) if k else a
    if name in ("matmul", "linear"):
        arrays = [tile(a, k) for k, a in enumerate(arrays)]
    found = served(lambda: gradients(function, arrays))
    wide = by_numpy(lambda: gradients(function, [a.astype("float64") for a in arrays]))
    for a, b in zip(found, wide, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max())
    for each in {"matmul": ["matmul"], "linear": ["linear", "summed_outer"]}.get(name, ()):
        assert who(each) == ({"C"} if count == 2 else set())


CLOSE = normal(6, 7)
CLOSE[2], CLOSE[5, 0] = CLOSE[1] * np.float32(1 + 1e-5), np.float32(3)
ROWS = {
    "apart": (normal(5, 7), 4 + normal(6, 7)),
    "equal": (CLOSE[[0, 1, 3]], CLOSE[[0, 1, 3]]),
    "close": (CLOSE[:2], CLOSE),
    "batches": (normal(2, 1, 4, 7), 4 + normal(3, 5, 7)),
}


@compiles
@pytest.mark.parametrize("name", ROWS)
def test_slopes_of_distances(name, without_walks):
    """Of close rows in double, as if they were written as differences, of others in float32."""
    x, y = ROWS[name]
    found = served(lambda: gradients(paddle.cdist, [x, y]))
    assert who("derivative of distances") == {"C"}
    a, b = x.astype("float64")[..., :, None, :], y.astype("float64")[..., None, :, :]
    length = np.sqrt(((a - b) ** 2).sum(-1))
    weight = np.cos(np.arange(length.size)).reshape(length.shape)
    share = np.divide(weight, length, where=length > 0, out=np.zeros_like(length))
    pull = share[..., None] * (a - b)
    near = lambda u, v: np.testing.assert_allclose(u, v, rtol=1e-5, atol=2e-6 * np.abs(v).max())
    near(found[1], sum_to(pull.sum(-2), x.shape))
    near(found[2], sum_to(-pull.sum(-3), y.shape))


def sum_to(a, shape):
    """An array summed over what broadcasting an array of this shape repeats."""
    a = a.sum(tuple(range(a.ndim - len(shape))))
    return a.sum(tuple(d for d, n in enumerate(shape) if n < a.shape[d]), keepdims=True)


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
    assert who("cross_entropy") == {"C"}
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
    assert who("softmax") == {"C"}
    gc.collect()
    assert [there() for there in arrays] == [None] * len(arrays)


@compiles
def test_counts_decide_who_computes(at_once, monkeypatch):
    monkeypatch.setattr(Op, "least", 35)
    monkeypatch.setattr(hot.EagerKernel, "start", 35)
    monkeypatch.setattr(hot.EagerKernel, "serve", 140)
    small, x, how = paddle.to_tensor(normal(34)), paddle.to_tensor(normal(5, 7)), []
    for _ in range(7):
        F.softmax(small)
        F.softmax(x)
        how += who("softmax")
    assert how == [
        "NumPy, 35 elements so far", "NumPy, 70 elements so far", "NumPy, 105 elements so far",
        "C", "C", "C",
    ]  # fmt: skip
    assert "softmax of float32[5, 7]: C" in hot.report()


@compiles
def test_a_thread_that_traces_does_not_wait(at_once):
    """The thread that compiles needs the lock of traces."""
    x = paddle.to_tensor(normal(5, 7))
    with tracer.LOCK:
        for _ in range(3):
            F.softmax(x)
    (how,) = who("softmax")
    assert how.startswith("NumPy")
    served(lambda: F.softmax(x))
    assert who("softmax") == {"C"}


def test_the_flag_leaves_all_to_numpy(at_once):
    x = paddle.to_tensor(normal(5, 7))
    by_numpy(lambda: F.softmax(x))
    assert not codes("softmax")
    assert by_numpy(hot.report).startswith("eager mode: NumPy; ")


def test_a_readers_code_runs(at_once):
    with paddle.plugged("ops.softmax.body", lambda m, x, *, axis=-1: x * 0):
        for _ in range(3):
            assert F.softmax(paddle.ones([3])).tolist() == [0, 0, 0]
    assert not codes("softmax")


def test_what_cannot_be_compiled_stays(at_once):
    def refuse():
        raise NotImplementedError("not this one")

    kernel = hot.EagerKernel(refuse)
    for _ in range(3):
        assert kernel([normal(3)], 3) is None
    assert str(kernel) == "NumPy: not this one"


BLOCKS = {
    "softmax": lambda x: F.softmax(x),
    "softmax, first axis": lambda x: F.softmax(x, 0) * F.silu(x),
    "layer_norm": lambda x: F.layer_norm(x, 33, x[0], x[1]),
    "scale for each row": lambda x: F.layer_norm(x, 33) * F.silu(x[:, :1] * x),
    "gelu": F.gelu,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_rows(name, monkeypatch):
    """NumPy computes large arrays in blocks; the numbers are the same to the last bit."""
    call = lambda: gradients(BLOCKS[name], [normal(7, 33)])
    whole, blocks, run_in_blocks = call(), [], Large.run_in_blocks
    count = lambda *args: blocks.append(run_in_blocks(*args)) or blocks[-1]
    monkeypatch.setattr(Op, "least", 1)
    monkeypatch.setattr(eager_kernels, "BLOCKED", 1)
    monkeypatch.setattr(eager_kernels, "BLOCK", 300)
    monkeypatch.setattr(Large, "run_in_blocks", count)
    for a, b in zip(call(), whole, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(block is not None for block in blocks)


@compiles
def test_attributes_that_change_do_not_displace_hot_code(at_once):
    x = paddle.to_tensor(normal(5, 7))
    served(lambda: F.leaky_relu(x))
    (kernel,) = codes("leaky_relu")
    for k in range(100):
        F.leaky_relu(x, 1 / (k + 2))
    assert codes("leaky_relu") == [kernel]


@compiles
def test_c_copies_arrays_between_addresses_of_numbers(at_once):
    numbers = paddle.to_tensor(normal(5, 7)).reshape([-1])
    memory = paddle.concat([paddle.zeros([1], "uint8"), numbers.view("uint8")])
    x = memory[1:].view("float32")
    assert not x.array.flags.aligned
    np.testing.assert_array_equal(served(lambda: F.silu(x)), served(lambda: F.silu(numbers)))
    (kernel,) = codes("silu")
    assert kernel.executable


@compiles
def test_much_working_memory_is_given_back(at_once, monkeypatch):
    image, weight = (paddle.to_tensor(normal(*s)) for s in ((2, 4, 9, 7), (4, 4, 3, 3)))
    served(lambda: F.conv2d(image, weight))
    (kernel,) = codes("conv")
    assert len(kernel.executable.contexts) == 1
    monkeypatch.setattr(kernel, "room", kernel.executable.plan.size - 1)
    F.conv2d(image, weight)
    assert not kernel.executable.contexts
    assert kernel.executable.last is None


@compiles
@pytest.mark.parametrize(("backend", "on"), [("auto", True), ("interpreter", False)])
def test_kernels_serve_where_programs_are_compiled(backend, on):
    """By default, as the backend "auto" compiles programs meanwhile, too."""
    code = "import minipaddle; print(minipaddle.get_flags('FLAGS_eager_kernels'))"
    run = [sys.executable, "-c", code]
    found = subprocess.run(
        run, env=os.environ | {"MINIPADDLE_BACKEND": backend}, text=True, check=True, stdout=-1
    )
    assert found.stdout.strip() == str({"FLAGS_eager_kernels": on})
