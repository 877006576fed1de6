"""The same kernels compiled for processors with narrower vectors than this one's."""

import platform

import numpy as np
import pytest

from tests.codegen import test_convolution as convolution
from tests.codegen import test_pooling as pooling
from tests.codegen import test_product as product
from tests.codegen.compiling import FLAGS, call, needs_gcc, run_all

pytestmark = [
    needs_gcc,
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="flags of x86"),
]
PROCESSORS = ["x86-64", "x86-64-v2", "x86-64-v3"]


def flags(processor: str) -> tuple:
    return tuple(f"-march={processor}" if "march" in flag else flag for flag in FLAGS)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_products(processor):
    calls = [
        call("product", product.arrays((m, 37), (37, n), dtype, m), product.PLAIN)
        for m in (1, 5, 8, 15, 33)
        for n in (1, 3, 8, 13, 24, 50)
        for dtype in ("float32", "float64")
    ]
    calls += [
        call("product", product.arrays((m, 37), (n, 37), dtype, m), product.TURNED)
        for m in (3, 9)
        for n in (6, 30)
        for dtype in ("float32", "float64")
    ]
    for one, (got,) in zip(calls, run_all(calls, flags=flags(processor))):
        want = product.expected(*one.inputs, **one.record.attrs)
        product.check(got, want, got.dtype, 37)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_convolutions_and_pooling(processor):
    calls = list(convolution.calls_of(convolution.LARGE[:9] + convolution.LARGE[27:], "float32"))
    convolution.check(calls, flags=flags(processor))
    rng = np.random.default_rng(0)
    calls = [call(name, *pooling.arrays_of(name, "float32", rng)) for name in pooling.NAMES]
    pooling.check(calls, near=1e-5, flags=flags(processor))
