"""Every operator of the suite, through the passes: what comes out is the same."""

import numpy as np
import pytest

from minipaddle.engine.passes.manager import optimized
from tests.executors.test_native_operators import NEAR, chunks, program_of
from tests.passes.programs import results

pytestmark = pytest.mark.sweep(one_in=3)

PARTS = 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("part", range(PARTS))
def test_the_same(dtype, part):
    for cases in chunks(dtype)[part::PARTS]:
        program, arrays, owners = program_of(cases, dtype)
        after = optimized(program).program
        pairs = zip(owners, results(program, arrays), results(after, arrays), strict=True)
        rtol, atol = NEAR[dtype]
        for name, a, b in pairs:
            assert (a.dtype, a.shape) == (b.dtype, b.shape), name
            np.testing.assert_allclose(
                b.astype("f8"), a.astype("f8"), rtol=rtol, atol=atol, err_msg=name
            )
