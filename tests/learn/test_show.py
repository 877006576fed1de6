"""Verdicts as people see them: the same in text, in a terminal and in a notebook."""

import io
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from minipaddle.learn.verdict import MARKS, STATES, Verdict, format_html, show
from minipaddle.viz.parts import Node, draw
from tests.viz.test_style import DARK, WHITE, contrast

NAME = "01_first/double"
PICTURE = draw([Node("a", "tanh", "elementwise")])

VERDICTS = {
    "not started": Verdict(NAME, "not started", "double in exercises/01_first/double.py"),
    "error": Verdict(
        NAME, "error", "TypeError: no <b>\nand more", "two", "2 becomes 4.", "double.py:7: x & y",
        printed="hello\n",
    ),
    "wrong": Verdict(
        NAME, "wrong", "the values differ", "any number", "Every whole number.",
        given={"x": "[[1.],\n [2.]]", "n": "3"}, expected="4", got="3",
        looks_like="doing nothing", picture=PICTURE.source, sketch="v1 = tanh(x)", seed=2026,
    ),
    "passed": Verdict(NAME, "passed", seconds=1.5),
}  # fmt: skip

PAGES = {
    "not started": """○ 01_first/double: not started
  Twice a number
  to write  double in exercises/01_first/double.py
  hint      ./run learn hint double; in a notebook %exercise double --hint""",
    "error": """! 01_first/double: error
  Twice a number
  check     two: 2 becomes 4.
  error     TypeError: no <b>
            and more
  at        double.py:7: x & y
  hint      ./run learn hint double; in a notebook %exercise double --hint
  printed   hello""",
    "wrong": """✗ 01_first/double: wrong
  Twice a number
  This looks like doing nothing.
  check     any number: Every whole number.
  because   the values differ
  given     x = [[1.],
             [2.]]
            n = 3
  expected  4
  got       3
  drawn     at random (seed 2026), then made small
  hint      ./run learn hint double; in a notebook %exercise double --hint
  v1 = tanh(x)""",
    "passed": """✓ 01_first/double: passed
  Twice a number
  All checks hold. The engine runs on your code within learn.mine().""",
}


def printed(verdict, **options):
    page = io.StringIO()
    show(Console(file=page, width=80, **options), verdict)
    return page.getvalue()


@pytest.mark.parametrize("state", STATES)
def test_as_text(course, state):
    assert str(VERDICTS[state]) == PAGES[state]


@pytest.mark.parametrize("state", STATES)
def test_a_pipe_gets_the_text(course, state):
    assert printed(VERDICTS[state]) == PAGES[state] + "\n"


@pytest.mark.parametrize("state", STATES)
def test_a_terminal_says_the_same_with_colours(course, state):
    page = printed(VERDICTS[state], force_terminal=True, color_system="truecolor")
    assert "\x1b[" in page
    words = re.sub(r"\x1b\[[\d;]*m", "", page).split()
    assert sorted(words) == sorted(PAGES[state].split())


@pytest.mark.parametrize("state", STATES)
def test_a_terminal_without_colours(course, state):
    page = printed(VERDICTS[state], force_terminal=True, no_color=True)
    assert "38;" not in page  # bold may stay


@pytest.mark.parametrize("state", STATES)
def test_a_notebook_says_the_same(course, state):
    bundle = VERDICTS[state]._repr_mimebundle_()
    assert bundle["text/plain"].startswith(PAGES[state])
    page = ElementTree.fromstring(
        f"<div>{bundle['text/html']}</div>".replace("<details open ", "<details ")
    )
    text = "".join(page.itertext()).replace("\n", " ")
    for word in PAGES[state].split():
        assert word in text or word == "v1" or "tanh(x)" in word or word == "="
    assert MARKS[state].colour in bundle["text/html"]
    assert "<style" not in bundle["text/html"]


def test_what_the_reader_wrote_is_no_markup(course):
    page = format_html(VERDICTS["error"])
    assert "no &lt;b&gt;" in page
    assert "x &amp; y" in page


def test_the_picture_is_on_the_page(course):
    assert "<svg" in format_html(VERDICTS["wrong"])
    assert "<svg" not in format_html(VERDICTS["error"])


def test_without_an_engine_there_is_no_picture(course, monkeypatch):
    from minipaddle.viz import graph_engine

    def raise_missing():
        raise graph_engine.NoEngineError(graph_engine.HELP)

    monkeypatch.setattr(graph_engine, "find_program", raise_missing)
    assert "<svg" not in format_html(VERDICTS["wrong"])


def test_who_passes_sees_the_solution(course):
    bundle = VERDICTS["passed"]._repr_mimebundle_()
    assert "<details open" in bundle["text/html"]
    assert "return _times(x, 2)" in bundle["text/plain"]


@pytest.mark.parametrize("page", [WHITE, DARK])
def test_colours_can_be_read_on_both_pages(page):
    for mark in MARKS.values():
        assert contrast(mark.colour, page) >= 3
