"""Kernels that join and cut arrays, against NumPy."""

import numpy as np
import pytest

from minipaddle.engine.codegen.scalar import CannotWrite
from tests.codegen.compiling import call, needs_gcc, run_all

pytestmark = needs_gcc


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16"])
def test_joined_and_cut_along_every_axis(dtype):
    rng, calls, want = np.random.default_rng(0), [], []
    for axis in range(3):
        shapes = [[3, 4, 5] for _ in range(3)]
        for k, shape in enumerate(shapes):
            shape[axis] = k  # one is empty
        xs = [rng.integers(0, 2, s).astype(dtype) for s in shapes]
        calls.append(call("concat", xs, {"axis": axis}))
        want.append([np.concatenate(xs, axis)])
    for axis in range(3):
        xs = [rng.integers(0, 2, (3, 4)).astype(dtype) for _ in range(3)]
        calls.append(call("stack", xs, {"axis": axis}))
        want.append([np.stack(xs, axis)])
    for axis in range(3):
        x = rng.integers(0, 2, (6, 6, 6)).astype(dtype)
        calls.append(call("split", [x], {"sizes": (1, 0, 3, 2), "axis": axis}))
        want.append(np.split(x, [1, 1, 4], axis))
    for got, expected in zip(run_all(calls), want):
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


def test_what_is_left_to_others():
    ones = np.ones((2, 2), "float32")
    with pytest.raises(CannotWrite):
        call("concat", [ones, ones.astype("float64")], {"axis": 0})
    with pytest.raises(CannotWrite):
        call("split", [ones], {"sizes": (1, 1), "axis": 0}, rows=lambda first, last: "")


def test_an_epilogue():
    ones = np.ones((3, 2), "float32")
    rows = lambda a, b: f"for (int64_t i = {a} * 4; i < {b} * 4; i++) out0[i] += 1;\n"
    (got,) = run_all([call("concat", [ones, ones], {"axis": 1}, rows=rows)])[0]
    np.testing.assert_array_equal(got, np.full((3, 4), 2))
