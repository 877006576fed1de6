"""`./run learn`: what it prints, what it remembers, and honest exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minipaddle import __main__ as package
from minipaddle.learn import command, progress
from minipaddle.learn.exercise import load, names

ROOT = Path(__file__).resolve().parents[2]
NAME = "01_first/double"


def shell(*words, stdin="", **env):
    """The command as a process: (exit status, output)."""
    done = subprocess.run(
        [sys.executable, "-m", "minipaddle", "learn", *words],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **env},
        timeout=100,
    )
    return done.returncode, done.stdout


# ---- list ----------------------------------------------------------------------------------------


def test_the_list_of_a_fresh_workspace(learn):
    assert learn() == (
        0,
        """01_first
  ○ double  Twice a number          easy     5 min  not started
02_second
  ○ slope   The derivative of tanh  medium 120 min  not started
░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 0 of 2 passed
Next: exercises/01_first/double.py, then ./run learn check 01_first/double
""",
    )
    assert learn("list") == learn()


def test_the_list_knows_what_happened(learn, solved):
    solved()
    assert learn("check", "double")[0] == 0
    learn("hint", "slope")
    learn("solution", "slope", "--yes")
    page = learn()[1]
    assert "✓ double  Twice a number          easy     5 min  passed" in page
    assert "not started, 1 of 3 hints, solution seen" in page
    assert "███████████████░░░░░░░░░░░░░░░ 1 of 2 passed" in page
    solved(text="def double(x):\n    return 1\n")
    assert (
        "? double  Twice a number          easy     5 min  edited since the last check"
        in learn()[1]
    )


def test_an_empty_course(learn, course, monkeypatch):
    for check in course.glob("checks/*/*.py"):
        check.unlink()
    assert learn() == (0, f"{'░' * 30} 0 of 0 passed\n")
    assert learn("check") == (2, f"error: everything in {course} is solved; name an exercise\n")


# ---- check ---------------------------------------------------------------------------------------


def test_exit_codes_are_honest(learn, solved):
    assert learn("check", "double")[0] == 1
    solved(text="def double(x):\n    return x\n")
    assert learn("check", "double")[0] == 1
    assert learn("check", "--all")[0] == 1
    solved()
    assert learn("check", "double")[0] == 0
    assert learn("check", "--all")[0] == 1  # slope is not passed
    solved("02_second/slope")
    code, page = learn("check", "--all")
    assert code == 0
    assert "2 of 2 passed" in page
    assert "✓ 01_first/double" in page


def test_a_check_that_passes_opens_the_solution(learn, solved):
    solved(text="def double(x):\n    return x + x\n")
    page = learn("check", "double")[1]
    assert "✓ 01_first/double: passed" in page
    assert "return _times(x, 2)" in page


def test_without_a_name_it_is_the_next(learn, solved):
    solved()
    assert "01_first/double: passed" in learn("check")[1]
    assert "02_second/slope: not started" in learn("check")[1]


def test_the_seed_and_the_limit_can_be_given(learn, solved, monkeypatch):
    solved(text="def double(x):\n    return 2 * x if x < 7 else 0\n")
    assert "seed 5" in learn("check", "double", "--seed", "5")[1]
    asked = {}
    monkeypatch.setattr(command, "judge_file", lambda name, **how: asked.update(how) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learn("check", "double", "--limit", "3", "--seed", "7")
    assert asked == {"seconds": 3, "seed": 7}


def test_an_unknown_name_is_a_misuse(learn):
    assert learn("check", "dubble") == (
        2,
        "error: there is no exercise 'dubble'; did you mean 01_first/double?\n",
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("chek", "double"), "there is no command 'chek'; did you mean check?"),
        (("double",), "no command 'double'; that is an exercise: ./run learn check double"),
        (("dance",), "no command 'dance'; there are list, show, check, watch, hint"),
        (("hint", "02"), "'02' is a chapter; name one of its exercises: slope"),
        (("check", "05"), "there is no exercise '05'"),
        (
            ("check", "double", "dubble"),
            "there is no exercise 'dubble'; did you mean 01_first/double",
        ),
    ],
)
def test_a_mistaken_call_is_answered(learn, words, says):
    code, page = learn(*words)
    assert code == 2
    assert says in page


def test_chapters_and_several_exercises_are_checked(learn, solved):
    solved()
    code, page = learn("check", "01", "slope")
    assert code == 1
    assert "✓ 01_first/double" in page
    assert "○ 02_second/slope" in page
    assert page.endswith("1 of 2 passed\n")
    assert "01_first/double: passed" in learn("check", "01")[1]


def test_a_task_is_shown_with_what_it_takes(learn):
    assert learn("show", "slope") == (
        0,
        """02_second/slope: not started
The derivative of tanh
effort       medium, 120 minutes
read before  02_second, 01_first/double
replaces     ops.tanh.vjp
your file    exercises/02_second/slope.py

The derivative of tanh.
""",
    )


def test_progress_is_recomputed(learn, solved, course):
    solved()
    learn("check", "double")
    progress.path().unlink()
    assert "edited since the last check" in learn()[1]
    learn("check", "--all")
    assert progress.state(NAME) == "passed"


# ---- help ----------------------------------------------------------------------------------------


def test_hints_come_one_at_a_time(learn):
    pages = [learn("hint", "double")[1] for _ in range(4)]
    assert pages[0] == "Hint 1 of 3 for 01_first/double\n  What is 3 + 3?\n"
    assert "Look at the name." in pages[1]
    assert "x + x" not in pages[1]
    assert "x + x" in pages[2]
    assert "That was the last one." in pages[2]
    assert pages[3] == pages[2]
    assert progress.of(NAME)["hints"] == 3


def test_the_solution_is_shown_to_who_insists(learn, monkeypatch):
    answers = iter(["n", "", "yes"])
    monkeypatch.setattr("builtins.input", lambda: next(answers))
    for _ in range(2):
        code, page = learn("solution", "double")
        assert (code, "_times" in page) == (1, False)
        assert not progress.of(NAME)["looked"]
    code, page = learn("solution", "double")
    assert (code, "_times" in page) == (0, True)
    assert progress.of(NAME)["looked"]
    assert learn("solution", "double")[0] == 0  # it does not ask again


def test_who_has_passed_is_not_asked_and_has_not_peeped(learn, solved, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda: pytest.fail("asked"))
    solved()
    learn("check", "double")
    assert learn("solution", "double")[0] == 0
    assert not progress.of(NAME)["looked"]


def test_where_nobody_can_answer_nothing_is_shown(learn, monkeypatch):
    def nobody():
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    code, page = learn("solution", "double")
    assert (code, "_times" in page) == (1, False)
    assert "add --yes" in page


def test_a_reset_keeps_a_copy(learn, solved, course, monkeypatch):
    file = solved(text="def double(x):\n    return 1\n")
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert learn("reset", "double")[0] == 1
    assert "return 1" in file.read_text()
    code, page = learn("reset", "double", "--yes")
    assert code == 0
    assert file.read_text() == load(NAME).stub
    (copy,) = (course / ".backups/01_first").iterdir()
    assert copy.read_text() == "def double(x):\n    return 1\n"
    assert page.endswith(f"exercises/.backups/01_first/{copy.name}\n")
    assert learn("reset", "double", "--yes")[1] == "exercises/01_first/double.py is as it was\n"


def test_a_reset_names_what_it_resets(learn):
    assert learn("reset")[0] == 2


@pytest.mark.parametrize("words", [(), ("show", "double"), ("check", "double"), ("hint", "slope")])
def test_every_command_writes_the_files_that_are_missing(learn, course, solved, words):
    file = solved("02_second/slope", "mine")
    learn(*words)
    assert (course / "01_first/double.py").read_text() == load(NAME).stub
    assert file.read_text() == "mine"


def test_ctrl_c_is_no_traceback(learn, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "judge_file", interrupted)
    assert learn("check", "double") == (130, "\nstopped\n")


# ---- as a process --------------------------------------------------------------------------------


def test_a_pipe_gets_plain_text(course, solved):
    solved(text="def double(x):\n    return x\n")
    code, page = shell("check", "double", FORCE_COLOR="")
    assert code == 1
    assert page == (
        """✗ 01_first/double: wrong
  Twice a number
  This looks like doing nothing.
  check     two: 2 becomes 4.
  because   the values differ
  given     x = 2
  expected  4
  got       2
  hint      ./run learn hint double; in a notebook %exercise double --hint
"""
    )


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_the_terminals(course, env, coloured):
    page = shell("list", FORCE_COLOR="1", TERM="xterm-256color", **env)[1]
    assert ("\x1b[38;" in page) == coloured
    assert "Twice a number" in page


def test_the_command_explains_itself(course):
    code, page = shell("--help")
    assert code == 0
    for name in ("list", "check", "watch", "hint", "reset", "solution"):
        assert name in page
    assert shell("chek")[0] == 2


def test_the_package_names_its_commands(capsys):
    assert package.main([]) == package.main(["lern"]) == 2
    assert "python -m minipaddle learn" in capsys.readouterr().err
    assert package.main(["--help"]) == 0
    assert "python -m minipaddle draw" in capsys.readouterr().out


def test_exercises_come_as_the_chapter_has_them(course):
    checks = course / "checks/01_first"
    (checks / "aaa.py").write_text((checks / "double.py").read_text())
    cells = ["%exercise 01_first/double", "%%exercise 01_first/aaa\\ntext"]
    book = course.parent / "book"
    book.mkdir()
    (book / "01_first.ipynb").write_text("".join(f'"{cell}"\n' for cell in cells))
    assert names() == ["01_first/double", "01_first/aaa", "02_second/slope"]
    (book / "01_first.ipynb").unlink()
    assert names() == ["01_first/aaa", "01_first/double", "02_second/slope"]


@pytest.mark.slow
def test_watch_judges_at_each_save_and_moves_on_when_told(course, solved):
    solved(text="def double(x):\n    return x\n")
    words = [sys.executable, "-u", "-m", "minipaddle", "learn", "watch"]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(words, cwd=ROOT, env=env, encoding="utf-8", **pipes) as watch:

        def until(text):
            lines = []
            for line in watch.stdout:
                lines.append(line)
                if text in line:
                    return "".join(lines)
            raise AssertionError("".join(lines))

        def say(word):
            watch.stdin.write(f"{word}\n")
            watch.stdin.flush()

        until("01_first/double: wrong")
        until("q: quit")
        solved(text="def double(x):\n    return x + x\n")
        until("01_first/double: passed")
        until("n: next")  # it waits
        say("h")
        until("Hint 1 of 3 for 01_first/double")
        say("n")
        until("02_second/slope: not started")
        until("q: quit")
        say("")
        until("02_second/slope: not started")
        say("q")
        assert watch.wait(30) == 1
