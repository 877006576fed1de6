"""A program run one record at a time, as exercises, the fuzzers and their noise do it."""

import numpy as np
import pytest

from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.ir.parser import parse

PROGRAM = """program p(x: float32[n, 2]) {
  v1 = exp(x) : float32[n, 2]
  v2 = reshape(v1, shape=(<2*n>,)) : float32[2*n]
  return v2
}"""


def test_records_computed_one_at_a_time_give_what_a_run_gives():
    program, x = parse(PROGRAM), np.float32([[0, 1], [2, 3], [4, 5]])
    run = Run(NUMPY)
    run.begin(program, [x])
    assert run.sizes == {"n": 3}
    values = {program.given[0]: x}
    for record in program.records:
        inputs = [values[r] for r in record.inputs]
        values[record] = run.compute(program, record, inputs)
    (expected,) = Run(NUMPY)(program, [x])
    assert np.array_equal(values[program.results[0]], expected)


def test_a_record_that_fails_alone_fails_as_in_a_run():
    program, run = parse(PROGRAM), Run(NUMPY, {"n": 3})
    with pytest.raises(ValueError, match="reshape"):
        run.compute(program, program.records[1], [np.zeros(5, "float32")])
