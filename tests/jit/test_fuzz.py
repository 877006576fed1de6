"""A short run of the fuzzer, and everything it ever found."""

import ast
import inspect

import pytest

import minipaddle as paddle
from tests.jit import functions_fuzzed, fuzz, fuzz_world
from tests.jit.fuzz_compare import Difference, same
from tests.jit.fuzz_programs import module_text
from tests.jit.fuzz_shrink import function_of, shrink

pytestmark = pytest.mark.sweep(one_in=3)

FOUND = [f for _, f in inspect.getmembers(functions_fuzzed, inspect.isfunction)
         if f.__module__ == functions_fuzzed.__name__]  # fmt: skip


@pytest.fixture(autouse=True)
def dtype():
    before = paddle.get_default_dtype()
    fuzz_world.vary(0)
    yield
    paddle.set_default_dtype(before)
    fuzz_world.reset()


@pytest.mark.parametrize("function", FOUND, ids=lambda f: f.__name__)
def test_found_by_the_fuzzer(function):
    static = paddle.jit.to_static(function)
    for seed in range(6):
        same(function, static, seed)


@pytest.mark.parametrize("seed", range(5))
def test_random_programs_do_the_same(seed):
    report = fuzz.run_file(seed)
    assert not report.failures, "\n".join(map(fuzz.format_failure, report.failures))
    least = 0.4 if fuzz_world.Kind.open else 0.9  # Python takes apart what has open sizes
    assert report.outcomes["same"] >= least * fuzz.FUNCTIONS
    assert report.statements > 5 * fuzz.FUNCTIONS


@pytest.fixture
def open_sizes():
    fuzz_world.vary(2)
    assert fuzz_world.Kind.open


OPEN = [
    "a_size_known_in_one_branch",
    "an_error_in_a_first_round_that_is_certain",
    "memory_with_a_past_from_an_inner_loop",
    "a_size_known_in_a_round",
    "mistakes_not_reached",
    "written_after_the_loop_that_bound_it",
]


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.usefixtures("open_sizes")
def test_found_with_open_sizes(name):
    function = getattr(functions_fuzzed, name)
    static = paddle.jit.to_static(function, input_spec=fuzz_world.specs())
    for seed in range(6):
        same(function, static, seed)


def test_programs_are_those_of_their_seed():
    assert module_text(5, 3) == module_text(5, 3) != module_text(6, 3)
    ast.parse(module_text(5, 3))


WRONG = """
def f(x, m, s, n, p, q, flag):
    y = x + 1
    if flag or not flag:
        y = y * 2
        z = chosen(y + m[0])
    return z
"""


def chosen(v):
    """Does one thing eagerly and another as a program, as a wrong converter would."""
    return v if type(v.array).__name__ == "SymbolicArray" else v * 3


def test_a_difference_is_found_and_shrunk(tmp_path):
    def fails(text: str) -> bool:
        function = function_of(text, tmp_path, "f")
        function.__globals__["chosen"] = chosen
        try:
            same(function, paddle.jit.to_static(function), 1)
        except Difference as error:
            return error.kind == "value"
        return False

    assert fails(WRONG)
    small = shrink(WRONG, fails)
    assert fails(small)
    assert "chosen" in small
    assert len(small.splitlines()) <= 4, small


def test_the_command_sums_up(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["fuzz", "--seed", "2", "--files", "1", "--out", str(tmp_path)])
    assert fuzz.main() == 0
    assert "functions" in capsys.readouterr().out
    assert "statements" in (tmp_path / "summary.txt").read_text()
