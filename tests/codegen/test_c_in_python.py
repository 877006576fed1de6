"""C of loop nests, run by Python, gives what the interpreter gives: no compiler is asked."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.codegen.nest_kernel import emit_nest
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.manager import optimized
from minipaddle.testing import run_c

FUNCTIONS = {
    "formula": lambda x: [F.gelu(x) + paddle.clip(x, -0.5, 0.5)],
    "row": lambda x: [F.softmax(x, -1)],
    "rows": lambda x: [F.layer_norm(x, 6)],
    "column": lambda x: [x.sum(0)],
    "movement": lambda x: [x.transpose([1, 0]).reshape([4, 6]) * 2.0],
    "padded": lambda x: [F.pad(x, [1, 0, 0, 2]) + 1.0],
    "whole": lambda x: [(x * 9).astype("int64").max(1), (x * 9).astype("int64") // 2],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nest(name):
    x = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
    program = trace(FUNCTIONS[name], [Spec(x.shape, x.dtype)], names="x").program
    expected = Run(NUMPY)(program, [x])
    record = optimized(program).program.records[0]
    outs = [np.full(y.size, 99, y.dtype) for y in expected]
    run_c(emit_nest(record, "k").source, x.reshape(-1).copy(), *outs)
    for y, out in zip(expected, outs, strict=True):
        np.testing.assert_allclose(out.reshape(y.shape), y, rtol=1e-5, atol=1e-6)


def test_buffers_may_overlap():
    x = np.arange(4.0)
    source = "static void k(const double *x, double *y)\n{\n"
    source += "    for (int64_t i = 0; i < 4; i++) {\n        y[i] = x[3 - i];\n    }\n}\n"
    run_c(source, x, x)
    assert x.tolist() == [3, 2, 2, 3]


def test_what_no_nest_is_written_with_is_not_passed_over():
    with pytest.raises(AttributeError):
        run_c("static void k(double *y)\n{\n    while (true) {\n}\n}", np.zeros(1))
