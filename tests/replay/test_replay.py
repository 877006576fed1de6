"""A replay is the same twice, and shows a change."""

from minipaddle.engine.passes import manager
from tests.replay import texts
from tests.replay.__main__ import MARK, arenas, differences, main, report
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


def test_an_arena_that_grows_is_named(tmp_path):
    for folder, sizes in {"before": (100, 1000, 0), "now": (102, 1021, 64)}.items():
        (tmp_path / folder).mkdir()
        for name, size in zip(("near", "larger", "new"), sizes):
            path = tmp_path / folder / f"{name}.txt"
            path.write_text(f"{MARK}arena\n{size} bytes\n", encoding="utf-8")
    (tmp_path / "now/other.txt").write_text(f"{MARK}C\nrefused\n", encoding="utf-8")
    assert [*arenas(tmp_path / "before", tmp_path / "now")] == [
        "arenas of 3 programs: 1,100 bytes before, 1,187 now",
        "new: its arena grew from 0 to 64 bytes",
        "larger: its arena grew from 1,000 to 1,021 bytes",
    ]
