"""The engine on the reader's code: what is solved runs, what is not is the reference's."""

import pytest

import minipaddle as paddle
from minipaddle import learn, viz
from minipaddle.engine.core import slots
from minipaddle.viz import collapse
from tests.viz.reading import Drawing

SLOPE = "def slope(g, out):\n    return {} * g * (1 - out * out)\n"


pytestmark = pytest.mark.usefixtures("at_once")


def slope_at(x):
    t = paddle.to_tensor(x, dtype="float64", stop_gradient=False)
    paddle.tanh(t).backward()
    return t.grad.item()


def test_what_is_solved_runs_in_the_engine(course, solved):
    solved("02_second/slope")
    with learn.mine() as report:
        assert set(slots.yours()) == {"ops.tanh.vjp"}
        assert slope_at(0.0) == 1
        tape = viz.tape(paddle.tanh(paddle.to_tensor(1.0, stop_gradient=False)))
    assert slots.yours() == {}
    assert "[yours]" in tape.source
    assert report.yours == ["02_second/slope"]
    assert report.states == {"01_first/double": "not started", "02_second/slope": "passed"}


def test_what_is_not_solved_is_the_references_and_grey(course):
    with learn.mine() as report:
        assert slots.yours() == {}
        assert collapse.reference() == {"ops.tanh.vjp"}
        tape = Drawing(viz.tape(paddle.tanh(paddle.to_tensor(1.0, stop_gradient=False))))
    assert collapse.reference() == frozenset()
    assert "reference" in tape.caption
    assert report.yours == []
    plain = Drawing(viz.tape(paddle.tanh(paddle.to_tensor(1.0, stop_gradient=False))))
    assert "reference" not in plain.caption


def test_what_fails_its_check_is_red_and_does_not_run(course, solved):
    solved("02_second/slope", SLOPE.format(2))
    with learn.mine() as report:
        assert slope_at(0.0) == 1
    assert report.rest == ["01_first/double", "02_second/slope"]
    node = Drawing(report).node("✗ slope")
    assert node.attribute("fill") == "#e00000"
    assert "02_second/slope.py: wrong" in node.tip


def test_the_picture_has_every_exercise_by_chapter(course, solved):
    solved()
    drawn = Drawing(learn.engine())
    assert [n.text for n in drawn.nodes] == ["✓ double", "○ slope\nops.tanh.vjp"]
    assert drawn.node("✓").attribute("fill") == "#009e73"
    assert [frame.text.split("\n")[0] for frame in drawn.frames] == ["01 first", "02 second"]
    assert "1 of 2 exercises run on your code" in drawn.caption


def test_the_report_as_text(course, solved):
    solved("02_second/slope", "def slope(:\n")
    text = learn.engine()._repr_mimebundle_()["text/plain"]
    assert text.splitlines() == [
        "○ 01_first/double                  reference  (no part of the engine)",
        "✗ 02_second/slope                  error      ops.tanh.vjp",
        "0 of 2 exercises run on your code",
    ]
    assert str(learn.engine()) == text


def test_a_mistake_in_the_block_undoes_everything(course, solved):
    solved("02_second/slope")
    with pytest.raises(ZeroDivisionError), learn.mine():
        raise ZeroDivisionError
    assert slots.yours() == {}
    assert collapse.reference() == frozenset()


def test_what_was_judged_once_is_not_judged_again(course, solved, monkeypatch):
    solved("02_second/slope")
    learn.engine()
    monkeypatch.setattr(learn.report, "judge_all", lambda names: [] if not names else 1 / 0)
    assert learn.engine().yours == ["02_second/slope"]


def test_only_what_there_is_has_a_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        learn.nothing  # noqa: B018
