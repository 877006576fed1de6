"""Every model's programs run in the memory that their plans say: networks, and whole steps."""

import numpy as np
import pytest

from minipaddle.engine.core.dim import Dim
from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.ir.program import everywhere
from minipaddle.engine.passes.lifetimes import specs_of
from minipaddle.executors.arena_interpreter import ArenaRun
from tests.passes.programs import MAKERS, cases

SMALL = 1000
"""In arenas of so few bytes the alignment decides."""


def is_open(program) -> bool:
    """Has it sizes that are known only while it runs?"""
    records = [*program.given, *everywhere(program)]
    return any(type(n) is Dim for r in records for s in specs_of(r) for n in s.shape)


@pytest.mark.parametrize("name", MAKERS)
def test_model(name):
    for case in cases(name):
        if is_open(case.program):
            continue
        run = ArenaRun(NUMPY, check=True)
        found = QUIET.copy().run(run, case.program, [a.copy() for a in case.arrays])
        for x, y, record in zip(found, case.results, case.program.results, strict=True):
            assert x.dtype == record.dtype
            # Adam's step is of one size however small the gradient; `check` compares bytes
            tolerance = {"rtol": 0.01, "atol": 0.01} if x.dtype.kind == "f" else {"rtol": 0}
            np.testing.assert_allclose(x, y, err_msg=repr(record), **tolerance)
        plan = run.plans[case.program]
        assert plan.live <= plan.size <= plan.total
        assert plan.ratio <= 1.05 or plan.size < SMALL


def test_most_programs_are_planned():
    closed = [not is_open(case.program) for name in MAKERS for case in cases(name)]
    assert sum(closed) > 0.75 * len(closed)
