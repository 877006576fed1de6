"""`static.Executor` and `jit.load` run what `to_static` would: C where it is asked for."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.executable_cache import ExecutableCache
from minipaddle.engine.executors.native import Executable
from tests.static.classical import PROGRAMS, outcome

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler: install gcc or clang")


@pytest.fixture
def made(monkeypatch):
    """The executables that programs were compiled to, on the backend native."""
    monkeypatch.setenv("MINIPADDLE_BACKEND", "native")
    found, run = [], ExecutableCache.run

    def watched(self, program, arrays, *more):
        done = run(self, program, arrays, *more)
        found.extend(e for e in self.compiled.values() if e not in found)
        return done

    monkeypatch.setattr(ExecutableCache, "run", watched)
    return found


@pytest.mark.parametrize("program", PROGRAMS[:2], ids=lambda p: p.__name__)
def test_the_executor_runs_c(program, made, monkeypatch):
    found = outcome(paddle, program)
    assert made
    assert all(type(e) is Executable for e in made)
    monkeypatch.setenv("MINIPADDLE_BACKEND", "interpreter")
    for a, b in zip(found, outcome(paddle, program), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_a_program_takes_for_granted_is_looked_at(made):
    paddle.enable_static()
    try:
        main, run = paddle.static.Program(), paddle.static.Executor().run
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [None, None])
            y = x * (2.0 if x.shape[1] > 4 else 3.0)
        assert run(main, {"x": np.ones((2, 5), "float32")}, [y])[0].tolist() == [[2.0] * 5] * 2
        with pytest.raises(ValueError, match="assumes that x_1 > 4 is True"):
            run(main, {"x": np.ones((2, 3), "float32")}, [y])
    finally:
        paddle.disable_static()
    assert len(made) == 1


def test_a_compiled_program_s_strategy_is_heard(monkeypatch):
    monkeypatch.delenv("MINIPADDLE_BACKEND", raising=False)
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [None, 3])
            y = (x * 2.0).sum(axis=0)
        strategy = paddle.static.BuildStrategy()
        strategy.build_cinn_pass = True
        compiled = paddle.static.CompiledProgram(main, build_strategy=strategy)
        executor = paddle.static.Executor()
        for program in (compiled, main, compiled):
            for n in (1, 4):
                feed = {"x": np.ones((n, 3), "float32")}
                (found,) = executor.run(program, feed=feed, fetch_list=[y])
                assert found.tolist() == [2.0 * n] * 3
        caches = [found[1] for found in main.compiled.values()]
        assert [len(each.compiled) for each in caches] == [2, 0]
    finally:
        paddle.disable_static()


def test_a_saved_model_runs_c(made, tmp_path):
    paddle.seed(1)
    net = paddle.nn.Sequential(
        paddle.nn.Linear(4, 8), paddle.nn.BatchNorm1D(8), paddle.nn.Dropout(0.5)
    )
    path = str(tmp_path / "net")
    spec = paddle.static.InputSpec([None, 4], name="x")
    net.eval()
    paddle.jit.save(net, path, input_spec=[spec])
    x = paddle.randn([5, 4])
    with paddle.no_grad():
        wanted, found = net(x), paddle.jit.load(path)
        made.clear()
        np.testing.assert_allclose(found(x).numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found(x[:2]).numpy(), wanted[:2].numpy(), rtol=1e-5, atol=1e-6)
    assert [type(e) for e in made] == [Executable] * 2
    y = found(x)  # with a tape: operator by operator
    y.sum().backward()
    assert len(made) == 2
    assert all(p.grad is not None for p in found.parameters() if not p.stop_gradient)
