"""Elementwise groups with rows of a few elements: vectors of rows."""

import numpy as np
import pytest

import minipaddle as paddle
from tests.codegen.compiling import needs_gcc

pytestmark = needs_gcc


@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_channels_of_an_image(channels):
    paddle.seed(0)
    x = 3 * paddle.randn([2, channels, 9, 11])
    x[0, 1, 3, 4], x[1, 0, 8, 10] = float("nan"), float("-inf")
    last = lambda x: (paddle.clip(x * 2, -1, 4) + 0.5).transpose([0, 2, 3, 1])
    run = paddle.jit.to_static(last, backend="native")
    np.testing.assert_array_equal(run(x).numpy(), last(x).numpy())
    source = run.executables[0].source.own
    assert ("#pragma GCC unroll 4\n" in source) is (channels < 5)


def test_conditions_in_short_rows():
    """GCC 12 lost elements that were loaded under a condition, in rows that it unrolled."""
    x = paddle.arange(1, 16, dtype="float32").reshape([5, 3])
    z = paddle.zeros([7, 3])
    z.stop_gradient = False
    slope = lambda z, x: paddle.grad((z[:5] * x + z[1:6] * (100 * x)).sum(), [z])[0]
    run = paddle.jit.to_static(slope, backend="native")
    np.testing.assert_array_equal(run(z, x).numpy(), slope(z, x).numpy())
