"""Kernels of operators whose places are in the data, against the operators' own bodies."""

import numpy as np
import pytest

from minipaddle.codegen.cuda.calls import CUDA_EMITTERS
from minipaddle.codegen.target import KERNELS
from minipaddle.engine.codegen.kernel import EMITTERS
from minipaddle.engine.core.op import OPS
from minipaddle.engine.eager.device import NUMPY
from tests.codegen.compiling import call, compiled, file_of, needs_gcc, run_all, run_one
from tests.ops import cases_indexing, cases_movement, cases_nn, cases_resample
from tests.ops.cases import Case

pytestmark = needs_gcc
CASES = cases_indexing.CASES | cases_nn.CASES | cases_movement.CASES | cases_resample.CASES
NAMES = ["embedding", "one_hot", "pick", "place", "put", "scatter_sum", "take"]
NAMES += ["along_index", "flat_index", "remap", "slice_assign"]


def check(calls, threads=1):
    for one, (got,) in zip(calls, run_all(calls, threads)):
        want = OPS[one.record.op.name].evaluate(NUMPY, one.inputs, one.record.attrs)
        np.testing.assert_allclose(
            got.astype("float64"), np.asarray(want).astype("float64"), rtol=1e-5, atol=1e-6
        )
        assert got.dtype == want.dtype


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_s_cases(name):
    calls = []
    cases = [CASES[name]] if isinstance(CASES[name], Case) else CASES[name]
    for k, case in enumerate(cases):
        arrays = case.build(np.random.default_rng(k))
        for dtype in ("float64", "float32", "float16"):
            cast = [
                a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
                for a in arrays
            ]
            calls.append(call(name, cast, case.attrs))
    check(calls)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_tables(threads):
    rng = np.random.default_rng(0)
    table, numbers = rng.standard_normal((300, 128)), rng.integers(0, 300, (8, 100))
    rows = rng.standard_normal((8, 100, 128)).astype("float32")
    calls = [
        call("embedding", [numbers, table.astype("float32")], {"padding_idx": 7}),
        call("take", [table, numbers - 150], {"axis": 0}),
        call("take", [rng.standard_normal((4, 9, 200)), numbers % 9], {"axis": 1}),
        call("scatter_sum", [rows, numbers], {"shape": (300, 128), "axis": 0}),
    ]
    check(calls, threads)


def test_a_place_out_of_range_is_told_and_not_touched():
    x, index = np.ones((3, 4), "float32"), np.array([0, 3, 1])
    one = call("take", [x, index], {"axis": 0})
    text = file_of([one.kernel]) + "int failed(void) { return bad_index; }\n"
    library = compiled(text)
    assert not library.failed()
    (got,) = run_one(library, one)
    assert library.failed()
    assert np.isnan(got).all()  # all indices are checked before the first row is written


def test_every_emitter_is_of_an_operator():
    assert set(EMITTERS) <= set(OPS)


def test_both_targets_write_every_shared_kernel():
    assert KERNELS
    assert KERNELS.keys() <= EMITTERS.keys() & CUDA_EMITTERS.keys()
