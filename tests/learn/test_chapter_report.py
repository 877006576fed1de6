"""The report of one chapter: its own exercises alone, though everything that is solved runs."""

import pytest

import minipaddle as paddle
from minipaddle import learn, viz
from minipaddle.engine.core import slots
from minipaddle.viz import collapse
from tests.viz.reading import Drawing


def tape():
    return viz.tape(paddle.tanh(paddle.to_tensor(1.0, stop_gradient=False)))


def test_other_chapters_run_too_and_are_not_reported(course, solved):
    solved("02_second/slope")
    with learn.mine("01_first") as report:
        assert set(slots.yours()) == {"ops.tanh.vjp"}
        assert "[yours]" in tape().source
    assert report.states == {"01_first/double": "not started"}
    assert report.text.endswith("0 of 1 exercise run on your code")


def test_grey_is_what_the_chapter_leaves_to_do(course):
    with learn.mine("01_first"):
        assert collapse.reference() == frozenset()
        assert "reference" not in Drawing(tape()).caption
    with learn.mine("02_second"):
        assert collapse.reference() == {"ops.tanh.vjp"}
        assert "reference" in Drawing(tape()).caption


def test_its_picture(course, solved):
    solved("02_second/slope")
    drawn = Drawing(learn.engine("02_second"))
    assert [n.text for n in drawn.nodes] == ["✓ slope\nops.tanh.vjp"]
    assert [frame.text.split("\n")[0] for frame in drawn.frames] == ["02 second"]


def test_a_chapter_that_is_not_there(course):
    with pytest.raises(LookupError, match=r"no chapter '03'(?s:.)*one of 01_first, 02_second"):
        learn.engine("03")
    with pytest.raises(LookupError, match="no chapter"), learn.mine("03"):
        pass
