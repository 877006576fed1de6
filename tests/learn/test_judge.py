"""The judge in this process: what it says of texts that are right, wrong, broken or unfinished."""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from minipaddle.engine.core import slots
from minipaddle.learn.borrowing import refuse_borrowing
from minipaddle.learn.exercise import load
from minipaddle.learn.judge import alike, judge, main
from minipaddle.learn.verdict import Verdict

STUB = """def double(x):
    raise NotImplementedError
"""


@pytest.fixture
def verdict(course):
    """A function: text -> verdict on it as a solution of `double`."""
    return lambda text, **how: judge(load("01_first/double"), text, "/home/me/double.py", **how)


def test_a_solution_passes(course, verdict):
    assert verdict(load("01_first/double").solution).state == "passed"


@pytest.mark.parametrize(
    "text", [STUB, "", "# I will do it tomorrow\n", "def other():\n    return 1"]
)
def test_what_is_not_begun_is_not_started(verdict, text):
    found = verdict(text)
    assert found.state == "not started"
    assert found.why == "double in exercises/01_first/double.py"
    assert found.line == ""


def test_what_still_raises_is_not_finished(verdict):
    found = verdict("def double(x):\n    y = x\n    raise NotImplementedError\n")
    assert found.state == "not started"
    assert found.line == "double.py:3: raise NotImplementedError"


def test_a_refusal_of_ones_own_is_an_error(verdict):
    """An error that derives from NotImplementedError says more than a stub."""
    kind = "class CannotFollow(NotImplementedError):\n    pass\n\n\n"
    found = verdict(f"{kind}def double(x):\n    raise CannotFollow('a mean')\n")
    assert found.state == "error"
    assert "a mean" in found.why


def test_the_smallest_failing_input_is_given(verdict):
    found = verdict("def double(x):\n    return 2 * x if x < 7 else 0\n")
    assert (found.state, found.given, found.expected, found.got) == ("wrong", {"x": "7"}, "14", "0")
    assert found.check == "any number"
    assert found.explains == "Every whole number."
    assert found.seed == 2026


def test_another_seed_is_noted(verdict):
    assert verdict("def double(x):\n    return 2 * x if x < 7 else 0\n", seed=5).seed == 5


@pytest.mark.parametrize(
    ("body", "looks_like"),
    [("x * 1", "doing nothing"), ("-x - x", "turning the sign"), ("77", "")],
)
def test_a_known_mistake_is_recognised(verdict, body, looks_like):
    assert verdict(f"def double(x):\n    return {body}\n").looks_like == looks_like


def test_a_mistake_that_makes_the_engine_raise_is_recognised_too(course):
    check = course / "checks/01_first/double.py"
    raising = '"forgetting x": "_times(x, 2) → _times(\'x\' - x, 2)",\n    "halving"'
    check.write_text(check.read_text().replace('"halving"', raising))
    found = judge(load("01_first/double"), 'def double(x):\n    y = "x"\n    return y - x\n')
    assert (found.state, found.looks_like) == ("error", "forgetting x")
    found = judge(load("01_first/double"), "def double(x):\n    return x - 'x'\n")
    assert (found.state, found.looks_like) == ("error", "")


def test_where_an_error_stands_does_not_tell_it_from_another():
    lines = "matmul(a, b): no\n  at: line {} of a notebook cell\n  try: this"
    assert alike(ValueError(lines.format(1)), ValueError(lines.format(2)))
    assert not alike(ValueError(lines.format(1)), TypeError(lines.format(1)))
    assert not alike(ValueError("one"), ValueError("another"))


def test_nothing_returned_is_shown(verdict):
    found = verdict("def double(x):\n    x + x\n")
    assert (found.state, found.got) == ("wrong", "None")


@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        ("def double(x):\n    return x.y\n", "AttributeError: 'int'", "double.py:2: return x.y"),
        ("def double(x:\n", "SyntaxError: '(' was never closed", "double.py:1: def double(x:"),
        ("def double(x):\n  return 1\n   y\n", "IndentationError", "double.py:3: y"),
        ("import nowhere_at_all\ndef double(x): return 1", "ModuleNotFoundError", "double.py:1"),
        ("def double(x): import sys; sys.exit(0)", "your code ended the program", "double.py:1"),
        ("def double(x): raise KeyboardInterrupt", "KeyboardInterrupt", "double.py:1"),
        ("def double(x): return double(x)", "RecursionError", "double.py:1"),
        ("def double(x): assert x > 9, 'small'\n", "AssertionError: small", "double.py:1"),
        ("def double(): return 1\n", "TypeError", ""),
    ],
)
def test_an_error_names_the_readers_line(verdict, text, why, line):
    found = verdict(text)
    assert found.state == "error"
    assert why in found.why
    assert found.line.startswith(line)


def test_a_null_character_is_an_error(verdict):
    assert verdict("def double(x):\n    return 2\0\n").state == "error"


def test_an_error_in_the_engine_says_where(course):
    text = "def slope(g, out):\n    return out.reshape([-1, 1])\n"
    found = judge(load("02_second/slope"), text, "slope.py")
    assert found.state in ("error", "wrong")


def test_what_changes_from_call_to_call_is_wrong(verdict):
    count = "import itertools\nn = itertools.count()\n"
    found = verdict(f"{count}def double(x):\n    return 2 * x + (next(n) == 20)\n")
    assert (found.state, found.why) == ("wrong", "the same inputs gave different results")


def test_a_dataclass_may_be_written(verdict):
    text = """from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Two:
    n: int = 2
def double(x):
    return Two().n * x
"""
    assert verdict(text).passed


def test_the_bad_node_is_red(course):
    exercise = load("02_second/slope")
    wrong = exercise.wrong_solutions()["forgetting the square"]
    found = judge(exercise, wrong, "slope.py")
    assert found.looks_like == "forgetting the square"
    assert "tanh(v1) : float64[1]  ✗ its rule" in found.sketch
    assert "#e00000" in found.picture
    assert "[yours]" in found.picture


EARLIER = """
@exercise.example
def at_once(yours):
    \'\'\'At 1.\'\'\'
    expect_that(yours.slope(paddle.ones([1]), paddle.ones([1])).item() == 0, "it is flat at 1")


@exercise.example
def in_the_engine"""


def test_a_later_check_lends_its_picture(course):
    check = course / "checks/02_second/slope.py"
    text = check.read_text().replace("expect_gradients\n", "expect_gradients, expect_that\n")
    check.write_text(text.replace("\n@exercise.example\ndef in_the_engine", EARLIER))
    found = judge(load("02_second/slope"), "def slope(g, out):\n    return g\n", "slope.py")
    assert (found.check, found.why) == ("at once", "it is flat at 1")
    assert "✗ its rule" in found.sketch


def test_a_plain_assertion_of_a_check_is_wrong(course):
    check = course / "checks/01_first/double.py"
    check.write_text(
        check.read_text().replace(
            'expect(yours.double(2), 4, given={"x": 2})', "assert yours.double(2) == 4, 'no'"
        )
    )
    found = judge(load("01_first/double"), "def double(x):\n    return 5\n")
    assert (found.state, found.why) == ("wrong", "no")


BORROWED = {
    "of the slot": "from minipaddle.engine.core.slots import find\nref = find(SLOT).get()",
    "of the function": "from minipaddle.engine.core.grad import accumulate as a\nref = a.reference",
    "out of a table": "import minipaddle.engine.core.grad as g\nx = [g.accumulate.reference]\n"
    "ref = lambda *a, x=x: x[0](*a)",
}


@pytest.mark.parametrize("how", BORROWED)
@pytest.mark.parametrize(
    "body", ["return ref(c, r, g)", "try: ref(c, r, g)\n    except Exception: pass"]
)
def test_the_engines_own_function_is_refused_by_name(how, body):
    text = f"SLOT = 'autograd.accumulate'\n{BORROWED[how]}\ndef accumulate(c, r, g):\n    {body}\n"
    found = judge(load("02_autograd/accumulate"), text, "mine.py", thorough=False)
    assert found.state == "wrong"
    assert "calls the engine's own accumulate (engine/core/grad.py)" in found.why
    assert found.line.startswith("mine.py:")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "02_autograd/accumulate",
            "from minipaddle.engine.core.grad import accumulate as ref\n"
            "def accumulate(c, r, g): return ref(c, r, g)",
        ),
        (
            "02_autograd/accumulate",
            "import sys\n"
            "def accumulate(*a): sys.modules['minipaddle.engine.core.grad'].accumulate(*a)",
        ),
        (
            "01_arrays/softmax",
            "import minipaddle as paddle\ndef softmax(m, x, *, axis=-1):\n"
            "    return paddle.nn.functional.softmax(paddle.to_tensor(x), axis).numpy()",
        ),
    ],
)
def test_what_is_reached_by_name_is_the_readers_own(name, text):
    found = judge(load(name), text, "mine.py", thorough=False)
    assert found.state == "error"
    assert "is yours: does your code call it by any name?" in found.why


def test_what_arrives_at_a_tuple_can_be_added_by_any_function():
    text = (
        "import minipaddle as paddle\ndef accumulate(c, r, g):\n"
        "    c[r] = paddle.add(c[r], g) if r in c else g\n"
    )
    assert judge(load("02_autograd/accumulate"), text, thorough=False).passed


def test_the_engine_is_let_go_of_afterwards():
    """What was watched is the engine's again, and may be called."""
    before = slots.find("autograd.accumulate").get()
    text = "def accumulate(c, r, g):\n    c[r] = g\n"
    assert judge(load("02_autograd/accumulate"), text, __file__, thorough=False).state == "wrong"
    assert slots.find("autograd.accumulate").get() is before
    before(found := {}, "x", 1)
    assert found == {"x": 1}


def test_two_threads_may_judge(course):
    """`./run learn check --all` does, where nothing puts it into processes."""
    exercise = load("02_second/slope")

    def judged():
        with refuse_borrowing(exercise, "theirs.py") as refused:
            return refused

    with ThreadPoolExecutor(1) as pool, refuse_borrowing(exercise, "ours.py"):
        other = pool.submit(judged)
        wait([other], timeout=0.2)
    assert other.result() == []


def test_a_picture_that_breaks_hides_nothing(course):
    check = course / "checks/01_first/double.py"
    check.write_text(check.read_text().replace('given={"x": 2})', "picture=lambda: 1 / 0)"))
    found = judge(load("01_first/double"), "def double(x):\n    return 5\n")
    assert found.state == "wrong"
    assert "no picture: ZeroDivisionError" in found.sketch


def test_a_verdict_leaves_its_process_as_json(verdict):
    found = verdict("def double(x):\n    return 5\n")
    assert Verdict.from_json(found.to_json()) == found


def test_the_judges_own_command(course, solved, capsys):
    assert main(["01_first/double", str(solved())]) == 0
    assert "passed" in capsys.readouterr().out
    solved(text=STUB)
    assert main(["01_first/double"]) == 1


def test_a_wrong_solution_that_does_not_fit_the_text_is_the_authors_mistake(course):
    check = course / "checks/01_first/double.py"
    check.write_text(check.read_text().replace('"_times(x, 2) → x * x"', '"nowhere → x"'))
    with pytest.raises(ValueError, match="'nowhere' occurs 0 times in the solution"):
        load("01_first/double").wrong_solutions()
