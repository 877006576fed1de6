"""Plans of small programs: every way in which states, outputs and views may share a value."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaddle.engine.core.record import Record, Spec
from minipaddle.engine.core.slots import OPS
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import INPUT, ITEM, Program, State
from minipaddle.engine.ops import movement
from minipaddle.engine.passes.buffer_assignment import Location
from minipaddle.engine.passes.memory import plan
from minipaddle.engine.passes.nest import Nest
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun, OverwrittenError
from minipaddle.ir.parser import parse

SPEC = Spec((4, 6), np.dtype("float32"))


def arrays(program, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=r.shape).astype(r.dtype) for r in program.given]


def agrees(program, **how):
    """The plan of a program, after it ran in its arena and gave what the interpreter gives."""
    run, xs = ArenaRun(np, check=True, planner=lambda p: plan(p, **how)), arrays(program)
    before = [x.copy() for x in xs]
    for _ in range(2):
        for x, y in zip(run(program, xs), Run(np)(program, xs), strict=True):
            np.testing.assert_array_equal(x, y)
    for x, y in zip(xs, before, strict=True):
        np.testing.assert_array_equal(x, y)
    return run.plans[program]


def program(text: str):
    """`f` stands for float32[16]."""
    return parse("program p(x: float32[16]) {\n" + re.sub(r"\bf\b", "float32[16]", text) + "\n}")


# ---- states ----------------------------------------------------------------------------------


def test_an_update_is_written_into_its_state_by_the_operator_that_reads_it_last():
    p = program("state w: f\n v1 = add(w, x) : f\n update w = v1\n return")
    found = agrees(p)
    assert found.location(p.records[0]) == Location("state", 0, 0, 64)
    assert (found.size, found.copies) == (0, [])


def test_an_update_waits_for_the_last_reader_of_the_old_value():
    p = program(
        "state w: f\n v1 = add(w, x) : f\n v2 = multiply(w, x) : f\n update w = v1\n return v2"
    )
    found = agrees(p)
    assert found.location(p.records[0]).kind == "arena"
    assert [c.target.kind for c in found.copies] == ["state"]


def test_an_operator_that_may_not_write_where_it_reads_writes_elsewhere():
    p = program("state w: f\n v1 = add(w, x) : f\n update w = v1\n return")
    found = agrees(p, inplace=lambda record: [])
    assert found.location(p.records[0]).kind == "arena"
    assert len(found.copies) == 1


def test_one_reader_of_two_forbids_writing_over_a_value():
    """x + x reversed: the second reading is elsewhere."""
    p = program("state w: f\n v1 = add(w, w) : f\n update w = v1\n return")
    assert not agrees(p).copies
    assert len(agrees(p, inplace=lambda record: [(0, 0)]).copies) == 1


def test_two_states_with_one_update():
    p = program(
        "state a: f\n state b: f\n v1 = add(a, x) : f\n update a = v1\n update b = v1\n return v1"
    )
    found = agrees(p)
    assert found.location(p.records[0]).kind == "state"
    assert sorted(c.target.kind for c in found.copies) == ["output", "state"]


def test_swapped_states():
    p = program("state a: f\n state b: f\n update a = b\n update b = a\n return a")
    found = agrees(p)
    assert len(found.copies) == 3
    assert found.size == 64


def test_states_that_change_places_in_circles():
    names = "abcde"
    states = "\n".join(f"state {n}: f" for n in names)
    p = program(
        f"{states}\n update a = b\n update b = c\n update c = a\n update d = e\n"
        " update e = d\n return"
    )
    found = agrees(p)
    assert len(found.copies) == 7
    assert found.live == 128


def test_a_chain_of_states_shifts():
    p = program(
        "state a: f\n state b: f\n state c: f\n v1 = add(a, x) : f\n"
        "update a = v1\n update b = a\n update c = b\n return c"
    )
    found = agrees(p)
    assert [c.target.k for c in found.copies] == [2, 1, 0]


def test_a_state_that_becomes_an_input_or_stays():
    p = program("state a: f\n state b: f\n update a = x\n return b")
    found = agrees(p)
    assert len(found.copies) == 1
    assert len(found.before) == 1


# ---- outputs ---------------------------------------------------------------------------------


def test_outputs_are_made_in_their_buffers_and_so_is_what_leads_to_them_in_place():
    p = program("v1 = tanh(x) : f\n v2 = exp(v1) : f\n return v2")
    found = agrees(p)
    assert [found.location(r).kind for r in p.records] == ["output", "output"]
    assert found.size == 0


def test_an_output_given_twice_or_given_to_the_program():
    p = program(
        "v1 = tanh(x) : f\n v2 = reshape(v1, shape=(4, 4,)) : float32[4, 4]\n return v1, v2, x, 3.0"
    )
    found = agrees(p)
    assert len(found.copies) == 1
    assert len(found.before) == 2


def test_a_view_is_an_alias():
    p = program(
        "v1 = tanh(x) : f\n v2 = reshape(v1, shape=(4, 4,)) : float32[4, 4]\n"
        "v3 = transpose(v2, perm=(1, 0,)) : float32[4, 4]\n v4 = assign(v3) : float32[4, 4]\n"
        "v5 = sum(v4, axis=(0, 1,), keepdim=False) : float32[]\n return v5"
    )
    found = agrees(p)
    kinds = [found.locations[r].kind for r in p.records]
    assert kinds == ["arena", "alias", "arena", "alias", "output"]
    assert found.location(p.records[1]) == found.location(p.records[0])


# ---- regions ---------------------------------------------------------------------------------

BRANCH = """
v1 = tanh(x) : f
v2 = sum(v1, axis=(0,), keepdim=False) : float32[]
v3 = greater_than(v2, 0.0) : bool[]
v4 = cond(v3, v1, true=(a: f) {
  v1 = exp(a) : f
  v2 = concat(v1, a, axis=0) : float32[32]
  v3 = sum(v2, axis=(0,), keepdim=True) : float32[1]
  v4 = add(v3, a) : f
  return v4, a
}, false=(a: f) {
  return a, a
}) : (f, f)
v5 = item(v4, k=0) : f
v6 = item(v4, k=1) : f
v7 = add(v5, v6) : f
return v7
"""


def test_a_branch_has_an_arena_inside_the_arena():
    p = program(BRANCH)
    found = agrees(p)
    record = p.records[3]
    inner = found.regions[record]["true"]
    assert inner.size >= 128
    assert found.work[record].nbytes == inner.size
    for sign in (1, -1):
        xs = [sign * np.ones(16, "float32")]
        np.testing.assert_array_equal(ArenaRun(np, check=True)(p, xs)[0], Run(np)(p, xs)[0])


LOOP = """
v1 = tanh(x) : f
v2 = full(shape=(), value=0, dtype=int64) : int64[]
v3 = full(shape=(), value=5, dtype=int64) : int64[]
v4 = while_loop(v2, v1, x, v3, test=(i: int64[], a: f, b: f, n: int64[]) {
  v1 = less_than(i, n) : bool[]
  return v1
}, body=(i: int64[], a: f, b: f, n: int64[]) {
  v1 = add(i, 1) : int64[]
  v2 = add(a, b) : f
  return v1, b, v2
}, carried=3, keep=False) : (int64[], f, f)
v5 = item(v4, k=1) : f
v6 = item(v4, k=2) : f
return v5, v6
"""


def test_a_loop_carries_its_values_in_the_memory_of_its_results():
    p = program(LOOP)
    found = agrees(p)
    body = found.regions[p.records[3]]["body"]
    assert [body.location(r).kind for r in body.program.records] == ["state", "arena"]
    assert [c.target.k for c in body.copies] == [1, 2]
    assert [p.kind for p in found.locations[p.records[3]]] == ["arena", "output", "output"]


def test_an_open_size_is_refused():
    with pytest.raises(ValueError, match="open size"):
        plan(parse("program p(x: float32[n]) {\n v1 = tanh(x) : float32[n]\n return v1\n}"))


def test_workspace_lives_while_its_record_runs():
    p = program("v1 = tanh(x) : f\n v2 = exp(v1) : f\n v3 = add(v2, v1) : f\n return v3")
    found = agrees(p, workspace=lambda r: 100 if r.op.name == "exp" else 0)
    assert found.work[p.records[1]].nbytes == 100
    assert found.live == 128 + 64  # the workspace and v1; v2 is in the place of the output


def test_a_plan_prints_its_figures_and_its_largest_pieces():
    p = program("v1 = tanh(x) : f\n v2 = matmul(v1, x) : float32[]\n return v2")
    assert str(plan(p, workspace=lambda r: 100 if r.op.name == "matmul" else 0)) == PRINTED


PRINTED = """\
plan of p: 2 records
  sum of all values      256 B
  largest live set       192 B
  arena                  192 B  1.000 of the live set
  made in states 0, in outputs 1, views 0, copies 0
       100 B        1 to 2  workspace of v2 = matmul
        64 B        0 to 2  float32[16]: v1 = tanh"""

# ---- any program -----------------------------------------------------------------------------


@st.composite
def programs(draw):
    """Any program of some elementwise operators, views and splits, its states in any circle."""
    found = Program("any")
    values = [Record(INPUT, (), {"name": ""}, *SPEC) for _ in range(draw(st.integers(1, 2)))]
    found.inputs = list(values)
    for k in range(draw(st.integers(0, 4))):
        values.append(Record(INPUT, (), {"name": ""}, *SPEC))
        found.states.append(State(f"s{k}", values[-1]))
    pick = lambda: values[draw(st.integers(0, len(values) - 1))]
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["add", "multiply", "tanh", "reshape", "split"]))
        if kind == "split":
            both = Record(movement.concat, [pick(), pick()], {"axis": 0}, (8, 6), SPEC.dtype)
            attrs = {"sizes": (4, 4), "axis": 0}
            whole = Record(movement.split, [both], attrs, (SPEC, SPEC), None)
            items = [Record(ITEM, [whole], {"k": k}, *SPEC) for k in range(2)]
            found.records += [both, whole, *items]
            values += items
            continue
        inputs = [pick()] if kind in ("tanh", "reshape") else [pick(), pick()]
        attrs = {"shape": (4, 6)} if kind == "reshape" else {}
        values.append(Record(OPS[kind], inputs, attrs, *SPEC))
        found.records.append(values[-1])
    for state in found.states:
        state.update = pick() if draw(st.booleans()) else None
    found.outputs = [pick() for _ in range(draw(st.integers(0, 3)))]
    return found


@pytest.mark.sweep
@settings(max_examples=300, derandomize=True, deadline=None)
@given(programs(), st.booleans())
def test_any_program(program, workspaces):
    found = agrees(program, workspace=lambda r: 64 * workspaces)
    assert found.live <= found.size <= found.total


def test_a_wrong_plan_is_found():
    """Two values that live at one time in one place: the reader of the first one tells."""
    p = program("v1 = tanh(x) : f\n v2 = exp(x) : f\n v3 = matmul(v1, v2) : float32[]\n return v3")

    def wrong(program):
        found = plan(program)
        found.locations[program.records[1]] = found.locations[program.records[0]]
        return found

    with pytest.raises(OverwrittenError, match="tanh"):
        ArenaRun(np, check=True, planner=wrong)(p, arrays(p))


def test_what_is_read_for_all_of_a_row_is_not_written_over_by_one_of_it():
    """The result of a row is written first; what is spread over the row is computed after that."""
    text = "v1 = max(x, axis=(0,), keepdim=True) : float32[1]\n v2 = add(v1, s) : float32[1]\n"
    spread = "v3 = tile(v2, repeats=(16,)) : f\n v4 = exp(v3) : f\n"
    for more, results, expected in ((spread, "v2, v4", []), ("", "v2", [(0, "s")])):
        p = program(f"state s: float32[1]\n{text}{more}return {results}")
        found = [(k, x) for k, x in Nest(p.records, p.outputs).in_place() if x.shape == (1,)]
        assert [(k, x.attrs["name"]) for k, x in found] == expected
