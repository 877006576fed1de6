"""The backend "auto": the interpreter serves at once, and C as soon as it is compiled."""

import os
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors import executable_cache
from minipaddle.engine.executors.compiler import compiler, unusable
from minipaddle.engine.executors.executable_cache import ExecutableCache, backend_named
from minipaddle.engine.executors.native import Executable
from minipaddle.executors.hot import background
from minipaddle.executors.hot.background import QUEUE
from tests.learn.test_process import runs as is_alive

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def auto(monkeypatch):
    monkeypatch.delenv("MINIPADDLE_BACKEND", raising=False)
    yield
    QUEUE.wait()


@pytest.fixture
def watched(monkeypatch):
    """Whether each run of a program was compiled."""
    found, executable = [], ExecutableCache.executable

    def noted(self, program, arrays):
        made = executable(self, program, arrays)
        found.append(made is not None)
        return made

    monkeypatch.setattr(ExecutableCache, "executable", noted)
    return found


def trained(convert):
    """A net with momentum and batch norm, and its training step."""
    paddle.seed(3)
    net = paddle.nn.Sequential(
        paddle.nn.Linear(6, 8, bias_attr=False), paddle.nn.BatchNorm1D(8), paddle.nn.Linear(8, 3)
    )
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    def step(x, y):
        loss = paddle.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return net, convert(step)


def batch():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 6)).astype("float32")
    return paddle.to_tensor(x), paddle.to_tensor(rng.integers(0, 3, 16))


@needs_compiler
def test_training_goes_on_where_the_interpreter_was(watched):
    net, step = trained(lambda f: paddle.jit.to_static(f, backend="auto"))
    other, eager = trained(lambda f: f)
    data, losses = batch(), []
    for k in range(12):
        if k == 5:
            step.wait_compiled()
        losses.append((step(*data).item(), eager(*data).item()))
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-4)
    for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
    assert watched[:2] == [False, False]  # the first call builds nothing, the second one starts
    assert watched[5]
    assert [type(e) for e in step.executables] == [Executable]


@needs_compiler
def test_what_serves_is_printed():
    @paddle.jit.to_static
    def f(x):
        return paddle.tanh(x) * 2

    x = paddle.ones([3])
    assert repr(f) == "<to_static f, 0 programs>"
    f(x)
    assert repr(f) == "<to_static f, 1 program: interpreter>"
    f.wait_compiled()
    f(x)
    assert repr(f) == "<to_static f, 1 program: compiled>"
    assert len(f.stubs) == 1  # the fast path begins here
    f(paddle.ones([4]))
    assert repr(f) == "<to_static f, 2 programs: compiled, interpreter>"


@needs_compiler
def test_forward_and_backward_change_over_each_for_itself():
    @paddle.jit.to_static
    def f(x):
        return paddle.exp(x).sum()

    x = paddle.to_tensor([0.5, 1.0], stop_gradient=False)
    for k in range(4):
        y = f(x)
        if k == 1:
            f.wait_compiled()
        y.backward()
        if k == 2:
            f.wait_compiled()
        np.testing.assert_allclose(x.grad.numpy(), np.exp(x.numpy()), rtol=1e-6)
        x.clear_grad()
    assert len(f.executables) == 2


@needs_compiler
def test_each_size_is_compiled_when_it_comes_again(watched):
    @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None])])
    def f(x):
        return x * 2

    for n in (2, 3, 4, 5):
        f(paddle.ones([n]))
    assert not QUEUE.builds
    f(paddle.ones([3]))
    QUEUE.wait()
    watched.clear()
    assert [f(paddle.ones([n])).sum().item() for n in (3, 4)] == [6, 8]
    assert watched == [True, False]


@needs_compiler
def test_weights_that_change_while_it_is_compiled_are_seen(monkeypatch):
    """What is computed of weights in advance is computed again at the first compiled run."""
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 4), paddle.nn.Linear(4, 2))
    net.eval()
    x, compile_ = paddle.ones([3, 4]), ExecutableCache.compile

    def changed(self, key):
        made = compile_(self, key)
        net[0].weight.set_value(net[0].weight * 3)
        return made

    with paddle.no_grad():
        f = paddle.jit.to_static(lambda x: net(x) + (net[0].weight * 2).sum())
        monkeypatch.setattr(ExecutableCache, "compile", changed)
        f(x)
        f.wait_compiled()
        expected = net(x) + (net[0].weight * 2).sum()
        np.testing.assert_allclose(f(x).numpy(), expected.numpy(), rtol=1e-5)
    (made,) = f.executables
    assert made.weights.sources


@needs_compiler
def test_a_loaded_model_and_a_static_program_change_over(tmp_path, watched):
    path, x = str(tmp_path / "net"), paddle.ones([2, 4])
    net = paddle.nn.Linear(4, 3)
    paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None, 4])])
    loaded = paddle.jit.load(path)
    paddle.enable_static()
    main = paddle.static.Program()
    with paddle.static.program_guard(main):
        y = paddle.tanh(paddle.static.data("x", [2, 4]))
    paddle.disable_static()

    def static():
        feed = {"x": np.ones((2, 4), "float32")}
        return paddle.static.Executor().run(main, feed=feed, fetch_list=[y])[0]

    with paddle.no_grad():
        for run, expected in (
            (lambda: loaded(x).numpy(), net(x).numpy()),
            (static, np.tanh(np.ones((2, 4)))),
        ):
            watched.clear()
            for _ in range(3):
                np.testing.assert_allclose(run(), expected, rtol=1e-5)
                QUEUE.wait()
            assert watched == [False, False, True]


def test_it_is_pinned_by_argument_strategy_and_environment(monkeypatch):
    strategy = paddle.static.BuildStrategy()
    assert backend_named(None, strategy) == backend_named(None) == "auto"
    for pinned, name in ((True, "native"), (False, "interpreter")):
        strategy.build_cinn_pass = pinned
        assert backend_named(None, strategy) == name
        assert backend_named("auto", strategy) == "auto"
    monkeypatch.setenv("MINIPADDLE_BACKEND", "native")
    assert backend_named(None) == "native"
    assert paddle.jit.to_static(abs, backend="interpreter").backend == "interpreter"


def test_a_reader_s_code_is_interpreted():
    @paddle.jit.to_static
    def f(x):
        return paddle.tanh(x)

    with paddle.plugged("ops.tanh.body", lambda m, x: x * 7):
        for _ in range(3):
            assert f(paddle.ones([1])).item() == 7
            f.wait_compiled()
    assert not f.executables


# ---- failures --------------------------------------------------------------------------------


def double(x):
    return x * 2


def called(function, times=4):
    """The warnings of a few calls, whose results are right."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(times):
            assert function(paddle.ones([2])).tolist() == [2, 2]
            function.wait_compiled()
    return [str(w.message) for w in found]


def test_without_a_compiler_there_is_one_warning(monkeypatch):
    monkeypatch.delenv("MINIPADDLE_CC", raising=False)
    for module in (background, executable_cache):
        monkeypatch.setattr(module, "compiler", lambda: None)
    try:
        (message,) = called(paddle.jit.to_static(double))
        assert "there is no C compiler" in message
        assert called(paddle.jit.to_static(double)) == []
    finally:
        unusable.clear()
    monkeypatch.setenv("MINIPADDLE_CC", "none")
    assert called(paddle.jit.to_static(double)) == []


@needs_compiler
def test_a_compiler_that_fails_is_one_warning(monkeypatch):
    def broken(self):
        raise RuntimeError("gcc failed:\nstep.c:1: error")

    monkeypatch.setattr(Executable, "load", broken)
    static = paddle.jit.to_static(double)
    (message,) = called(static)
    assert "double was not compiled: gcc failed" in message
    assert "was not compiled" in repr(static)
    assert not static.executables


# ---- processes -------------------------------------------------------------------------------

SLOW = """
    import os, sys, time
    import minipaddle as paddle
    from minipaddle.executors.hot.background import QUEUE

    @paddle.jit.to_static
    def f(x):
        return paddle.tanh(x) * 2

    x = paddle.ones([3])
    f(x), f(x)
"""


def script(text, tmp_path, before="", **environment):
    """What a process prints, and the seconds it took."""
    own = {"MINIPADDLE_CACHE": str(tmp_path), "MINIPADDLE_BACKEND": "auto", **environment}
    file, began = tmp_path / "script.py", time.monotonic()
    file.write_text(before + textwrap.dedent(SLOW) + textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, str(file)],
        env=os.environ | own, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout, time.monotonic() - began


PARTS = "from minipaddle.executors import objects\nobjects.LEAST, objects.PART = 0, 1\n"


@pytest.mark.skipif(os.name == "nt", reason="the compiler is a shell script")
@pytest.mark.parametrize(("before", "count"), [("", 1), (PARTS, 2)], ids=["whole", "in parts"])
def test_the_exit_does_not_wait_for_the_compiler(tmp_path, before, count):
    slow, runs = tmp_path / "cc", tmp_path / "runs"
    head = '#!/bin/sh\n[ "$1" = --version ] && exec echo "slow gcc"\n'
    slow.write_text(f"{head}echo $$ >> {runs}\nexec sleep 60\n")
    slow.chmod(0o755)
    runs.touch()
    text = f"""
        while len(open({str(runs)!r}).readlines()) < {count}:
            time.sleep(0.01)
        print(f)
    """
    (tmp_path / "minipaddle" / "native").mkdir(parents=True)
    own = {"MINIPADDLE_CC": str(slow), "MINIPADDLE_THREADS": "2"}
    out, seconds = script(text, tmp_path, before, **own)
    assert out == "<to_static f, 1 program: interpreter, while it is compiled>\n"
    assert seconds < 30
    assert os.listdir(tmp_path / "minipaddle" / "native") == []
    time.sleep(0.2)
    assert not any(map(is_alive, map(int, runs.read_text().split())))


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_child_of_a_fork_compiles_for_itself(tmp_path):
    text = """
        import warnings
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork beside threads
        child = os.fork()
        for _ in range(2):
            assert f(x).tolist() == f(x).tolist()
            f.wait_compiled()
        f(x)
        if child == 0:
            print("child", f, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("parent", f)
    """
    out, _ = script(text, tmp_path)
    line = "<to_static f, 1 program: compiled>"
    assert out.splitlines() == [f"child {line}", f"parent {line}"]
