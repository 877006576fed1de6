"""The kernels of chains, between guards, on one thread and two."""

import numpy as np
import pytest

from minipaddle.codegen.products.strip_products import emit_strip_products
from minipaddle.engine.codegen.kernel_schedule import KernelSchedule, following
from minipaddle.engine.ir.program import Program
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.back_to_back_gemm import is_chain
from tests.codegen.compiling import Call, needs_gcc, run_all
from tests.passes.programs import program_of, results
from tests.passes.test_back_to_back_gemm import FORMS

pytestmark = needs_gcc


def calls(**answers) -> list[Call]:
    """The chain of each form, on random arrays; written as a schedule says."""
    found = []
    for k, (function, specs) in enumerate(FORMS.values()):
        record = next(
            r for r in optimized(program_of(function, *specs)).program.records if is_chain(r)
        )
        rng = np.random.default_rng(k)
        arrays = [
            np.tri(*x.shape, dtype=bool)
            if x.dtype == bool
            else rng.standard_normal(x.shape).astype(x.dtype)
            for x in record.inputs
        ]
        with following(KernelSchedule(answers)):
            kernel = emit_strip_products(record, f"chain{k}_{'_'.join(map(str, answers.values()))}")
        found.append(Call(kernel, record, arrays))
    return found


def expected(call: Call) -> list:
    region: Program = call.record.attrs["region"]
    return results(region, call.inputs)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("answers", [{}, {"strip": 8, "threads": "rows"}, {"tall": 4, "deep": 128}])
def test_they_compute_what_their_records_do(answers, threads):
    made = calls(**answers)
    for call, found in zip(made, run_all(made, threads), strict=True):
        for a, b in zip(found, expected(call), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
