"""Sums and products of long rows, in several chains: against NumPy in double, and their C."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from tests.passes.programs import program_of

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
FUNCTIONS = {
    "sum": (lambda x: x.sum(), lambda x: x.sum()),
    "sums of rows": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "product": (lambda x: x.prod(), lambda x: x.prod()),
    "mean and square": (
        lambda x: (x.mean(), (x * x).sum()),
        lambda x: (x.mean(), (x * x).sum()),
    ),
    "largest": (lambda x: x.max(), lambda x: x.max()),
    "deviation": (lambda x: paddle.std(x), lambda x: x.std(ddof=1)),
}
SHAPES = {
    (4096,): 1,
    (2, 2112): 1,
    (70, 3, 64): 1,
    (7, 3, 64): 0,
    (2, 2111): 0,
    (1 << 20,): 1,
    (3, 128): 0,
}
"""By shape: whether blocks of the whole are chains."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name, shape, dtype):
    function, right = FUNCTIONS[name]
    x = (1 + 1e-3 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    x.flat[-1] = 1.5  # the last of all counts
    program = program_of(function, Spec(shape, np.dtype(dtype)))
    compiled = Executable(program)
    expected = right(x.astype("float64"))
    expected = expected if isinstance(expected, tuple) else (expected,)
    tolerance = 2e-6 if dtype == "float32" else 1e-12
    for a, b in zip(compiled(program, [x]), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance * (200 if name == "product" else 1))
    if name in ("sum", "product"):
        assert ("unroll 16" in compiled.source.text) == SHAPES[shape]


def test_each_place_counts_once():
    """Of ones and a single other number: the sum is exact."""
    program = program_of(lambda x: x.sum(), Spec((4288,), np.dtype("float32")))
    compiled = Executable(program)
    for k in (0, 63, 64, 2047, 2048, 4287):
        x = np.ones(4288, "float32")
        x[k] = 1024
        assert compiled(program, [x])[0] == 4287 + 1024
