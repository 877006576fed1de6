"""The same kernels written and compiled for each processor that this one can run."""

import numpy as np

from minipaddle.codegen.machine import target_processor
from tests.codegen import test_convolution as convolution
from tests.codegen import test_pooling as pooling
from tests.codegen import test_product as product
from tests.codegen.compiling import call, flags_for, needs_gcc, on_each_processor, run_all

pytestmark = needs_gcc


@on_each_processor
def test_products(processor):
    with target_processor(processor):
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
    for one, (got,) in zip(calls, run_all(calls, flags=flags_for(processor))):
        want = product.expected(*one.inputs, **one.record.attrs)
        product.check(got, want, got.dtype, 37)


@on_each_processor
def test_convolutions_and_pooling(processor):
    rng, flags = np.random.default_rng(0), flags_for(processor)
    with target_processor(processor):
        images = [*convolution.calls_of(convolution.LARGE[:9] + convolution.LARGE[27:], "float32")]
        pools = [call(name, *pooling.arrays_of(name, "float32", rng)) for name in pooling.NAMES]
    convolution.check(images, flags=flags)
    pooling.check(pools, near=1e-5, flags=flags)
