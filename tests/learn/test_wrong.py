"""Wrong solutions are made by naming what changes in the right one."""

import re

import pytest

from minipaddle.learn import Exercise
from minipaddle.learn.wrong import apply_changes

TEXT = """def f(a, b):
    if a > b:
        return a * 2
    for k in b:
        a = a + k
    return a


def g(a):
    a = a + k
    return [a, 3]


def h(a):
    return a + 'I'
"""


@pytest.mark.parametrize(
    ("change", "was", "now"),
    [
        ("a * 2 → a", "return a * 2", "return a"),
        ("a*2 → a", "return a * 2", "return a"),
        ("if a > b: → if a >= b:", "if a > b:", "if a >= b:"),
        ("if a > b: → pass", "    if a > b:\n        return a * 2\n", ""),
        ("return a * 2 → pass", "return a * 2", "pass"),
        ("for k in b: → b = b[1:]; for k in b:", "    for", "    b = b[1:]\n    for"),
        ("return [a, 3] → b = 3; return [b]", "return [a, 3]", "b = 3\n    return [b]"),
        ('"I" → "W"', "'I'", "'W'"),
        ("g(): a = a + k → a += k", "def g(a):\n    a = a + k", "def g(a):\n    a += k"),
    ],
)
def test_a_change_is_made(change, was, now):
    assert apply_changes(TEXT, change) == TEXT.replace(was, now).replace("\n\n\n", "\n\n").strip()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("a = a + k → pass", "'a = a + k' occurs 2 times in the solution, not once"),
        ("a % b → a", f"'a % b' occurs 0 times in the solution, not once:\n\n{TEXT}"),
        ("a - b", "has no ' → '"),
        ("def k(a):\n    return a", "the solution has 0 functions k, not one"),
    ],
)
def test_a_change_that_does_not_fit_is_the_authors_mistake(change, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        apply_changes(TEXT, change)


def test_a_mistake_is_a_function_in_place_of_the_right_one():
    exercise = Exercise("", "easy", 5, {}, ("?", "", ""), {})

    @exercise.mistake("the last one alone")
    def f(a, b):
        return a + b[-1]

    (text,) = exercise.wrong.values()
    assert f(1, [2, 3]) == 4
    names = {}
    exec(apply_changes(TEXT, text), names)
    assert names["f"](1, [2, 3]) == 4
    assert "@" not in text
