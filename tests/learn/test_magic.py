"""The magics in a notebook: one text in cell and file; the verdict and the task below the cell."""

import sys

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from minipaddle.learn import progress
from minipaddle.learn.exercise import load
from minipaddle.learn.magic import Notice
from minipaddle.learn.task import ExerciseTask

NAME = "01_first/double"
TASK = '"""Twice a number.\n\nWrite `double(x)`: 3 becomes 6.\n"""\n\n\n'
RIGHT = "def double(x):\n    return x + x"
WRONG = "def double(x):\n    return x"


@pytest.fixture(autouse=True)
def main():
    """Every test leaves the module of the program: a process that is started asks for it."""
    before = sys.modules["__main__"]
    yield
    assert sys.modules["__main__"] is before


@pytest.fixture
def shell(course, at_once, monkeypatch):
    """IPython with the extension loaded, as in a fresh kernel."""
    monkeypatch.setattr(sys, "displayhook", sys.displayhook)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # a shell is one itself
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "minipaddle.learn")
    yield shell
    shell.reset()
    InteractiveShell.clear_instance()


@pytest.fixture
def cell(shell):
    """A function: runs `%%exercise line` over a text; the plain texts that are displayed, the task
    apart, which follows every verdict but the last.
    """

    def run(text, line=NAME):
        with capture_output() as seen:
            shell.run_cell_magic("exercise", line, text)
        pages = [output.data["text/plain"] for output in seen.outputs]
        if pages[-1] == str(ExerciseTask(load(NAME))):
            pages.pop()
            assert not pages[-1].startswith("✓")
        return pages

    return run


@pytest.fixture
def fetch(shell, monkeypatch):
    """A function: runs `%exercise line`; the text of the cell that it leaves, and the outputs."""

    def run(line="double"):
        asked = []
        monkeypatch.setattr(
            shell, "set_next_input", lambda text, replace: asked.append((text, replace))
        )
        with capture_output() as seen:
            shell.run_line_magic("exercise", line)
        ((text, replaces),) = asked
        assert replaces  # or each run of all cells would add a cell
        return text, [output.data for output in seen.outputs]

    return run


def test_a_cell_writes_the_file_and_shows_the_verdict(cell, course):
    (page,) = cell(WRONG)
    assert page.startswith("✗ 01_first/double: wrong")
    assert (course / f"{NAME}.py").read_text() == f"{TASK}{WRONG}\n"
    (page,) = cell(RIGHT)
    assert page.startswith("✓ 01_first/double: passed")
    assert progress.state(NAME) == "passed"


def test_a_cell_with_its_own_docstring_is_the_whole_file(cell, course):
    cell(f'"""Mine."""\n{WRONG}')
    assert (course / f"{NAME}.py").read_text() == f'"""Mine."""\n{WRONG}\n'


@pytest.mark.parametrize("whole", [True, False])
def test_the_cell_of_a_fresh_reader(cell, course, whole):
    stub = load(NAME).stub
    (page,) = cell(stub if whole else stub.removeprefix(TASK))
    assert page == (
        "○ 01_first/double: not started\n"
        "  Twice a number\n"
        "  to write  double in exercises/01_first/double.py\n"
        "  hint      ./run learn hint double; in a notebook %exercise double --hint"
    )
    assert (course / f"{NAME}.py").read_text() == load(NAME).stub


def test_names_may_be_abbreviated(cell):
    assert cell(RIGHT, "dou")[0].startswith("✓")


def test_an_unchanged_stub_leaves_a_solved_file_alone(cell, solved):
    file = solved(text=RIGHT)
    notice, page = cell(load(NAME).stub)
    assert "The file has been worked on" in notice
    assert "%exercise 01_first/double  makes of a new cell an editor of the file;" in notice
    assert page.startswith("✓")
    assert file.read_text() == RIGHT


def test_a_file_edited_since_is_judged(cell, course):
    cell(WRONG)
    (course / f"{NAME}.py").write_text(RIGHT)
    notice, page = cell(WRONG)
    assert "The file was edited since this cell last ran" in notice
    assert page.startswith("✓")


def test_edited_on_both_sides_nothing_is_written(cell, course):
    cell(WRONG)
    (course / f"{NAME}.py").write_text(RIGHT)
    (notice,) = cell(WRONG + " * 3")
    assert "Cell and file were both edited: nothing was written." in notice
    assert "-    return x + x\n+    return x * 3" in notice
    assert (course / f"{NAME}.py").read_text() == RIGHT


def test_who_insists_overwrites_and_a_copy_stays(cell, course, solved):
    solved(text=WRONG)
    notice, page = cell(RIGHT, f"{NAME} --overwrite")
    assert page.startswith("✓")
    (copy,) = (course / ".backups/01_first").iterdir()
    assert copy.read_text() == WRONG
    assert copy.name in notice
    assert len(cell(RIGHT, f"{NAME} --overwrite")) == 2  # each time a copy


def test_the_cell_becomes_the_editor_of_the_file(fetch, cell, solved):
    solved(text=f"{TASK}{RIGHT}")
    assert fetch()[0] == f"%%exercise {NAME}\n{RIGHT}"
    edited = RIGHT.replace("x + x", "2 * x")
    assert cell(edited)[0].startswith("✓")  # the file was fetched, so the cell may be written


def test_what_is_not_begun_shows_its_task_and_gives_the_code_of_the_stub(fetch, cell, course):
    text, (shown,) = fetch()
    assert text == (
        f'%%exercise {NAME}\ndef double(x):\n    """Twice x."""\n    raise NotImplementedError'
    )
    assert shown["text/markdown"] == (
        "### Twice a number\n\n"
        "easy, 5 minutes · read before: `01_first` · your file: `exercises/01_first/double.py`\n\n"
        "Write `double(x)`: 3 becomes 6.\n"
    )
    assert (course / f"{NAME}.py").read_text() == load(NAME).stub
    assert cell(text.split("\n", 1)[1].replace("raise NotImplementedError", "return x + x"))[
        0
    ].startswith("✓")


def test_an_editor_of_a_file_of_ones_own_has_all_of_it(fetch, solved):
    solved(text=f'"""Mine."""\n{RIGHT}')
    assert fetch()[0] == f'%%exercise {NAME}\n"""Mine."""\n{RIGHT}'


def test_options_do_what_the_command_does(shell, capsys):
    shell.run_line_magic("exercise", "double --hint")
    assert "What is 3 + 3?" in capsys.readouterr().out
    shell.run_line_magic("exercise", "double --solution --yes")
    assert "return _times(x, 2)" in capsys.readouterr().out
    shell.run_line_magic("exercise", "double --check")
    assert "not started" in capsys.readouterr().out


def test_the_whole_command_is_there(shell, capsys):
    shell.run_line_magic("learn", "")
    assert "0 of 2 passed" in capsys.readouterr().out
    shell.run_line_magic("learn", "hint double")
    assert "Hint 1" in capsys.readouterr().out
    shell.run_line_magic("learn", "nonsense")
    assert "there is no command 'nonsense'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("magic", "line", "words"),
    [
        ("exercise", "dubble", "did you mean 01_first/double"),
        ("exercise", "", "name one exercise"),
        ("exercise", "double slope", "name one exercise"),
        ("learn", "watch", "a cell cannot watch"),
    ],
)
def test_a_mistaken_line_is_answered_without_a_traceback(shell, magic, line, words):
    with pytest.raises(UsageError, match=words):
        shell.run_line_magic(magic, line)


def test_a_notice_is_text_on_the_page():
    bundle = Notice("a < b", "- x\n+ y")._repr_mimebundle_()
    assert "a &lt; b" in bundle["text/html"]
    assert bundle["text/plain"] == "? a < b\n- x\n+ y"
