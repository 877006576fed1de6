"""Where the time of a first step goes: the stages are those of the run that was measured."""

import re

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.executors.compiler import compiler
from minipaddle.executors.native import objects
from minipaddle.executors.native.timing import add_timers

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def step(x):
    for f in (paddle.tanh, paddle.sin, paddle.cos, paddle.exp, paddle.abs, paddle.log1p):
        x = f(x @ x)
    return x


def compiled(function):
    static = paddle.jit.to_static(function, backend="native")
    static(paddle.eye(20))
    return static


def test_stages_add_up(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    static = compiled(step)
    found = viz.first_step(static)
    stages = {s.name: s.seconds for s in found.stages if s.inside is None}
    assert [*stages] == [
        "trace", "passes", "kernels", "plan", "C file", "compilation", "load", "first run"
    ]  # fmt: skip
    assert sum(stages.values()) == pytest.approx(found.total)
    assert min(stages.values()) > 0
    inside = found.passes(static.executables[-1])
    assert sum(s.inside for s in inside) == pytest.approx(stages["passes"])
    again = {s.name: s.seconds for s in viz.first_step(static.executables[-1]).stages}
    assert "trace" not in again
    static(paddle.eye(20))  # a later run has no clock
    assert viz.first_step(static).total == found.total
    assert add_timers(static.executables[-1]).seconds.keys() == {"compilation", "load"}
    assert viz.first_step(static).total == found.total


def test_files_and_kernels_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    assert "1 file" in viz.first_step(compiled(step)).text
    monkeypatch.setattr(objects, "LEAST", 0)
    monkeypatch.setattr(objects, "threads", lambda: 1)
    text = viz.first_step(compiled(lambda x: step(x) + 1)).text
    assert "2 files" in text
    assert "calls of kernels" in text
    assert re.search(r"  k\d_\w+, k\d_", text)
    again = lambda x: step(x) + 2
    text = viz.first_step(compiled(again)).text
    assert "from the cache" in text
    assert "more" in text
    assert "the library was in the cache" in viz.first_step(compiled(again)).text


def test_what_was_not_compiled_has_none():
    static = paddle.jit.to_static(step, backend="interpreter")
    static(paddle.eye(3))
    with pytest.raises(TypeError, match="was not compiled"):
        viz.first_step(static)
