"""A replay is the same twice, and shows a change."""

from minipaddle.engine.passes import manager
from tests.replay import texts
from tests.replay.__main__ import differences, main, report
from tests.replay.programs import models


def test_two_runs_are_alike(tmp_path):
    for name in ("a", "b"):
        main([str(tmp_path / name), "--group", "onnx"])
    assert len([*tmp_path.rglob("*.txt")]) == 10
    assert [*report([*differences(tmp_path / "a", tmp_path / "b")], True)] == ["no difference"]


def test_a_change_is_shown(monkeypatch):
    (case,) = models()["models_vision.Mlp, eval"]()
    before = texts.texts_of(case)
    monkeypatch.setattr(
        texts, "optimized", lambda *args: manager.optimized(args[0], {"fusion": False})
    )
    now = texts.texts_of(case)
    assert next(t for t in before if before[t] != now[t]) == "program"
