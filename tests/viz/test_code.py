"""The real code, shown with its place."""

import inspect
from pathlib import Path

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.core.grad import pull_back
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Record
from minipaddle.viz.code import ROOT

BODY = OPS["tanh"].body
HOME = Path(inspect.getsourcefile(BODY)).relative_to(ROOT).as_posix()
LINE = inspect.getsourcelines(BODY)[1]


def test_an_operator_shows_its_formula_and_its_rules():
    parts = repr(viz.code("tanh")).split("# ")
    assert parts[1].startswith(f"{HOME}:{LINE}\n")
    assert "return m.tanh(x)" in parts[1]
    assert "tanh.vjp(lambda g, out: g * (1 - out * out))" in parts[2]
    assert repr(viz.code(paddle.tanh)) == repr(viz.code(OPS["tanh"])) == repr(viz.code("tanh"))


def test_functions_and_classes_show_their_lines():
    text = repr(viz.code(pull_back, Shown))
    assert text.startswith("# minipaddle/engine/core/grad.py:")
    assert 'class Shown:\n    """Is shown."""' in text


def test_a_class_with_a_field_called_op():
    assert repr(viz.code(Record)).startswith("# minipaddle/engine/core/record.py:")


class Shown:
    """Is shown."""


def test_a_slot_shows_what_is_plugged_in():
    shown = repr(viz.code("ops.tanh.vjp"))
    assert "tanh.vjp(lambda g, out: g * (1 - out * out))" in shown
    with paddle.plugged("ops.tanh.body", Shown):
        assert "class Shown" in repr(viz.code("ops.tanh.body"))


def test_a_notebook_gets_inline_colours():
    bundle = viz.code("tanh")._repr_mimebundle_()
    assert bundle["text/plain"] == repr(viz.code("tanh"))
    assert f"{HOME}, line {LINE}" in bundle["text/html"]
    assert "style=" in bundle["text/html"]
    assert "<style" not in bundle["text/html"]


def test_code_from_outside_the_repository_goes_by_its_file_name():
    assert repr(viz.code(inspect.cleandoc)).startswith("# inspect.py:")
