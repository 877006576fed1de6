"""Kernels of pooling against the operators' bodies, which the operator suite holds to torch."""

import ml_dtypes
import numpy as np
import pytest

from minipaddle.codegen.machine import target_processor
from minipaddle.engine.core.op import OPS
from minipaddle.engine.eager.device import NUMPY
from tests.codegen.compiling import call, flags_for, needs_gcc, on_each_processor, run_all
from tests.ops import cases_channels_last as suite

pytestmark = needs_gcc
NAMES = sorted(name for name in suite.CASES if "pool" in name)


def check(calls, threads=1, near=1e-6, **options):
    for one, (got,) in zip(calls, run_all(calls, threads, **options)):
        arrays = [a.astype("float64") for a in one.inputs]
        want = OPS[one.record.op.name].body(NUMPY, *arrays, **one.record.attrs)
        np.testing.assert_allclose(got.astype("float64"), want, rtol=near, atol=near)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_suite_s_cases(name, threads):
    calls = []
    for k, case in enumerate(suite.CASES[name]):
        arrays = case.build(np.random.default_rng(k))
        for dtype in ("float64", "float32"):
            calls.append(call(name, [a.astype(dtype) for a in arrays], case.attrs))
    check(calls, threads, 1e-5)


WINDOWS = ((3, 2, 1, 10), (2, 2, 0, 10))
APART = [
    ((2, 2, 0, 10), (2, 2, 0, 10)),  # each pixel is in one window
    ((2, 2, 1, 11), (3, 4, 0, 5)),  # or in none
    ((2, 2, 0, 9), (20, 20, 0, 1)),
]
SHAPE = (9, 20, 20, 37)


def arrays_of(name, dtype, rng, shape=SHAPE, windows=WINDOWS):
    x = rng.integers(-9, 9, shape).astype(dtype)  # many are equal: the first is chosen
    y = OPS["max_pool_last"].body(NUMPY, x, windows=windows)
    g, u = rng.standard_normal(y.shape).astype(dtype), rng.standard_normal(shape).astype(dtype)
    mean = {"windows": windows, "exclusive": True, "divisor": None}
    return {
        "max_pool_last": ([x], {"windows": windows}),
        "max_pool_last_grad": ([g, x, y], {"windows": windows}),
        "max_pool_last_take": ([u, x, y], {"windows": windows}),
        "avg_pool_last": ([u], mean),
        "avg_pool_last_grad": ([g], mean | {"size": shape[1:-1]}),
    }[name]


@pytest.mark.parametrize("channels", [6, 16, 21])
def test_windows_that_cover_the_image_lie_apart_or_reach_beyond_it(channels):
    """Windows of 8 x 9 pixels: (kernel, step, padding, positions) of both axes."""
    rng, calls = np.random.default_rng(0), []
    for rows in ((2, 2, 0, 4), (2, 3, 0, 3), (3, 1, 0, 6), (2, 2, 1, 5), (2, 4, 0, 2)):
        for columns in ((3, 3, 0, 3), (2, 2, 0, 4), (3, 3, 1, 4)):
            at = (2, 8, 9, channels), (rows, columns)
            calls += [call(name, *arrays_of(name, "float32", rng, *at)) for name in NAMES]
    check(calls)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("dtype", "near"),
    [("float32", 1e-5), ("float64", 1e-12), ("float16", 4e-3), (ml_dtypes.bfloat16, 2e-2)],
)
def test_images_of_many_channels(threads, dtype, near):
    rng = np.random.default_rng(0)
    check([call(name, *arrays_of(name, dtype, rng)) for name in NAMES], threads, near)


@pytest.mark.parametrize("windows", APART, ids=str)
@pytest.mark.parametrize(
    ("dtype", "near"), [("float32", 1e-5), ("float16", 4e-3), (ml_dtypes.bfloat16, 2e-2)]
)
def test_windows_that_share_no_pixel(windows, dtype, near):
    """A gradient is written where it belongs, and what no window has is 0."""
    rng = np.random.default_rng(0)
    check([call(name, *arrays_of(name, dtype, rng, SHAPE, windows)) for name in NAMES], 1, near)


@on_each_processor
def test_halves_on_each_processor(processor):
    """Whole and partial vectors are read and rounded by instructions, or number by number."""
    rng, some = np.random.default_rng(0), []
    with target_processor(processor):
        for dtype in ("float16", ml_dtypes.bfloat16):
            some += [call(name, *arrays_of(name, dtype, rng, SHAPE, APART[0])) for name in NAMES]
    check(some, near=2e-2, flags=flags_for(processor))


def test_nan_is_the_largest_and_gets_no_gradient():
    x = np.array([1, np.nan, 3, -np.inf, -np.inf, -np.inf], "float32").reshape(1, 6, 1)
    windows = ((3, 3, 1, 3),)
    one = call("max_pool_last", [x], {"windows": windows})
    y = run_all([one])[0][0]
    np.testing.assert_array_equal(y.ravel(), [np.nan, 3, -np.inf])
    g = np.ones((1, 3, 1), "float32")
    two = call("max_pool_last_grad", [g, x, y], {"windows": windows})
    want = OPS["max_pool_last_grad"].body(NUMPY, g, x, y, windows=windows)
    np.testing.assert_array_equal(run_all([two])[0][0], want)


def test_an_epilogue_comes_after_everything():
    def rows(first, last):
        return f"for (int64_t i = {first} * 37; i < {last} * 37; i++) out0[i] *= 2;\n"

    rng, calls = np.random.default_rng(0), []
    for name in NAMES:
        arrays, attrs = arrays_of(name, "float32", rng)
        calls.append(call(name, arrays, attrs, rows=rows))
    for one, (got,) in zip(calls, run_all(calls, 2)):
        want = OPS[one.record.op.name].body(NUMPY, *one.inputs, **one.record.attrs)
        np.testing.assert_allclose(got, 2 * want, rtol=1e-5, atol=1e-5)
