"""Every model's step before and after the passes: the same results."""

import numpy as np
import pytest

from minipaddle.engine.core.slots import plugged
from minipaddle.engine.ir.verifier import VerifyError
from minipaddle.engine.passes.manager import PASSES, optimized
from minipaddle.engine.passes.memory import plan
from tests.passes.programs import MAKERS, cases, program_of, results

NOISY = {"models_sequence.GPTWithCache, step", "models_vision.ViT, step"}
"""Their optimizers divide a gradient that is nothing but rounding by its own size."""


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_results(name):
    near = 1e-2 if name in NOISY else 2e-5
    for case in cases(name):
        after = optimized(case.program).program
        for a, b in zip(case.results, results(after, case.arrays), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(b, a, rtol=near, atol=near)


def test_a_pass_that_breaks_a_program_is_named():
    def reversed_(program):
        program = type(program)(**vars(program))
        program.records = program.records[::-1]
        return program

    program = program_of(lambda x: (x.exp() + 1.0).exp(), (2,))
    with (
        plugged("passes.dead_code", reversed_),
        pytest.raises(VerifyError, match=r"after the pass dead_code: .* not defined before"),
    ):
        optimized(program)


def test_a_pass_that_forgets_a_result_is_named():
    def forgetful(program):
        program = type(program)(**vars(program))
        program.outputs = program.outputs[:1]
        return program

    program = program_of(lambda x: (x.exp(), x.log()), (2,))
    with (
        plugged("passes.cse", forgetful),
        pytest.raises(VerifyError, match="after the pass cse: its inputs or results"),
    ):
        optimized(program)


def test_switches_and_snapshots():
    program = program_of(lambda x: x.exp() * 2.0 + x.exp() * 2.0, (2,))
    done = optimized(program, fusion=False)
    assert [s.name for s in done.snapshots] == [n for n in PASSES if n != "fusion"]
    assert [s.name for s in done.snapshots if s.changed] == ["cse"]  # the first of two
    assert done.snapshots[-1].after is done.after(PASSES[-1]) is done.program
    off = optimized(program, {"cse": False, "fusion": False})
    assert "cse" not in [s.name for s in off.snapshots]
    assert optimized(program, cse=False, fusion=False).program is off.program is program
    assert optimized(program, until="decompose").snapshots[-1].name == "decompose"
    with pytest.raises(ValueError, match="no pass 'exand'"):
        optimized(program, until="exand")


def test_the_report():
    done = optimized(program_of(lambda x: x.exp() * x.exp(), (2, 64)))
    lines = done.report().splitlines()
    assert lines[0].split() == ["pass", "records", "kernels", "moved", "live", "ms"]
    assert lines[1].split() == ["before", "3", "3", "3.5", "KiB", "512", "B"]
    row = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert row["fusion"][:6] == ["2", "1", "1.0", "KiB", "0", "B"]
    assert row["decompose"][0] == "="
    assert row.keys() == {*PASSES, "memory"}
    assert lines[-1] == "memory plan: arena 0 B, live 0 B"
    assert str(done.planned()).splitlines()[0] == str(plan(done.program)).splitlines()[0]
