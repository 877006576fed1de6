"""Products of floats with weights of 8 and 4 bits, compiled: against NumPy in float64."""

import numpy as np
import pytest

from minipaddle.ops.weight_only import weight_only_matmul
from tests.codegen.compiling import call, needs_gcc, run_all

RNG = np.random.default_rng(0)
SIZES = [(1, 128, 6, 2), (3, 70, 5, 1), (9, 48, 40, 2), (4, 21, 2, 3), (0, 8, 2, 1)]


def arrays(rows, terms, outs, groups, bits, dtype):
    q = RNG.integers(-128, 128, (outs * bits // 8, terms)).astype("int8")
    scale = RNG.uniform(0.5, 2.0, (groups, outs)).astype(dtype)
    return [RNG.standard_normal((rows, terms)).astype(dtype), q, scale]


@needs_gcc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_agree_with_numpy(dtype):
    given = [(size, bits) for size in SIZES for bits in (8, 4) if bits == 8 or size[2] % 2 == 0]
    calls = [
        call("weight_only_matmul", arrays(*size, bits, dtype), {"bits": bits})
        for size, bits in given
    ]
    for threads in (1, 2):
        for one, (y,) in zip(calls, run_all(calls, threads=threads), strict=True):
            x, q, scale = (a.astype("float64") for a in one.inputs)
            if one.record.attrs["bits"] == 4:
                q = np.stack([(q.astype(int) & 15 ^ 8) - 8, q.astype(int) >> 4], 1)
                q = q.reshape(-1, x.shape[1])
            w = q.T * np.repeat(scale, x.shape[1] // len(scale), axis=0)
            near = {"rtol": 1e-4, "atol": 1e-3} if dtype == "float32" else {"rtol": 1e-10}
            np.testing.assert_allclose(y, x @ w, **near)


def test_halves_are_cast_before():
    with pytest.raises(TypeError, match=r"float32 or float64, not in float16"):
        call("weight_only_matmul", arrays(2, 8, 2, 1, 8, "float16"), {"bits": 8})


def test_shapes_are_checked():
    x, q, scale = arrays(2, 64, 4, 1, 4, "float32")
    with pytest.raises(ValueError, match=r"x \[2, 63\].*64 inputs in 4 bits"):
        weight_only_matmul(x[:, 1:], q, scale, bits=4)
