"""A mistake in an example is one failure, which names it; and no example needs real Paddle."""

import pytest

from tests.jit import test_rows
from tests.jit.examples import collect, given

GOOD = """
from tests.jit.examples import T, example


@example((T(1.0),), (T(-1.0),))
def absolute(x):
    return x if x > 0 else -x


@example((T(1.0)))
def without_a_comma(x):
    return x


@example((T(1.0), 2))
def of_one(x):
    return x


@example()
def without_calls(x):
    return x


@example((1,))
@example((2,))
def registered_twice(x):
    return x
"""


def test_every_example_can_run():
    assert collect()[1] == []


def test_one_mistake_is_one_failure(tmp_path, monkeypatch):
    """The other examples run, those of other files too."""
    folder = tmp_path / "sketched_examples"
    folder.mkdir()
    (folder / "functions_good.py").write_text(GOOD)
    (folder / "functions_wrong.py").write_text("import minipaddle.no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    found, mistakes = collect("sketched_examples")
    assert [e.name for e in found] == ["functions_good.absolute", "functions_good.registered_twice"]
    assert [e.function(*given(e.calls[0])) for e in found][1] == 2
    expected = [
        "functions_wrong.py does not import: ModuleNotFoundError",
        "without_a_comma: T(data=1.0, dtype='float32') is not a tuple; one argument is written",
        "of_one(T(data=1.0, dtype='float32'), 2): too many positional arguments",
        "without_calls: @example() has no arguments",
        "registered_twice is registered twice",
    ]
    assert len(mistakes) == len(expected)
    for mistake, part in zip(mistakes, expected):
        assert part in mistake


def test_an_example_needs_no_paddle(monkeypatch):
    """Until its verdict is recorded the table says so; nothing but the reminder is skipped."""
    verdicts = test_rows.verdicts()
    less = {name: v for name, v in verdicts.items() if name != "branches.if_else"}
    monkeypatch.setattr(test_rows, "verdicts", lambda: less)
    row = "if/elif/else on a tensor"
    assert {r: theirs for r, theirs, _ in test_rows.table()}[row] == "not asked, same"
    with pytest.raises(pytest.skip.Exception, match=r"not asked.*branches\.if_else"):
        test_rows.test_paddle_was_asked_about_every_case()
    test_rows.test_every_verdict_belongs_to_a_case()


def test_a_row_names_every_proof_that_is_missing(monkeypatch):
    monkeypatch.setattr(test_rows, "rows", lambda: {"a": ["branches.no"], "b": ["test_calls.no"]})
    with pytest.raises(AssertionError, match=r"(?s)branches\.no.*test_calls\.no"):
        test_rows.test_every_row_is_proved()
