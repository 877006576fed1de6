"""Kernels along an axis against the operators' bodies: long lines, ties, NaN, -0, any axis."""

from __future__ import annotations

import numpy as np
import pytest

from minipaddle.engine.core.op import OPS
from minipaddle.engine.eager.device import NUMPY
from tests.codegen.compiling import call, needs_gcc, run_all

pytestmark = needs_gcc

FLOATS = ("float32", "float64", "float16")
WHOLE = ("int64", "int32", "int8", "uint8", "bool")
PLACES = ("argmax", "argmin", "argsort", "topk_index", "mode_index", "cummax_index", "cummin_index")
"""The operators that return places: ties and NaN decide, and nothing is rounded."""
SUMS = ("cumsum", "cumprod", "recurrence", "logcumsumexp")


def drawn(rng, dtype: str, shape) -> np.ndarray:
    """An array with many ties, and among floats NaN, infinities and both zeros."""
    ties = rng.choice([1, 3, 40, 10_000])
    x = rng.integers(-ties, ties + 1, shape)
    if dtype not in FLOATS:
        return x.astype(dtype)
    x = x / 4
    strange = rng.choice([0.0, 0.0, 0.02])
    for value in (np.nan, np.inf, -np.inf, -0.0):
        x[rng.random(shape) < strange] = value
    return x.astype(dtype)


def shape_of(rng) -> tuple:
    """A few axes, one of which may be long."""
    sizes = [int(rng.choice([1, 2, 3, 8, 17])) for _ in range(rng.integers(1, 4))]
    sizes[rng.integers(len(sizes))] = int(rng.choice([1, 2, 5, 64, 257, 1000, 4097, 6000]))
    return tuple(sizes)


def drawn_call(rng, name: str):
    """An operator's kernel on random arrays."""
    dtype = str(rng.choice(FLOATS if name in ("recurrence", "logcumsumexp") else FLOATS + WHOLE))
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))
    x, attrs = drawn(rng, dtype, shape), {"axis": axis}
    if name in ("argmax", "argmin"):
        attrs |= {"keepdim": bool(rng.random() < 0.5)}
        attrs["axis"] = None if rng.random() < 0.2 and not attrs["keepdim"] else axis
    elif name in ("argsort", "sort"):
        attrs["descending"] = bool(rng.random() < 0.5)
    elif name == "topk_index":
        k = int(rng.choice([1, 2, 5, 60, shape[axis]]))
        attrs |= {"k": min(k, shape[axis]), "largest": bool(rng.random() < 0.5)}
    elif name in ("cumsum", "cumprod", "recurrence"):
        attrs["reverse"] = bool(rng.random() < 0.5)
    if name == "recurrence":
        return call(name, [np.clip(drawn(rng, dtype, shape), -0.5, 0.5), x], attrs)
    if name == "cumprod" and dtype in FLOATS:
        x = np.sign(x) * 2 ** np.clip(x, -0.1, 0.1).astype(dtype)
    return call(name, [x], attrs)


@pytest.mark.parametrize("seed", range(6))
def test_random_lines(seed):
    rng = np.random.default_rng(seed)
    calls = [drawn_call(rng, name) for name in (*PLACES, "sort", *SUMS) for _ in range(4)]
    for one, (got,) in zip(calls, run_all(calls, threads=1 + seed % 2), strict=True):
        name, attrs = one.record.op.name, one.record.attrs
        with np.errstate(all="ignore"):
            want = np.asarray(OPS[name].evaluate(NUMPY, one.inputs, attrs))
        assert got.dtype == want.dtype
        said = f"{name} of {one.inputs[0].dtype}{one.inputs[0].shape}, {attrs}"
        if name in SUMS and want.dtype.kind == "f":
            near = {"rtol": 1e-2, "atol": 1e-2} if want.dtype == "float16" else {"rtol": 1e-3}
            np.testing.assert_allclose(got, want, **{"atol": 1e-3} | near, err_msg=said)
        else:
            np.testing.assert_array_equal(got, want, err_msg=said)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_running_products_round_once_where_they_are_small(dtype):
    """Down to the least float and back, with ties; NumPy's product of doubles is the oracle."""
    rng = np.random.default_rng(0)
    x = rng.choice([0.5, -0.5, 0.75, -1.5, 0.375, 3.0, 1e-3, -700.0], (37, 301)).astype(dtype)
    x[:, 0] = rng.choice([2.0**-14, -(2.0**-13)], 37)
    if dtype == "float32":
        x[:, 1] = rng.choice([2.0**-112, -(2.0**-120), 2.0**-134, 3.3e-36], 37)
    for value in (np.inf, np.nan, 0.0, -0.0, np.finfo(dtype).smallest_subnormal):
        x[rng.random(x.shape) < 1e-3] = value
    want, total = np.empty_like(x), np.ones(len(x), "float32")
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]):
            total = (total.astype("float64") * x[:, k]).astype("float32")
            want[:, k] = total
    tiny = np.finfo("float32").tiny
    assert dtype == "float16" or np.mean((want != 0) & (abs(want) < tiny)) > 0.02
    got = run_all([call("cumprod", [x], {"axis": 1, "reverse": False})])[0][0]
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[want == want], np.signbit(want)[want == want])


def test_places_along_an_axis_of_an_empty_array():
    none = call("along_index", [np.zeros((0, 1), "int64")], {"shape": (3, 7), "axis": 1})
    assert run_all([none])[0][0].shape == (0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_random_searches(seed):
    rng, calls = np.random.default_rng(seed), []
    for dtype in FLOATS + WHOLE[:2]:
        rows = np.sort(drawn(rng, dtype, (3, 200)), axis=1)
        value = drawn(rng, dtype, (3, 31))
        for right in (False, True):
            calls.append(call("searchsorted", [rows, value], {"right": right}))
            calls.append(call("searchsorted", [rows[0], value], {"right": right}))
    for one, (got,) in zip(calls, run_all(calls), strict=True):
        want = OPS["searchsorted"].evaluate(NUMPY, one.inputs, one.record.attrs)
        np.testing.assert_array_equal(got, want)
