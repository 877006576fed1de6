"""Native float32 is about as near to float64 as the interpreter's: see `tests/benchmarks`."""

import pytest

from minipaddle.engine.core.polynomial import ZERO, loop
from minipaddle.engine.executors.compiler import compiler
from tests.benchmarks.accuracy import HALF_UNIT, KERNELS, MODELS, measure

FACTOR = 5.0
"""How much larger than the interpreter's an error may be."""
LIMIT = 12 * HALF_UNIT
"""Of a kernel: NumPy adds columns one by one, so its own error is no measure there."""
SUMS = [
    "sum of 10⁶", "sum along rows", "sum down columns", "variance down columns", "softmax",
    "softmax down columns", "batch_norm, NCHW", "batch_norm, NHWC", "layer_norm", "group_norm",
]  # fmt: skip
needs_compiler = pytest.mark.skipif(
    compiler() is None, reason="no C compiler: install gcc or clang"
)


@needs_compiler
@pytest.mark.parametrize("name", SUMS)
def test_long_sums_are_as_accurate_as_short_ones(name):
    assert measure(KERNELS[name], ["native"])["native"] <= LIMIT


@needs_compiler
@pytest.mark.parametrize("name", ["conv2d, 3×3", "conv2d, depthwise"])
def test_a_kernels_gradient_sums_its_pixels_in_parts(name):
    """18,432 of them; one after the other the error is 12 half units."""
    assert measure(KERNELS[name], ["native"])["native"] <= 6 * HALF_UNIT


@needs_compiler
@pytest.mark.parametrize("name", ["convolutions with batch norms", "encoder layer"])
def test_a_model_is_as_accurate_as_on_the_interpreter(name):
    found = measure(MODELS[name], ["interpreter", "native"])
    assert found["native"] <= FACTOR * found["interpreter"], found


def test_rows_that_are_merged_and_split_again_are_one_index():
    """Else a division in the innermost loop keeps it from lanes, and a sum from partial sums."""
    i = loop("i", 2304)
    assert (i // 48) * 48 + i % 48 == i
    assert (i // 48) * 96 + (i % 48) * 2 + 5 == i * 2 + 5
    assert (i // 48) * 50 + i % 48 != i
    assert (i // 48) * 48 + i % 48 - i == ZERO
