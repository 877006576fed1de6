"""Products of dequantized arrays, against NumPy's whole numbers."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.passes.manager import optimized
from minipaddle.ops.quantization import dequantize, fake_quantize, quantize
from minipaddle.passes.quantized_products import quantized_products
from tests.passes.programs import program_of, results


def given(program) -> list:
    """An array for the input of a program, and what its states hold."""
    x = np.random.default_rng(1).normal(size=program.inputs[0].shape).astype("float32")
    return [x, *(s.storage.read() for s in program.states)]


BYTE = {"low": -128, "high": 127}
rng = np.random.default_rng(0)
W, KERNEL = (rng.integers(-127, 128, s).astype("int8") for s in [(12, 5), (4, 3, 3, 3)])
W_SCALE, BIAS = rng.uniform(0.5, 2.0, 5).astype("float32"), rng.normal(size=5).astype("float32")
K_SCALE = rng.uniform(0.5, 2.0, (4, 1, 1, 1)).astype("float32")
T = paddle.to_tensor


def rounded(x, zero=0.0):
    return dequantize(quantize(x, 2.5, zero, **BYTE), T(np.float32(2.5)), zero, high=127)


def weight():
    return dequantize(T(W), T(W_SCALE), 0.0, high=127)


def conv(x, **how):
    kernel = dequantize(T(KERNEL), T(K_SCALE), 0.0, high=127)
    return F.relu(F.conv2d(rounded(x, T(np.float32(-9))), kernel, T(BIAS[:4]), **how))


def requantized(x):
    return quantize(F.relu(F.linear(rounded(x), weight(), T(BIAS))), 40.0, -128.0, **BYTE)


PROGRAMS = {
    "a linear map": (lambda x: F.linear(rounded(x), weight(), T(BIAS)), (7, 12)),
    "without bias": (lambda x: rounded(x) @ weight(), (2, 3, 12)),
    "a zero point": (lambda x: F.linear(rounded(x, T(np.float32(7))), weight()), (7, 12)),
    "on to whole numbers": (requantized, (7, 12)),
    "a convolution": (lambda x: conv(x, stride=2), (2, 3, 8, 9)),
    "at the border": (lambda x: conv(x, padding=[1, 2], dilation=2), (2, 3, 8, 9)),
    "two in a row": (lambda x: rounded(F.linear(rounded(x), weight())) @ weight()[:5], (7, 12)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_floats_are_those_of_the_dequantized_product(name):
    function, shape = PROGRAMS[name]
    program = program_of(function, shape)
    after = quantized_products(program)
    assert "_integer(" in str(after)
    arrays = given(program)
    (before,), (now,) = results(program, arrays), results(after, arrays)
    np.testing.assert_allclose(now, before, rtol=2e-5, atol=np.abs(before).max() * 2e-6)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_interpreter_and_c_agree_to_the_last_bit(name):
    """Up to a product of floats that is left: its terms are summed as the processor's library does,
    and as the vectors of its tiles are wide.
    """
    function, shape = PROGRAMS[name]
    after = quantized_products(program_of(function, shape))
    arrays = given(after)
    made = Executable(after)
    assert not made.source.hosted
    rtol = 1e-6 if any(record.op.name == "matmul" for record in after.records) else 0
    for ours, wanted in zip(made(after, arrays), results(after, arrays), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol)


def test_a_product_is_that_of_int64():
    program = quantized_products(program_of(lambda x: rounded(x) @ weight(), (7, 12)))
    x = given(program)[0]
    q = np.clip(np.rint(x / np.float32(2.5) * 127), -128, 127).astype("int64")
    step = W_SCALE * np.float32(2.5) / np.float32(127) * np.float32(128 / 127)
    wanted = (q @ W).astype("float32") * step / np.float32(128)
    np.testing.assert_array_equal(results(program, given(program))[0], wanted)


def test_a_trained_rounding_becomes_a_product_once_training_is_over():
    def f(x):
        w = fake_quantize(T(W_SCALE * W / 127), T(W_SCALE), 0.0, **BYTE)
        return F.linear(fake_quantize(x, 2.5, 0.0, **BYTE), w)

    program = program_of(f, (7, 12))
    assert "matmul_integer(" in str(quantized_products(program))


def test_a_training_step_multiplies_floats():
    """Its derivative needs them, so whole numbers would be work on top."""

    def step(x, w):
        w.stop_gradient = False
        (
            F.relu(fake_quantize(x, 2.5, 0.0, **BYTE) @ fake_quantize(w, 2.0, 0.0, **BYTE))
        ).sum().backward()
        return w.grad

    program = program_of(step, (7, 12), (12, 5))
    assert quantized_products(program) is program


def test_half_precision_stays():
    half = Spec((7, 12), np.dtype("float16"))
    program = program_of(
        lambda x: fake_quantize(x, 2.5, 0.0, **BYTE) @ fake_quantize(x.T, 2.0, 0.0, **BYTE), half
    )
    after = quantized_products(program)
    assert "matmul_integer(" in str(after)
    x = np.random.default_rng(1).normal(size=(7, 12)).astype("float16")
    (before,), (now,) = results(program, [x]), results(after, [x])
    assert now.dtype == "float16"
    np.testing.assert_allclose(now, before, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(
    "scale_of",
    [lambda x: T(np.ones((12, 1), "float32")), lambda x: T(np.ones((12, 5), "float32"))],
    ids=["by row of the sum", "by element"],
)
def test_scales_that_vary_along_the_sum_stay_floats(scale_of):
    program = program_of(
        lambda x: rounded(x) @ dequantize(T(W), scale_of(x), 0.0, high=127), (7, 12)
    )
    assert quantized_products(program) is program


def test_weights_stay_bytes_where_they_are_frozen():
    """Folding would compute 4 bytes of each byte ahead, and not notice."""
    large = T(rng.integers(-127, 128, (300, 300)).astype("int8"))
    program = program_of(lambda x: rounded(x) @ dequantize(large, 1.0, 0.0, high=127), (7, 300))
    states = optimized(program, frozen=True).program.states
    assert max(s.record.spec.nbytes for s in states) == 90_000
    alone = program_of(lambda x: x @ dequantize(large, T(np.float32(1)), 0.0, high=127), (7, 300))
    states = optimized(alone, frozen=True).program.states
    assert max(s.record.spec.nbytes for s in states) == 90_000


def test_a_sum_that_int32_cannot_hold_is_refused_by_name():
    spec = Spec((1, 70_000), np.dtype("int8"))
    with pytest.raises(ValueError, match="sums of 70000 products do not fit int32"):
        program_of(lambda x: paddle.engine.core.op.OPS["matmul_integer"](x, x.T), spec)
