"""A C file in parts: several compilers make one library."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.codegen.translation_unit import prologue
from minipaddle.engine.executors import compiler, native

pytestmark = pytest.mark.skipif(compiler.compiler() is None, reason="no C compiler")


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Programs are compiled in three parts: what the compilers were given so far."""
    found, build = [], compiler.build
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path / ".cache"))
    monkeypatch.setattr(native, "PART", 10)
    monkeypatch.setattr(native, "threads", lambda: 3)
    monkeypatch.setattr(
        compiler, "build", lambda cc, *made: found.append(made[0]) or build(cc, *made)
    )
    return found


def lookups(x, k):
    for layer in range(3):
        x = paddle.tanh(paddle.matmul(x, x) + layer).astype("bfloat16").astype("float32")
        x = paddle.nn.functional.softmax(x[:, ::-1])
    return paddle.gather(x, k), paddle.linalg.inv(x + 3 * paddle.eye(24))


def test_three_compilers_make_one_library(given):
    """Kernels of other parts, of rows and of types that want helpers; one on the host."""
    static = paddle.jit.to_static(lookups, backend="native")
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(24, 24)).astype("float32"))
    k = paddle.to_tensor([3, 0, 23])
    for got, wanted in zip(static(x, k), lookups(x, k), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=2e-2, atol=1e-3)
    with pytest.raises(IndexError, match="24"):
        static(x, k + 1)
    (made,) = static.concrete_program.executables.compiled.values()
    ((one, two, three),) = given
    for name in made.kernels.texts:
        assert sum(f"\nvoid {name}(" in text and f"{name}(" in three for text in given[0]) >= 1
    assert [f"int {made.source.prefix}_run(" in text for text in (one, two, three)] == [
        False,
        False,
        True,
    ]
    assert "extern int threads;" in one
    assert "\nint threads = 1;" in three
    assert len(static(x, k)) == 2


def test_the_times_of_kernels_in_parts(given):
    static = paddle.jit.to_static(lookups, backend="native")
    x, k = paddle.eye(24), paddle.to_tensor([1])
    static(x, k)
    (made,) = static.concrete_program.executables.compiled.values()
    timed = made.with_timers()
    timed(made.moving.args[0], [x.array, k.array])
    times = timed.times()
    assert len(times) == len(timed.source.timed) > 3
    assert all(seconds > 0 for seconds, _ in times)
    assert len(given) == 2


def test_what_a_compiler_says_of_a_part_is_told(given, monkeypatch):
    monkeypatch.setattr(native, "SPLIT", [lambda source, n: ["int a;", "int b", "int c;"]])
    with pytest.raises(RuntimeError, match="expected"):
        paddle.jit.to_static(lookups, backend="native")(paddle.eye(24), paddle.to_tensor([1]))


def test_each_part_may_have_every_function_of_ours(tmp_path):
    texts = [f"{prologue()}\nint {name};\n" for name in "ab"]
    compiler.build(compiler.compiler(), texts, tmp_path / "both.so")
    assert ctypes.CDLL(str(tmp_path / "both.so"))


AT_HOME = """
import minipaddle as paddle
from minipaddle.engine.executors import compiler, native

build, parts = compiler.build, []
compiler.build = lambda cc, texts, path: parts.append(len(texts)) or build(cc, texts, path)
net = paddle.vision.models.LeNet()
step = paddle.jit.to_static(lambda x: net(x).square().mean().backward(), backend="native")
step(paddle.randn([8, 1, 28, 28]))
assert all(p.grad.isfinite().all() for p in net.parameters())
print(native.threads(), max(parts))
"""


def test_as_somebody_has_it_at_home(tmp_path):
    """All cores of the machine, compiled objects in ~/.cache: the suite has neither."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("MINIPADDLE", "OMP", "XDG"))}
    own |= {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    script = tmp_path / "train.py"
    script.write_text(AT_HOME)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    threads, parts = map(int, done.stdout.split())
    assert min(threads, 2) <= parts <= threads
    assert [*tmp_path.glob(".cache/minipaddle/native/*.so")]


def test_what_all_parts_call_is_compiled_in_one(given):
    def products(x):
        for f in (paddle.tanh, paddle.sin, paddle.nn.functional.silu):
            x = f(x @ x)
        return x @ x.T

    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(24, 24)).astype("float32"))
    found = paddle.jit.to_static(products, backend="native")(x / 24)
    np.testing.assert_allclose(found.numpy(), products(x / 24).numpy(), rtol=1e-5)
    (texts,) = given
    for name in ("rows8_float", "panels_float"):
        assert sum(f"ONCE void {name}(" in text for text in texts) == 1
        assert sum(f"\nvoid {name}(" in text for text in texts) == len(texts) - 1
    assert any("\nvoid rows8_float(" in text and "rows8_float(24" in text for text in texts)
