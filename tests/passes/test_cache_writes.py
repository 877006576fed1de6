"""Writes to a part of a cache go to the whole; indices are checked before the first write."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable, find_in_place
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.lifetimes import roots
from minipaddle.engine.passes.memory import plan
from minipaddle.executors.interpreted.arena_interpreter import ArenaRun
from minipaddle.ir.parser import parse
from minipaddle.passes.cache_writes import early_checks, whole_puts
from minipaddle.viz.target import executable_of
from tests.passes.programs import program_of, same_results

KEYS = {
    "an integer": lambda x, at, y: (0, slice(None), at),
    "from the end": lambda x, at, y: (-1, slice(None), at),
    "two integers": lambda x, at, y: (1, 2, at),
    "a slice": lambda x, at, y: (slice(0, 1), slice(1, 3), at),
    "steps": lambda x, at, y: (1, slice(0, 3, 2), at),
    "backwards": lambda x, at, y: (0, slice(None, None, -1), at),
    "the first axis": lambda x, at, y: (1, at),
    "many places": lambda x, at, y: (0, slice(None), y),
    "places twice": lambda x, at, y: (1, 1, y),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_part_is_written_in_the_whole(name):
    def write(x, at, y):
        x = x * 1.0
        at, y = at.astype("int64") % 3, (y * 10).astype("int64") % 3
        x[KEYS[name](x, at, y)] = 7.0
        return x

    program = program_of(write, (2, 3, 5, 4), (), (2,))
    after = dead_code(whole_puts(program))
    operators = [r.op.name for r in after.records]
    assert "slice_assign" not in operators
    assert operators.count("put") == 1
    same_results(program, after, rtol=0, atol=0)


@pytest.mark.parametrize("key", [(0, ..., slice(1, 3)), (0, ..., slice(None, None, -1))])
def test_a_part_of_what_follows_the_places_is_left_alone(key):
    def write(x, at):
        x, at = x * 1.0, at.astype("int64") % 3
        x[(key[0], at, *key[1:])] = 7.0
        return x

    program = program_of(write, (2, 3, 5, 4), ())
    after = whole_puts(program)
    assert "slice_assign" in [r.op.name for r in after.records]
    same_results(program, after, rtol=0, atol=0)


TWO = """program p(a: int64[], b: int64[], x: float32[4], table: float32[9, 4]) {
  state s0: float32[8, 4]
  v1 = put(s0, a, x, axis=0) : float32[8, 4]
  v2 = INDEX : int64[]
  v3 = put(v1, v2, 2.0, axis=0) : float32[8, 4]
  v4 = take(table, b, axis=0) : float32[4]
  update s0 = v3
  return v4
}"""


def operators(program) -> list[str]:
    return [r.op.name for r in program.records]


def test_checks_come_before_the_first_write():
    program = parse(TWO.replace("INDEX", "add(b, 1)"))
    after = early_checks(program)
    assert operators(after) == ["add", "flat_index", "flat_index", "put", "put", "take"]
    rng = np.random.default_rng(0)
    given = np.array(2), np.array(5), rng.standard_normal(4), rng.standard_normal((9, 4))
    given = [a.astype(r.dtype) for a, r in zip(given, program.inputs, strict=True)]
    results = [Run(NUMPY)(p, [*given, np.zeros((8, 4), "float32")]) for p in (program, after)]
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_open_sizes_are_left_alone():
    text = """program p(a: int64[], b: int64[m]) {
      state s0: float32[8]
      v1 = put(s0, a, 1.0, axis=0) : float32[8]
      v2 = put(v1, b, 2.0, axis=0) : float32[8]
      update s0 = v2
      return
    }"""
    program = parse(text)
    assert early_checks(program) is program
    assert operators(early_checks(parse(text.replace("[m]", "[3]"))))[0] == "flat_index"


def test_an_index_that_comes_of_the_write_stays_behind_it():
    program = parse(TWO.replace("INDEX", "argmax(v1, axis=None, keepdim=False)"))
    assert operators(early_checks(program)) == ["flat_index", "put", "argmax", "put", "take"]


def test_what_is_checked_already_is_checked_once():
    program = parse(TWO.replace("INDEX", "add(b, 1)").replace("put(v1, v2", "put(v1, a"))
    assert operators(early_checks(program)).count("flat_index") == 1


class Pair(paddle.nn.Layer):
    """One cache that is written twice, and what is printed in between if `shows`."""

    def __init__(self, shows: bool):
        super().__init__()
        self.shows = shows
        self.register_buffer("rows", paddle.zeros([2, 8, 4]))

    def forward(self, at, next, x):
        self.rows[0, at] = x
        if self.shows:
            print(at)
        self.rows[1, next] = x * 2
        return self.rows.sum()


@pytest.mark.skipif(compiler() is None, reason="no C compiler: install gcc or clang")
@pytest.mark.parametrize("shows", [False, True])
def test_a_run_that_fails_leaves_what_was_printed_and_no_write(shows, capsys):
    pair = Pair(shows)
    step = paddle.jit.to_static(pair, backend="native")
    at, next, wrong = map(paddle.to_tensor, (1, 5, 8))
    assert step(at, next, paddle.ones([4])).item() == 12
    assert executable_of(step).states_at_risk == [0] * shows
    capsys.readouterr()
    before = pair.rows.numpy().copy()
    with pytest.raises(IndexError, match="index 8 is out of range for an axis of size 8"):
        step(at, wrong, paddle.ones([4]) * 3)
    np.testing.assert_array_equal(pair.rows.numpy(), before)
    assert bool(capsys.readouterr().out) == shows


BEGINNING = """program p(a: int64[2], x: float32[2, 4]) {{
  state s0: float32[8, 4]
  v1 = put(s0, a, x, axis=0) : float32[8, 4]
  v2 = slice(v1, index={index}) : float32[{shape}]
  v3 = multiply(v2, 2.0) : float32[{shape}]
  {later}
  update s0 = {update}
  return {results}
}}"""


def attribute(x) -> str:
    """A tuple as text of a program."""
    return f"({''.join(f'{attribute(k)},' for k in x)})" if type(x) is tuple else str(x)


def beginning(index, shape, later="", update="v1", results="v3"):
    index = attribute(index)
    return parse(BEGINNING.format_map(locals()))


@pytest.mark.parametrize(
    ("index", "shape", "is_view"),
    [
        (((0, 3, 1),), "3, 4", True),
        (((None, -5, None), (None, None, None)), "3, 4", True),
        (((1, 4, 1),), "3, 4", False),
        (((0, 6, 2),), "3, 4", False),
        (((2, None, -1),), "3, 4", False),
        (((0, 3, 1), (None, None, -1)), "3, 4", False),
        (((0, 3, 1), (0, 2, 1)), "3, 2", False),
        ((0,), "4", False),
    ],
)
def test_the_beginning_of_what_was_written_is_a_view(index, shape, is_view):
    program = beginning(index, shape)
    assert (roots(program)[program.records[1]][0] is program.records[0]) is is_view
    check_in_memory(program)


@pytest.mark.parametrize(
    "given",
    [
        {"results": "v2"},  # only a part of a larger value, which cannot lie in the output
        {"results": "v2, v1, v3"},
        {"update": "v4", "later": "v4 = put(v1, a, 5.0, axis=0) : float32[8, 4]"},
        {"update": "v4", "later": "v4 = put(v1, a, 5.0, axis=0) : float32[8, 4]", "results": "v2"},
        {"update": "v4", "later": "v4 = multiply(v1, -1.0) : float32[8, 4]", "results": "v2, v3"},
        {"update": "v4", "later": "v4 = put(s0, a, 5.0, axis=0) : float32[8, 4]"},
    ],
)
def test_a_beginning_keeps_its_values(given):
    check_in_memory(beginning(((0, 3, 1),), "3, 4", **given))


def check_in_memory(program):
    """In the memory of a plan and in C the results are the interpreter's."""
    rng = np.random.default_rng(0)
    given = [
        np.array([6, 1]),
        *(rng.standard_normal(s).astype("float32") for s in ((2, 4), (8, 4))),
    ]
    wanted = Run(NUMPY)(program, [a.copy() for a in given])
    runs = [ArenaRun(NUMPY, check=True, planner=lambda p: plan(p, inplace=find_in_place))]
    runs += [Executable(program)] if compiler() else []
    for run in runs:
        for a, b in zip(run(program, [a.copy() for a in given]), wanted, strict=True):
            np.testing.assert_array_equal(a, b)
