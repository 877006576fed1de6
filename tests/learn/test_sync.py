"""Cell and file: the edited one counts, and nothing that was written by hand is lost."""

import os

import pytest

from minipaddle.learn import progress, sync
from minipaddle.learn.exercise import load
from minipaddle.learn.sync import CONFLICT, JUDGE_FILE, WRITE, clean, step

STUB, MINE, OTHER = "stub\n", "mine\n", "other\n"
RIGHT = "def double(x):\n    return 2 * x\n"


@pytest.mark.parametrize(
    ("cell", "file", "common", "action"),
    [
        (STUB, None, None, WRITE),  # a fresh workspace
        (MINE, None, None, WRITE),
        (MINE, "", None, WRITE),
        (STUB, STUB, None, WRITE),
        (MINE, STUB, None, WRITE),  # the first solution in a cell
        (MINE, STUB, STUB, WRITE),
        (OTHER, MINE, MINE, WRITE),  # edited in the cell again
        (MINE, MINE, OTHER, WRITE),  # the same text twice
        (STUB, MINE, None, JUDGE_FILE),  # solved in an editor, the chapter is as it came
        (STUB, MINE, STUB, JUDGE_FILE),
        (STUB, MINE, MINE, JUDGE_FILE),  # the chapter was put back after solving
        (MINE, OTHER, MINE, JUDGE_FILE),  # edited in an editor since
        (MINE, STUB, MINE, JUDGE_FILE),  # reset since
        (OTHER, STUB, MINE, WRITE),  # reset, then edited in the cell
        (MINE, OTHER, None, CONFLICT),
        (MINE, OTHER, STUB, CONFLICT),  # both edited
    ],
)
def test_what_is_done_with_a_cell(cell, file, common, action):
    assert step(cell, file, STUB, progress.digest(common) if common else "").action == action


def test_blank_lines_around_and_spaces_at_ends_are_no_edit():
    assert clean("\n\na  \nb\n\n\n") == "a\nb\n"
    assert step("\nmine  ", "mine\n\n", STUB, "").action == WRITE


def test_a_written_cell_is_what_both_have_in_common(course):
    exercise = load("01_first/double")
    assert sync.bring(exercise, "def double(x):\n    return 1").action == WRITE
    assert exercise.path.read_text() == "def double(x):\n    return 1\n"
    exercise.path.write_text("edited\n")
    assert sync.bring(exercise, "def double(x):\n    return 1").action == JUDGE_FILE
    assert sync.bring(exercise, "def double(x):\n    return 2").action == CONFLICT
    assert exercise.path.read_text() == "edited\n"


def test_the_difference_names_both_sides(course, solved):
    solved(text="a\nb\n")
    assert sync.difference(load("01_first/double"), "a\nc\n").splitlines() == [
        "--- exercises/01_first/double.py",
        "+++ this cell",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "+c",
    ]


def test_a_file_that_says_this_already_keeps_its_date(tmp_path):
    path = tmp_path / "deep" / "file.py"
    sync.write(path, "a\n")
    before = path.stat().st_mtime_ns
    sync.write(path, "a\n")
    assert path.stat().st_mtime_ns == before
    assert [p.name for p in path.parent.iterdir()] == ["file.py"]


def test_a_reset_keeps_every_copy(course, solved):
    exercise = load("01_first/double")
    kept = []
    for text in ("first\n", "second\n"):
        solved(text=text)
        kept.append(sync.reset(exercise))
        assert exercise.path.read_text() == exercise.stub
    assert [path.read_text() for path in kept] == ["first\n", "second\n"]
    assert all(path.is_relative_to(course / ".backups") for path in kept)
    assert sync.reset(exercise) is None  # nothing is lost


def test_stubs_are_written_where_there_is_no_file(course, solved):
    solved(text="def double(x):\n    return 1\n")
    assert sync.write_stubs() == ["02_second/slope"]
    assert sync.write_stubs() == []
    assert (course / "02_second/slope.py").read_text() == load("02_second/slope").stub
    assert "return 1" in (course / "01_first/double.py").read_text()


def test_the_stub_of_an_older_solution_gives_way_and_a_copy_stays(course, solved):
    sync.write_stubs()
    file, solution = (course / f"{at}01_first/double.py" for at in ("", "solutions/"))
    solution.write_text(solution.read_text().replace("3 becomes 6", "4 becomes 8"))
    os.utime(file, (1, 1))
    assert sync.write_stubs() == ["01_first/double"]
    assert "4 becomes 8" in file.read_text()
    (copy,) = (course / ".backups/01_first").iterdir()
    assert "3 becomes 6" in copy.read_text()


@pytest.mark.parametrize("text", [RIGHT, "def double(x:", "import numpy\nRATE = _f(3)\n_f = 2\n"])
def test_a_file_that_was_begun_stays_whatever_its_solution_becomes(course, solved, text):
    sync.write_stubs()
    file = solved(text=text)
    os.utime(file, (1, 1))
    assert sync.write_stubs() == []
    assert file.read_text() == text


def test_a_folder_that_cannot_be_written_has_no_stubs(course, monkeypatch):
    (course / "01_first").write_text("in the way")
    assert sync.write_stubs() == []
