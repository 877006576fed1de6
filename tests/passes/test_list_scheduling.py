"""The schedule: an order that respects what depends on what, with a peak that is no higher."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings

from minipaddle.engine.core.record import Record, Spec
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import INPUT, Program, State
from minipaddle.engine.ops import elementwise, reduction
from minipaddle.engine.passes.list_scheduling import schedule
from minipaddle.engine.passes.memory import plan
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun
from minipaddle.ir.parser import parse
from tests.passes.test_memory import arrays, program, programs


@pytest.mark.sweep
@settings(max_examples=200, derandomize=True, deadline=None)
@given(programs())
def test_any_program(program):
    other = schedule(program)
    assert sorted(map(id, other.records)) == sorted(map(id, program.records))
    assert plan(other).live <= plan(program).live
    run, xs = ArenaRun(np, check=True), arrays(program)
    for x, y in zip(run(other, xs), Run(np)(program, xs), strict=True):
        np.testing.assert_array_equal(x, y)


def test_gradients_are_used_as_soon_as_they_are_there():
    """Two gradients, then two updates: with an update after each, one gradient lives at a time."""
    p = program("""
        state a: f
        state b: f
        v1 = cumsum(x, axis=0, reverse=False) : f
        v2 = cumsum(x, axis=0, reverse=True) : f
        v3 = subtract(a, v1) : f
        v4 = subtract(b, v2) : f
        update a = v3
        update b = v4
        return""")
    names = [r.op.name for r in schedule(p).records]
    assert names == ["cumsum", "subtract"] * 2
    assert (plan(p).live, plan(schedule(p)).live) == (128, 64)


def test_who_reads_a_state_comes_before_its_update_is_written():
    p = program("""
        state a: f
        v1 = tanh(a) : f
        v2 = cumsum(v1, axis=0, reverse=False) : f
        v3 = cumsum(v1, axis=0, reverse=True) : f
        v4 = multiply(v2, v3) : f
        v5 = subtract(a, x) : f
        update a = v5
        return v4""")
    assert plan(schedule(p)).copies == []


def test_a_record_is_judged_with_what_it_leads_to():
    """Making a large value pays off only when the sum after it is seen too."""
    p = parse("""program p(x: float32[64]) {
        v1 = tanh(x) : float32[64]
        v2 = broadcast_to(x, shape=(8, 64,)) : float32[8, 64]
        v3 = sum(v2, axis=(0, 1,), keepdim=False) : float32[]
        v4 = cumsum(v1, axis=0, reverse=False) : float32[64]
        v5 = multiply(v4, v3) : float32[64]
        v6 = cumsum(v5, axis=0, reverse=False) : float32[64]
        return v6
    }""")
    names = [r.op.name for r in schedule(p).records]
    assert names[:2] == ["broadcast_to", "sum"]


def long_program(count: int = 3000) -> Program:
    """A network of sums and products, its gradients all waiting for the end."""
    spec, small = Spec((16, 16), np.dtype("float32")), Spec((), np.dtype("float32"))
    x = Record(INPUT, (), {"name": "x"}, *spec)
    found, values = Program("long", [x]), [x]
    for k in range(count // 3):
        w = Record(INPUT, (), {"name": f"w{k}"}, *spec)
        values.append(Record(elementwise.multiply, [values[-1], w], {}, *spec))
        found.states.append(State(f"w{k}", w))
    back, g = [], values[-1]
    for value, state in zip(reversed(values[:-1]), reversed(found.states), strict=True):
        g = Record(elementwise.add, [g, value], {}, *spec)
        state.update = Record(elementwise.subtract, [state.record, g], {}, *spec)
        back += [g, state.update]
    total = Record(reduction.sum, [g], {"axis": (0, 1), "keepdim": False}, *small)
    found.records, found.outputs = [*values[1:], *back, total], [total]
    return found


@pytest.mark.sweep
def test_work_grows_with_the_program_no_faster():
    def calls(count):
        found, p = [0], long_program(count)
        sys.setprofile(lambda frame, event, arg: found.__setitem__(0, found[0] + 1))
        try:
            schedule(p)
        finally:
            sys.setprofile(None)
        return found[0]

    assert 1000 < calls(3000) < 2.5 * calls(1500)
