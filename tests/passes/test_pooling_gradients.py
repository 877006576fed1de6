"""Gates before max pooling: they ask the pooled image, and gradients stay what eager mode gives."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.ir.control import fused
from tests.codegen.compiling import needs_gcc

ACTIVATIONS = {
    "relu": F.relu, "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.5),
}  # fmt: skip


def gradients(backend, activation, layout, **pooling):
    """The gradients of an image and of a bias for each channel, and the compiled program."""
    rng = np.random.default_rng(0)
    shape = (3, 5, 9, 8)
    x = np.round(4 * rng.normal(size=shape)) / 4  # many are equal, many are 0
    x[0, 1, 2, 3], x[1, 2, :4, :4], x[2, 0, 5, 5] = np.nan, -np.inf, np.inf
    b = rng.integers(-2, 3, size=(1, 5, 1, 1)) / 4

    def step(x, b):
        y = activation(x + b)
        if layout == "last":
            pooled = F.max_pool2d(y.transpose([0, 2, 3, 1]), data_format="NHWC", **pooling)
        else:
            pooled = F.max_pool2d(y, **pooling)
        weights = paddle.arange(pooled.size, dtype="float64").reshape(pooled.shape) - 7.5
        return paddle.grad((pooled * weights).sum(), [x, b])

    step = paddle.jit.to_static(step, backend=backend) if backend else step
    given = [paddle.to_tensor(a, stop_gradient=False) for a in (x, b)]
    return [g.numpy() for g in step(*given)], step


def sizes_of_gates(step) -> list[int]:
    """How many numbers each gate of the program asks."""
    (executable,) = step.concrete_program.executables.compiled.values()
    inner = [[r, *(r.attrs["region"].records if r.op is fused else ())]
             for r in executable.program.records]  # fmt: skip
    return [r.spec.size for group in inner for r in group if r.op.name == "gate"]


@needs_gcc
@pytest.mark.parametrize("layout", ["first", "last"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    "pooling",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 1},
    ],
    ids=["apart", "padded", "overlapping"],
)
def test_gradients_are_those_of_eager_mode(activation, layout, pooling):
    want, _ = gradients(None, ACTIVATIONS[activation], layout, **pooling)
    got, step = gradients("native", ACTIVATIONS[activation], layout, **pooling)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12)
    assert np.isfinite(want[0]).all()
    if pooling == {"kernel_size": 2}:  # hardtanh's gate asks what comes before it
        assert sizes_of_gates(step) == [3 * 5 * (9 * 8 if activation == "hardtanh" else 4 * 4)]


@needs_gcc
def test_a_gradient_that_is_used_without_its_gate_stays():
    """Pooling's gradient is wanted before the gate and after it: it is computed once."""

    def step(x):
        y = F.relu(x)
        pooled = F.max_pool2d(y, 2)
        return paddle.grad((pooled**2).sum(), [y, x])

    x = np.random.default_rng(1).normal(size=(2, 3, 4, 4))
    want = step(paddle.to_tensor(x, stop_gradient=False))
    static = paddle.jit.to_static(step, backend="native")
    got = static(paddle.to_tensor(x, stop_gradient=False))
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12)
    assert sizes_of_gates(static) == [x.size]
