"""Every executor gives what the interpreter gives: what the fuzzers found, and a short run."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from minipaddle.engine.codegen import rows
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.ir.parser import parse
from tests.codegen.cuda_on_cpu import can_emulate_gpu
from tests.executors import fuzz, fuzz_training, programs_fuzzed
from tests.executors.batch import Unbuilt, build
from tests.executors.paths import INTERPRETED, Case, ExecutionPath, compared, differences, differs
from tests.executors.shrink import shrink
from tests.passes.programs import draw_arrays

pytestmark = [
    pytest.mark.sweep(one_in=3),
    pytest.mark.skipif(compiler() is None, reason="no C compiler: install gcc or clang"),
]


def failed_cases() -> list[Case]:
    """The programs on which the fuzzers found a difference."""
    cases = []
    for name, text in vars(programs_fuzzed).items():
        if isinstance(text, str) and name.isupper():
            program = parse(text)
            given = programs_fuzzed.GIVEN.get(program.name)
            calls = [given] if given else [draw_arrays(program), draw_arrays(program, 1)]
            cases.append(Case(program.name, program, calls))
    return cases


def listing(differences) -> str:
    return "\n".join(f"{d.case.name}, {d.path.name}: {d.kind}: {d.message}" for d in differences)


def test_found_by_the_fuzzers():
    """On every interpreted path, in C with each strategy, and on the emulated GPU."""
    wrong = list(differences(failed_cases(), cuda=float(can_emulate_gpu()), natives=6))
    assert not wrong, listing(wrong)


FLAGS = """
program flags(q: float32[6, 17, 2], k: float32[6, 2, 17], m: bool[17, 17]) {
  v1 = matmul(q, k) : float32[6, 17, 17]
  v2 = full(shape=(), value=-9.0, dtype=float32) : float32[]
  v3 = where(m, v1, v2) : float32[6, 17, 17]
  v4 = max(v3, axis=(2,), keepdim=True) : float32[6, 17, 1]
  v5 = subtract(v3, v4) : float32[6, 17, 17]
  return v5
}
"""


@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_the_flags_of_a_row_that_is_read_in_blocks(monkeypatch, lanes):
    """gcc 12 reads an array that it placed itself as if it lay better, and the process dies."""
    monkeypatch.setattr(rows, "ALONG", 8)
    program = parse(FLAGS)
    x, mask = np.random.default_rng(0).standard_normal((6, 17, 17)), np.tri(17, dtype="bool")
    q, k = x[..., :2].astype("float32"), x[:, :2].astype("float32")
    schedules = SimpleNamespace(get=lambda signature: {"lanes": lanes})
    (found,) = Executable(program, tuned=schedules)(program, [q, k, mask])
    scores = np.where(mask, q @ k, -9.0)
    np.testing.assert_allclose(found, scores - scores.max(-1, keepdims=True), 1e-5, 1e-6)


def test_random_graphs_do_the_same():
    report = fuzz.Report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = list(fuzz.batch(range(12), report))
    assert not wrong, listing(wrong)
    assert report.counts["graphs"] >= 10
    assert report.tally.programs >= 12
    assert report.tally.paths["native"] >= 12
    assert len(report.tally.paths) > 20


def test_random_graphs_with_open_sizes_do_the_same():
    report = fuzz.Report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = list(fuzz.batch(range(100, 108), report, passes=0.0, opened=1.0, natives=0))
    assert not wrong, listing(wrong)
    assert report.tally.paths["native, open sizes"] >= 5


# ---- the fuzzer itself ------------------------------------------------------------------------


WRONG = """
program wrong(x: float64[4], y: float64[4], p: bool[]) {
  state s: float64[4]
  v1 = multiply(x, y) : float64[4]
  v2 = tanh(v1) : float64[4]
  v3 = cond(p, v2, x, true=(a0: float64[4], a1: float64[4]) {
    v1 = exp(a1) : float64[4]
    v2 = floor(v1) : float64[4]
    return v2
  }, false=(a0: float64[4], a1: float64[4]) {
    return a0
  }) : (float64[4])
  v4 = item(v3, k=0) : float64[4]
  v5 = add(v4, s) : float64[4]
  v6 = sum(v5, axis=(0,), keepdim=False) : float64[]
  update s = v2
  return v6, v1
}
"""


def without_floor(program):
    """An executor that takes floor for nothing."""

    def run(_, arrays):
        from minipaddle.engine.eager.device import NUMPY
        from minipaddle.engine.ir.interpreter import Run

        text = str(program).replace("= floor(", "= ceil(")
        return Run(NUMPY)(parse(text), arrays)

    return run


def test_a_difference_is_found_and_made_small():
    program, path = parse(WRONG), ExecutionPath("no floor", without_floor)
    case = Case("wrong", program, [[np.full(4, 0.3), np.ones(4), np.array(True), np.zeros(4)]])
    (d,) = compared(case, [(path, without_floor(program))])
    assert (d.kind, d.call) == ("value", 0)
    small = shrink(case, 0, path)
    assert differs(small, path) == "value"
    assert len(small.program.records) <= 2
    assert "floor" in str(small.program)


def test_rounding_is_no_difference():
    """Cancellation makes rounding visible: it is allowed what a worse interpreter gets wrong."""
    program = parse("""program p(x: float32[3]) {
      v1 = add(x, 1000.0) : float32[3]
      v2 = subtract(v1, 1000.0) : float32[3]
      v3 = floor(v2) : float32[3]
      return v2, v3
    }""")
    case = Case("p", program, [[np.float32([0.1, 1.0, 2.5])]])

    def off(by):
        def run(_, arrays):
            v2 = np.float32([0.1, 1.0, 2.5]) + np.float32(by)
            return [v2, np.floor(v2)]

        return list(compared(case, [(ExecutionPath("off", lambda p: run), run)]))

    assert not off(2e-5)
    assert off(0.3)


def test_states_that_a_failed_run_has_changed_show():
    program = parse(
        "program p(i: int64[1]) { state s: float64[2] "
        "v1 = take(s, i, axis=0) : float64[1] v2 = neg(s) : float64[2] update s = v2 return v1 }"
    )
    case = Case("p", program, [[np.array([2]), np.ones(2)]])

    def spoils(_, arrays):
        arrays[1][0] = 5.0
        raise IndexError("2 is no number from 0 to 1")

    (d,) = compared(case, [(ExecutionPath("spoils", lambda p: spoils), spoils)])
    assert d.kind == "raises another"
    assert not list(differences([case]))


def test_what_is_written_behind_a_result_shows():
    program = parse("program p(x: float64[4]) { v1 = neg(x) : float64[4] return v1 }")
    build([made := Unbuilt(program)])
    assert made(program, [np.ones(4)])[0].tolist() == [-1] * 4
    made.outputs = [((3,), np.dtype("float64"))]
    with pytest.raises(AssertionError, match="behind result 0"):
        made(program, [np.ones(4)])


def test_every_pass_has_its_ways():
    names = [path.name for path in INTERPRETED]
    assert len(set(names)) == len(names)


def test_what_is_open_is_open_beside_a_dead_error():
    program = parse(
        """program beside(x: float32[1], y: float32[0, 3]) {
        v1 = full(shape=(1,), value=0, dtype=int64) : int64[1]
        v2 = take(y, v1, axis=0) : float32[1, 3]
        v3 = tanh(x) : float32[1]
        v4 = equal(v3, 1.0) : bool[1]
        return v4
        }"""
    )
    for x, open_ in ((9.0, True), (8.0, False)):
        known = np.tanh(np.float32([x])) == 1
        case = Case("beside", program, [[np.float32([x]), np.zeros((0, 3), "float32")]])
        run = lambda program, arrays, y=~known: [y]
        assert bool([*compared(case, [(ExecutionPath("other", lambda _: None), run)])]) != open_


def test_random_trainings_do_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [(seed, fuzz_training.Training(seed).differences()) for seed in range(4)]
    assert [each for each in wrong if each[1]] == []
