"""Functions of NumPy in less time: the same values, or the same but for rounding."""

import math

import numpy as np
import pytest
from scipy import special

from minipaddle.eager import numpy_functions
from minipaddle.engine.eager.device import NUMPY
from minipaddle.ops import sorting

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-30, -1e-45, 3e38, -3e38]
SHAPES = [(9,), (3, 3), (4096,), (128, 80), (8193,), (3, 5, 700), (3 * 8192, 1), (0, 4)]


def numbers(shape, dtype="float32", seed=0):
    """Random numbers; the first ones are special."""
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype) * 3
    x.reshape(-1)[: len(SPECIAL)] = SPECIAL[: x.size]
    return x


def same(result, expected):
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_choices_and_bounds_have_the_values_of_numpy(shape, dtype):
    x, y = (numbers(shape, seed=k) for k in range(2))
    if dtype == "int32":
        x, y = (np.arange(x.size, dtype=dtype).reshape(shape) - k for k in (5, 50))
    with np.errstate(all="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    condition = numbers(shape, seed=2) > 0
    pairs = [(x, y), (x, 0.5), (1.0, y), (True, y), (x, y[..., :1]), (x, y.astype("float64"))]
    pairs += [(x, np.float32(2)), (1, 2.0), (x.T, y.T), (x[::2], 0.0)]
    for a, b in pairs:
        c = next((condition[tuple(map(slice, z.shape))] for z in (a, b) if z is x), condition)
        c = condition.T if np.shape(a) == x.T.shape != x.shape else c
        c = c[: len(a)] if np.ndim(a) and len(a) < len(c) else c
        same(NUMPY.where(c, a, b), np.where(c, a, b))
        for name in ("maximum", "minimum"):
            same(getattr(NUMPY, name)(a, b), getattr(np, name)(a, b))
            same(getattr(NUMPY, name)(b, a), getattr(np, name)(b, a))


def test_signs_of_zeros_and_bits_of_nan_are_kept_by_where():
    x, y = numbers((64, 128)), -numbers((64, 128))
    condition = np.arange(x.size).reshape(x.shape) % 2 == 0
    result = NUMPY.where(condition, x, y)
    same(result.view("int32"), np.where(condition, x, y).view("int32"))


@pytest.mark.parametrize("shape", [*SHAPES, (), (2, 1)])
def test_erf_is_within_seven_units_of_the_last_place(shape):
    array = numbers(shape) if shape else np.float32(0.3)
    for x in (array, np.asarray(array).T, np.asarray(array)[..., ::2] if shape else array):
        with np.errstate(all="ignore"):
            result, exact = NUMPY.erf(x), special.erf(np.asarray(x, "float64"))
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, exact, rtol=7 * 2**-23, atol=1e-45)
    assert NUMPY.erf(np.ones(3)).dtype == np.float64


@pytest.mark.parametrize("number", [0, 0.5, -3.0, math.inf, True])
@pytest.mark.parametrize("shape", [*SHAPES, ()])
def test_logaddexp_agrees_with_float64(shape, number):
    x = numbers(shape) if shape else np.float32(0.3)
    with np.errstate(all="ignore"):
        result, exact = NUMPY.logaddexp(x, number), np.logaddexp(x.astype("float64"), number)
        assert result.dtype == np.logaddexp(x, number).dtype
    lost = 2**-22 * abs(number) if number < 0 else 1e-45  # where the sum is near 0
    np.testing.assert_allclose(result, exact.astype("float32"), rtol=4 * 2**-23, atol=lost)


@pytest.mark.parametrize("name", ["erf", "logaddexp"])
def test_values_do_not_depend_on_the_block_or_the_call(name):
    x = numbers((3 * numpy_functions.BLOCK + 5,))
    function, more = getattr(NUMPY, name), () if name == "erf" else (0,)
    with np.errstate(all="ignore"):
        whole, again = function(x, *more), function(x, *more)
        parts = [function(x[k : k + 5000], *more) for k in range(0, 45000, 5000)]
    same(again, whole)
    same(np.concatenate(parts), whole[:45000])


@pytest.mark.parametrize("shape", [(64, 128), (8192,), (4, 32, 64), (8193,), (3, 4)])
def test_products_of_all_elements_keep_shape_and_dtype(shape):
    x = (1 + np.random.default_rng(0).normal(size=shape) / 100).astype("float32")
    for axis in (None, tuple(range(x.ndim)), (0,)):
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            result, exact = NUMPY.prod(x, **options), np.prod(x.astype("float64"), **options)
            assert (result.dtype, result.shape) == (x.dtype, exact.shape)
            np.testing.assert_allclose(result, exact, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_best_few_are_those_of_a_stable_sort(dtype):
    rng = np.random.default_rng(0)
    for case in range(20):
        x = rng.integers(-2, 3, (16, 8, 40)).astype(dtype)
        x[rng.random(x.shape) < 0.1] = rng.choice([math.nan, math.inf, -0.0, -math.inf])
        x, axis, k = x.transpose(case % 2, 2, 1 - case % 2), case % 3, 1 + case % 7
        before, first = x.copy(), (*(slice(None),) * axis, slice(k))
        best = sorting.topk_index.body(NUMPY, x, k=k, axis=axis, largest=True)
        same(best, sorting.sort_places(NUMPY, x, axis, True)[first])
        same(x, before)
