"""Compiled programs on the device: the numbers of the CPU, and one graph launch for a step."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.executors.gpu import cuda


class Net(nn.Layer):
    """Convolution, pooling, attention, a norm, an embedding, dropout."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(1, 4, 3, padding=1), nn.BatchNorm2D(4)
        self.token, self.layer_norm = nn.Embedding(10, 16), nn.LayerNorm(16)
        self.qkv, self.head = nn.Linear(16, 48), nn.Linear(16, 10)
        self.drop = nn.Dropout(0.1)

    def forward(self, image, token):
        y = F.max_pool2d(F.relu(self.norm(self.conv(image))), 2).flatten(2)
        y = self.layer_norm(y + self.token(token).unsqueeze(1))
        q, k, v = self.qkv(y).reshape([0, 4, 3, 2, 8]).transpose([2, 0, 3, 1, 4]).unbind(0)
        y = y + (F.softmax(q @ k.transpose([0, 1, 3, 2]), -1) @ v).transpose([0, 2, 1, 3]).flatten(
            2
        )
        return self.head(self.drop(y).mean(axis=1))


def train(where: str, backend: str, steps: int = 5):
    """Losses and the compiled step."""
    with paddle.device.device_guard(where):
        paddle.seed(0)
        net = Net()
        rng = np.random.default_rng(0)
        for p in net.parameters():
            p.set_value(rng.normal(size=p.shape).astype("float32") * 0.3)
        image = paddle.to_tensor(rng.normal(size=(4, 1, 8, 8)).astype("float32"))
        token, labels = (paddle.to_tensor(rng.integers(0, 10, 4)) for _ in range(2))
        optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters())

        @paddle.jit.to_static(backend=backend)
        def step(image, token, labels):
            loss = F.cross_entropy(net(image, token), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return [float(step(image, token, labels)) for _ in range(steps)], step


def executables(step) -> list[cuda.CudaExecutable]:
    executables = step.concrete_program.executables
    assert not executables.reasons
    return [e for e in executables.compiled.values() if isinstance(e, cuda.CudaExecutable)]


def test_a_step_trains_as_on_the_cpu_in_one_graph(gpu, device):
    losses, step = train("gpu", "cuda")
    wanted, _ = train("cpu", "interpreter")
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    (last,) = executables(step)
    assert last.kernels.hosted == []
    assert all(context.captured for context in last.contexts)


TF32 = "FLAGS_enable_cublas_tensor_op_math"
FACTORS = {
    "float32": 1e-4, "TF32": 5e-3, "float64": 1e-11, "float16": 5e-3, "bfloat16": 4e-2,
}  # fmt: skip


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("factors", FACTORS)
def test_convolutions(gpu, device, factors, stride):
    """And their adjoints, on tensor cores if halves or TF32 are multiplied."""
    images, size = (64, 64) if gpu == "cuda" else (2, 9)
    dtype = "float32" if factors == "TF32" else factors
    rng = np.random.default_rng(0)
    shapes = (images, 64, size, size), (64, 64, 3, 3)
    x, w = (paddle.to_tensor(rng.normal(size=shape)).astype(dtype) for shape in shapes)

    def convolve(x, w):
        x.stop_gradient = w.stop_gradient = False
        y = F.conv2d(x, w, stride=stride, padding=1)
        return [y, *paddle.grad([y], [x, w], [y])]

    compiled = paddle.jit.to_static(convolve, backend="cuda")
    paddle.set_flags({TF32: factors == "TF32"})
    try:
        results = [[y.astype("float64").cpu().numpy() for y in compiled(x, w)] for _ in range(3)]
    finally:
        paddle.set_flags({TF32: False})
    with paddle.device.device_guard("cpu"):
        wide = [paddle.to_tensor(a.astype("float64").cpu().numpy()) for a in (x, w)]
        expected = [y.numpy() for y in convolve(*wide)]
    for k, y in enumerate(expected):
        far = FACTORS[factors] * np.abs(y).max()
        for arrays in results:
            np.testing.assert_allclose(arrays[k], y, 0, far)
    (executable,) = executables(compiled)
    assert executable.kernels.body.count("convolve<") == 3


def test_branches_on_values(gpu, device):
    @paddle.jit.to_static(backend="cuda")
    def halved_until_small(x):
        k = paddle.zeros([], "int64")
        while x.abs().sum() > 1.0:
            x, k = x / 2.0, k + 1
        return x, k

    x, k = halved_until_small(paddle.to_tensor([3.0, -5.0]))
    assert (x.numpy().tolist(), int(k)) == ([0.375, -0.625], 3)
    assert executables(halved_until_small)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_products_and_reductions(gpu, device, dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, (3, 40, 50)), rng.integers(-3, 4, (3, 60, 50))]

    def function(x, y):
        z = paddle.matmul(x, y, transpose_y=True)
        return z, z.sum(1), z.max(-1), z.transpose([2, 0, 1]).astype("float32").mean()

    compiled = paddle.jit.to_static(function, backend="cuda")
    given = [paddle.to_tensor(a.astype("float32")).astype(dtype) for a in arrays]
    for _ in range(3):  # the first run, the capture, the graph
        found = compiled(*given)
    assert executables(compiled)
    with paddle.device.device_guard("cpu"):
        wanted = function(*(paddle.to_tensor(a.astype("float32")).astype(dtype) for a in arrays))
    for a, b in zip(wanted, found, strict=True):
        a, b = a.numpy().astype("float64"), b.numpy().astype("float64")
        np.testing.assert_allclose(b, a, rtol=1e-2 if "16" in dtype else 1e-5)


def test_a_long_sum_and_a_wide_softmax(gpu, device):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 50_000)).astype("float32")
    x[1, 7] = np.nan

    @paddle.jit.to_static(backend="cuda")
    def function(x):
        return x.sum(), x.sum(0), x.max(1), F.softmax(x, -1).max(1)

    for _ in range(3):
        total, columns, top, share = (y.numpy() for y in function(paddle.to_tensor(x)))
    assert np.isnan(total)
    np.testing.assert_allclose(columns, x.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(top, x.max(1))
    shifted = np.exp(x.astype("float64") - x.max(1, keepdims=True))
    np.testing.assert_allclose(share, (shifted / shifted.sum(1, keepdims=True)).max(1), rtol=1e-4)


def test_a_place_out_of_range_is_found_and_changes_nothing(gpu, device):
    """In graphs, too: nothing is updated before the host has looked."""
    seen = paddle.zeros([4])

    @paddle.jit.to_static(backend="cuda")
    def counted(i, table):
        rows = F.embedding(i, table)
        seen.add_(paddle.scatter(paddle.zeros([4]), i, paddle.ones([2])))
        return rows

    table = paddle.arange(8, dtype="float32").reshape([4, 2])
    for k in range(1, 5):
        rows = counted(paddle.to_tensor([3, 1]), table)
        assert rows.numpy().tolist() == [[6, 7], [2, 3]]
        with pytest.raises(IndexError, match=r"4 is no number from 0 to 3\n  at: .* in counted"):
            counted(paddle.to_tensor([3, 4]), table)
        assert seen.numpy().tolist() == [0, k, 0, k]
    (made,) = executables(counted)
    assert made.contexts[0].captured


def test_threads_compile_and_capture_at_the_same_time(gpu, device):
    """What one tells the GPU is no part of another's graph."""

    def work(factor: float):
        paddle.set_device("gpu")  # of this thread
        f = paddle.jit.to_static(lambda x: paddle.matmul(x, x) * factor + x, backend="cuda")
        x = paddle.ones([32, 32])
        return {float((f(x) - 1.0).sum()) for _ in range(50)}

    with ThreadPoolExecutor(4) as pool:
        for factor, found in zip(range(1, 5), pool.map(work, range(1, 5)), strict=True):
            assert found == {32.0**3 * factor}
