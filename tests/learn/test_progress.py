"""Progress is a cache: it follows the files, survives nonsense, and losing it loses no work."""

from minipaddle.learn import progress
from minipaddle.learn.exercise import load
from minipaddle.learn.judge import judge

NAME = "01_first/double"


def judged(name):
    exercise = load(name)
    return judge(exercise, exercise.path.read_text())


def test_a_verdict_is_remembered_until_the_file_changes(course, solved):
    assert progress.state(NAME) == "not started"
    file = solved()
    assert progress.state(NAME) == "changed"
    progress.remember(judged(NAME))
    assert progress.state(NAME) == "passed"
    file.write_text(file.read_text() + "# more\n")
    assert progress.state(NAME) == "changed"


def test_a_changed_check_is_a_new_question(course, solved):
    solved()
    progress.remember(judged(NAME))
    check = course / f"checks/{NAME}.py"
    check.write_text(check.read_text() + "\n# stricter\n")
    assert progress.state(NAME) == "changed"


def test_notes_of_one_exercise_leave_the_others_alone(course):
    progress.note(NAME, hints=2)
    progress.note("02_second/slope", looked=True)
    assert progress.of(NAME) == progress.NEW | {"hints": 2}
    assert progress.of("02_second/slope")["looked"]


def test_nonsense_counts_as_nothing(course):
    for text in ("", "[", "[]", '{"a": 1}', "\udcff"):
        progress.path().write_text(text, encoding="utf-8", errors="surrogateescape")
        assert progress.read() == {}


def test_a_folder_that_can_not_be_written_keeps_no_progress(course, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_EXERCISES", str(course / "checks/01_first/double.py"))
    progress.note(NAME, hints=1)
    assert progress.read() == {}


def test_a_file_with_a_mistake_in_it_was_begun(course, solved):
    solved(text="def double(x:\n")
    assert progress.state(NAME) == "changed"
    solved(text="  \n")
    assert progress.state(NAME) == "not started"


def test_the_next_is_the_first_that_is_not_passed(course, solved):
    assert progress.find_next() == NAME
    assert progress.find_next(NAME) == "02_second/slope"
    assert progress.find_next("02_second/slope") == NAME
    solved()
    progress.remember(judged(NAME))
    assert progress.find_next() == "02_second/slope"
    assert progress.find_next("02_second/slope") == ""
    assert load(NAME).title == "Twice a number"
