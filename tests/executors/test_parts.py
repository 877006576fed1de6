"""A C file in parts: several compilers make one library, and what one has made serves others."""

import ctypes
import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.codegen import compile_units
from minipaddle.codegen.products import microkernel
from minipaddle.engine.executors import compiler
from minipaddle.executors.native import objects
from minipaddle.executors.native.timing import add_timers

pytestmark = pytest.mark.skipif(compiler.compiler() is None, reason="no C compiler")

BLOCK = f"rows{microkernel.usual_height()}_float"


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Programs are compiled in up to three files of units: what compilers were given so far."""
    found, build = [], objects.build
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path / ".cache"))
    monkeypatch.setattr(objects, "LEAST", 0)
    monkeypatch.setattr(objects, "PART", 10)
    monkeypatch.setattr(objects, "threads", lambda: 3)
    monkeypatch.setattr(
        objects, "build", lambda cc, text, *more: found.append(text) or build(cc, text, *more)
    )
    return found


def lookups(x, k):
    for layer in range(3):
        x = paddle.tanh(paddle.matmul(x, x) + layer).astype("bfloat16").astype("float32")
        x = paddle.nn.functional.softmax(x[:, ::-1])
    return paddle.gather(x, k), paddle.linalg.inv(x + 3 * paddle.eye(24))


def compiled(function, *inputs):
    """(results, executable) of a function that is compiled for these inputs."""
    static = paddle.jit.to_static(function, backend="native")
    results = static(*inputs)
    return results, static.executables[-1]


def test_three_compilers_make_one_library(given):
    """Kernels of other parts, of rows and of types that want helpers; indices that are checked."""
    static = paddle.jit.to_static(lookups, backend="native")
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(24, 24)).astype("float32"))
    k = paddle.to_tensor([3, 0, 23])
    for got, wanted in zip(static(x, k), lookups(x, k), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=2e-2, atol=1e-3)
    with pytest.raises(IndexError, match="24"):
        static(x, k + 1)
    (made,) = static.executables
    (own,) = [text for text in given if f"int {made.source.prefix}_run(" in text]
    others = [text for text in given if text is not own]
    assert len(others) == 3
    for name in made.kernels.texts:
        assert sum(f"void {name}(" in text for text in others) == 1
        assert f"void {name}(" in own
    assert "\nint threads = 1;" in own
    assert all("extern int threads;" in text for text in others)
    assert len(static(x, k)) == 2


def test_the_times_of_kernels_in_parts(given):
    """The twin with clocks needs only its own functions; the kernels are there."""
    static = paddle.jit.to_static(lookups, backend="native")
    x, k = paddle.eye(24), paddle.to_tensor([1])
    static(x, k)
    (made,) = static.executables
    before = len(given)
    timed = add_timers(made)
    timed(made.again.args[0], [x.array, k.array])
    times = timed.times()
    assert len(times) == len(timed.source.timed) > 3
    assert all(seconds > 0 for seconds, _ in times)
    assert len(given) == before + 1


def test_what_a_compiler_says_of_a_part_is_told(given, monkeypatch):
    monkeypatch.setattr(objects, "file_of", lambda units: "int b")
    with pytest.raises(RuntimeError, match="expected"):
        paddle.jit.to_static(lookups, backend="native")(paddle.eye(24), paddle.to_tensor([1]))


AT_HOME = """
import minipaddle as paddle
from minipaddle.engine.executors import native
net = paddle.vision.models.LeNet()
step = paddle.jit.to_static(lambda x: net(x).square().mean().backward(), backend="native")
step(paddle.randn([8, 1, 28, 28]))
assert all(p.grad.isfinite().all() for p in net.parameters())
print(native.threads(), len(step.executables[-1].source.parts))
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
    assert min(threads, 2) < parts <= threads + 1
    assert [*tmp_path.glob(".cache/minipaddle/native/*.so")]


def products(x):
    for f in (paddle.tanh, paddle.sin, paddle.nn.functional.silu):
        x = f(x @ x)
    return x @ x.T


def test_what_all_parts_call_is_compiled_in_one(given):
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(24, 24)).astype("float32"))
    found, _ = compiled(products, x / 24)
    np.testing.assert_allclose(found.numpy(), products(x / 24).numpy(), rtol=1e-5)
    for name in (BLOCK, "panels_float"):
        bodies = rf"^__attribute__.*void {name}\("
        assert sum(bool(re.search(bodies, text, re.MULTILINE)) for text in given) == 1
    assert any(f"{BLOCK}(24" in text for text in given)


def test_another_program_finds_the_kernels(given):
    """Names of kernels and of the user's values differ; one kernel is new."""
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(24, 24)).astype("float32") / 24)
    _, one = compiled(products, x)
    del given[:]

    def further(weights):
        shift = paddle.exp(weights[0])
        return products(weights), shift

    found, made = compiled(further, x)
    for got, wanted in zip(found, further(x), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)
    new, own, cached = made.source.parts
    assert len(given) == 2
    assert cached.cached
    assert cached.seconds is None
    assert len(new.names) == 1
    assert "exp" in new.names[0]
    assert len(cached.names) == len(one.kernels.texts) + 2  # those that kernels share
    assert own.names == ["calls of kernels"]
    assert min(new.seconds, own.seconds) > 0


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_an_object_that_is_damaged_is_made_again(given, tmp_path, damage):
    x = paddle.eye(24)
    compiled(products, x)
    (folder,) = tmp_path.glob(".cache/minipaddle/native")
    for path in folder.glob("*.o"):
        whole = path.read_bytes()
        path.unlink()  # other names of the file keep its content
        if damage != "gone":
            path.write_bytes(whole[:-40] + (b"" if damage == "cut" else b"?" * 40))
    del given[:]
    found, made = compiled(lambda y: products(y) + 1, x)
    np.testing.assert_allclose(found.numpy(), products(x).numpy() + 1, rtol=1e-5)
    assert not any(part.cached for part in made.source.parts)
    assert len(given) == 4


def test_a_name_keeps_its_object(given, tmp_path):
    """Another program may link the object for other units in it."""
    one, other, name = (tmp_path / f"{k}.o" for k in ("one", "other", "name"))
    for path in (one, other):
        path.write_bytes(path.name.encode() + hashlib.sha256(path.name.encode()).digest())
        objects.link(path, name)
    assert name.read_bytes() == one.read_bytes()
    name.unlink()
    name.write_bytes(b"damaged")
    objects.link(other, name)
    assert name.read_bytes() == other.read_bytes()


def test_threads_compile_programs_that_share_kernels(given):
    x = paddle.eye(24)
    wanted = products(x).numpy()

    def run(k: int):
        return compiled(lambda y: products(y) + k, x)

    with ThreadPoolExecutor(6) as pool:
        for k, (found, _) in enumerate(pool.map(run, range(6))):
            np.testing.assert_allclose(found.numpy(), wanted + k, rtol=1e-5)


def test_a_file_system_without_links_has_copies(given, tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    test_another_program_finds_the_kernels(given)
    assert not [*tmp_path.glob(f".cache/minipaddle/native/*.{os.getpid()}")]


def test_a_kernel_belongs_to_what_it_calls(given, monkeypatch):
    """A change of a shared function, or of what files begin with, makes other labels."""
    x = paddle.eye(24)
    _, made = compiled(products, x)
    before = compile_units.split_units(made.source)
    write = compile_units.with_prologue
    changed = lambda texts: write(texts) + "/* changed */"
    monkeypatch.setattr(compile_units, "with_prologue", changed)
    assert not before.keys() & compile_units.split_units(made.source).keys()
    monkeypatch.undo()
    source = made.source
    shared = next(h for h in source.helpers if f"void {BLOCK}" in h)
    other = compile_units.SharedText(shared.replace(BLOCK, "rows9_float"), *shared.needs)
    swap = lambda texts: [other if h is shared else h for h in texts]
    source.helpers = swap(source.helpers)
    source.kernels.needs = {k: tuple(swap(texts)) for k, texts in source.kernels.needs.items()}
    changed = {
        u.name for label, u in compile_units.split_units(source).items() if label not in before
    }
    callers = {name for name, text in source.kernels.texts.items() if f"{BLOCK}(" in text}
    assert callers
    assert changed == callers | {"rows9_float"}


def test_a_small_program_is_one_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    _, made = compiled(lambda x: paddle.tanh(x @ x), paddle.eye(24))
    (part,) = made.source.parts
    assert part.seconds is None
    assert not [*tmp_path.glob("minipaddle/native/*.o")]


def test_the_pointer_to_a_library_is_one_for_all_parts(given):
    """Python sets it in the file of the program; a kernel elsewhere must see it."""
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(320, 320)).astype("float32"))
    _, made = compiled(lambda x: paddle.tanh(paddle.linalg.inv(x)) @ x, x)
    pointers = [h for h in made.source.helpers if compile_units.is_variable(h)]
    assert pointers
    assert sum("\nvoid (*" in text for text in given) == 1
    assert any("\nextern void (*" in text for text in given)
    assert not any("static void (*" in text for text in given)


def test_one_thread_compiles_shared_functions_with_their_callers(given, monkeypatch):
    monkeypatch.setattr(objects, "threads", lambda: 1)
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(24, 24)).astype("float32") / 24)
    found, one = compiled(products, x)
    np.testing.assert_allclose(found.numpy(), products(x).numpy(), rtol=1e-5)
    assert len(given) == 2
    assert sum(f"ONCE void {BLOCK}(" in text for text in given) == 1
    del given[:]
    found, made = compiled(lambda y: (products(y), paddle.exp(y[0])), x)
    np.testing.assert_allclose(found[0].numpy(), products(x).numpy(), rtol=1e-5)
    assert made.source.parts[-1].names == [*one.kernels.texts]
    assert not any(f"{BLOCK}(" in text for text in given[:1])


def test_calls_take_a_compiler_time_too():
    """A deep program has few kernels, and one function with many calls of them."""

    def repeat(depth):
        def run(x):
            for _ in range(depth):
                x = paddle.tanh(paddle.matmul(x, x))
            return x

        return compiled(run, paddle.eye(8))[1].source

    few, many = repeat(3), repeat(30)
    assert many.kernels.texts.keys() == few.kernels.texts.keys()
    assert objects.size_of(many) > objects.size_of(few) + 27 * 60 // objects.CALL


MATES = """\
#include <stdint.h>
__attribute__((weak)) int used(int k)
{
    switch (k) {
CASES
    }
    return 0;
}
__attribute__((weak)) void unused(int k)
{
    extern void elsewhere_1(int), elsewhere_2(int), elsewhere_3(int), elsewhere_4(int);
    extern void elsewhere_5(int), elsewhere_6(int);
    switch (k) {
CALLS
    }
}
"""


def test_a_function_does_not_keep_what_its_file_has_for_others(tmp_path):
    """A `switch` of many cases is a table of addresses; one table for all functions of a file kept
    functions that the program does not call, and wanted what only these call.
    """
    cc = compiler.compiler()
    cases = "\n".join(
        f'    case {k}: __asm__ volatile("nop"); return {k * k + 7};' for k in range(9)
    )
    calls = "\n".join(f"    case {k}: elsewhere_{k}(k); break;" for k in range(1, 7))
    text = MATES.replace("CASES", cases).replace("CALLS", calls)
    mates, own = tmp_path / "mates.o", tmp_path / "own.o"
    compiler.build(cc, text, mates, (), *objects.SECTIONS)
    run = '__attribute__((visibility("default"))) int run(int k) { int used(int); return used(k); }'
    compiler.build(cc, run, own, (), *objects.SECTIONS)
    compiler.build(cc, run, tmp_path / "all.so", [mates, own], *cc.libraries)
    assert ctypes.CDLL(str(tmp_path / "all.so")).run(5) == 32
