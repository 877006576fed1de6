"""Native float32 is about as near to float64 as the interpreter's: see `tests/benchmarks`."""

import pytest

from minipaddle.engine.core.polynomial import ZERO, loop
from minipaddle.engine.executors.compiler import compiler
from tests.benchmarks.accuracy import (
    HALF_UNIT,
    KERNELS,
    MODELS,
    WORKLOADS,
    F,
    Kernel,
    measure,
    medians,
    worst_ratio,
)

pytestmark = pytest.mark.sweep(one_in=4)

PAIR = ["interpreter", "native"]
FACTOR = 2.0
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


PRODUCTS = {
    "4,096 terms": Kernel(lambda x, y: x @ y, ((64, 4096), (4096, 64))),
    "one row": Kernel(lambda x, y: x @ y, ((1, 4096), (4096, 200))),
    "1×1, 18,432 pixels": KERNELS["conv2d, 1×1"],
    "3×3, stride 2": Kernel(lambda x, w: F.conv2d(x, w, padding=1, stride=2),
                            ((4, 16, 32, 32), (32, 16, 3, 3))),
    "3×3, 4,608 terms": Kernel(lambda x, w: F.conv2d(x, w), ((1, 512, 6, 6), (3, 512, 3, 3))),
    "Winograd's": Kernel(lambda x, w: F.conv2d(x, w, padding=1), ((1, 256, 8, 8), (16, 256, 3, 3))),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_sum_their_terms_in_parts(name):
    assert worst_ratio(medians(PRODUCTS[name], PAIR, 1)) <= FACTOR


NARROW = Kernel(lambda x: x.sum((0, 2, 3)), ((32, 64, 8, 8),), 1.0)


@needs_compiler
def test_a_sum_over_batch_and_image_adds_short_rows_in_double():
    """Lane after lane, the error of 512 terms was 3.5 times the interpreter's."""
    assert worst_ratio(medians(NARROW, PAIR)) <= FACTOR


@needs_compiler
def test_a_sum_over_no_axis_is_its_term():
    found = medians(Kernel(lambda x: x.sum([]) * 2.0, ((3,),), 1.0), PAIR, 1)
    assert max(found["native"]) <= HALF_UNIT


MANY = {n: MODELS[n] for n in ("convolutions with batch norms", "encoder layer")}
MANY |= {n: WORKLOADS[n] for n in ("mlp", "resnet-inference")}


@needs_compiler
@pytest.mark.parametrize("name", MANY)
def test_a_model_is_as_accurate_as_on_the_interpreter(name):
    assert worst_ratio(medians(MANY[name], PAIR, 3)) <= FACTOR


def test_rows_that_are_merged_and_split_again_are_one_index():
    """Else a division in the innermost loop keeps it from lanes, and a sum from partial sums."""
    i = loop("i", 2304)
    assert (i // 48) * 48 + i % 48 == i
    assert (i // 48) * 96 + (i % 48) * 2 + 5 == i * 2 + 5
    assert (i // 48) * 50 + i % 48 != i
    assert (i // 48) * 48 + i % 48 - i == ZERO
