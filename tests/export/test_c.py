"""Models as C libraries: compiled by gcc, run, and compared with Python."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.core.display import hide_folders
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import Program, State
from minipaddle.export.c import write
from minipaddle.export.header import identifiers
from minipaddle.export.processor import LEVELS
from minipaddle.jit.saved import Method, SavedModel, SavedState
from minipaddle.static import InputSpec
from minipaddle.testing.exported import FLAGS, allocate_aligned
from tests.executors.fuzz import Report, programs_of
from tests.export.built import MODELS, TOLERANCE, Built, random, results, saved
from tests.processors import processors

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
ALONE = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
"""An environment without anything of Python's."""


def compile_and_run(folder, model, *inputs, **options):
    """(the library, what it computes, what Python computes)."""
    one = saved(model, *inputs)
    write(one, folder, **options)
    built, want = Built(folder), results(model, *inputs)
    names = one.methods["forward"].inputs
    return built, built.run(dict(zip(names, inputs, strict=True)), want), want


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Each of the models, once: (the library, what it computes, what Python computes)."""
    found = {}

    def get(name):
        if name not in found:
            paddle.seed(1)
            make, x = MODELS[name]
            found[name] = compile_and_run(tmp_path_factory.mktemp(name), make(), x)
        return found[name]

    return get


@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_what_python_does(built, name):
    library, got, want = built(name)
    np.testing.assert_allclose(got[0], want[0], **TOLERANCE)
    assert np.ptp(want[0]) > 0.01
    assert library.undefined() <= {"memcpy"}


def test_int8_weights_are_a_quarter(built):
    sizes = [(built(name)[0].folder / "model.bin").stat().st_size for name in ("int8", "lenet")]
    assert sizes[0] < 0.3 * sizes[1]


def test_nothing_in_the_text_is_of_this_machine(built):
    text = (built("gpt")[0].folder / "model.c").read_text()
    assert not re.search(r"[/\\][^/*]+\.py", text)
    assert "/* built.py:" in text  # the user's line


def test_folders_of_the_user_do_not_show():
    for folder in ("/home/a user/", "C:\\my files\\", ""):
        comment = f"/* {folder}net.py:12, in forward */\nx = a / b;"
        assert hide_folders(comment) == "/* net.py:12, in forward */\nx = a / b;"
        both = f"x = a / b; /* {folder}net.py:1, in f; {folder}t.py:2, in g */"
        assert hide_folders(both) == "x = a / b; /* net.py:1, in f; t.py:2, in g */"
        tip = f'<a title="{folder}net.py:3, in f&#10;{folder}t.py:4, in g">'
        assert hide_folders(tip) == '<a title="net.py:3, in f&#10;t.py:4, in g">'
    assert hide_folders("/a b/net.py:3, in f") == "net.py:3, in f"
    assert hide_folders("line 3 of a notebook cell") == "line 3 of a notebook cell"


def test_there_are_no_variables(built):
    made = built("gpt")[0].folder / "model.o"
    lines = subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout
    kinds = {line.split()[-2] for line in lines.splitlines()}
    assert kinds <= {*"tTrRU"}, lines  # functions, constants, what is elsewhere


def test_the_same_model_gives_the_same_bytes(tmp_path):
    paddle.seed(0)
    net = nn.Linear(3, 2)
    for folder in ("a", "b"):
        write(saved(net, random(2, 3)), tmp_path / folder)
    for file in filter(Path.is_file, (tmp_path / "a").rglob("*")):
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()


@pytest.mark.parametrize("level", [name for name in processors() if name in LEVELS])
def test_each_level_computes_the_same(tmp_path, level):
    for name in ("int8", "gpt"):
        make, x = MODELS[name]
        net = make()
        one = saved(net, x)
        write(one, tmp_path / name, processor=level)
        library, want = Built(tmp_path / name, level=LEVELS[level].flags.split()), results(net, x)
        got = library.run({one.methods["forward"].inputs[0]: x}, want)
        np.testing.assert_allclose(got[0], want[0], **TOLERANCE)


# ---- the folder, as a user has it ---------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A network of chapter 5's kind, by jit.save; its input and its scores."""
    where = tmp_path_factory.mktemp("digits")
    paddle.seed(2)
    net = nn.Sequential(
        nn.Conv2D(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(128, 10)
    )
    paddle.jit.save(net, where / "c", [InputSpec([1, 1, 8, 8])], format="c")
    paddle.jit.save(
        net, where / "in", [InputSpec([1, 1, 8, 8])], format="c", embed=True, name="net"
    )
    x = random(1, 1, 8, 8)
    for each in ("c", "in"):
        x.tofile(where / each / "x.bin")
    return where, results(net, x)[0].ravel()


def make(folder, *words):
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    done = subprocess.run(
        ["make", "CFLAGS=-O1 " + " ".join(FLAGS), *words],
        cwd=folder, env=ALONE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def numbers(folder, *words):
    """The numbers that a program prints."""
    done = subprocess.run(words, cwd=folder, env=ALONE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array([float(line.split()[-1]) for line in done.stdout.splitlines()])


@pytest.mark.parametrize("kind", ["c", "in"])
def test_the_static_program_needs_nothing_and_computes_the_same(folder, kind):
    where, want = folder
    make(where / kind, "example")
    kinds = subprocess.run(
        ["readelf", "-l", where / kind / "example"], capture_output=True, text=True
    )
    assert "INTERP" not in kinds.stdout
    got = numbers(where / kind, "./example", "x.bin")
    np.testing.assert_allclose(got, want, **TOLERANCE)
    with open(where / kind / "x.bin", "rb") as file:
        done = subprocess.run(["./example", "-"], stdin=file, cwd=where / kind, capture_output=True)
    assert np.allclose([float(line.split()[-1]) for line in done.stdout.splitlines()], got)


def test_the_program_says_how_long_it_takes(folder):
    make(folder[0] / "c", "example")
    done = subprocess.run(
        ["./example", "--time"], cwd=folder[0] / "c", capture_output=True, text=True
    )
    assert re.search(r"init \d+ us, first run [\d.]+ us, best run [\d.]+ us", done.stderr)


@pytest.mark.parametrize("kind", ["c", "in"])
def test_the_example_in_cpp(folder, kind):
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    where, _ = folder
    make(where / kind, "cpp")
    zeros = numbers(where / kind, "./example_cpp")
    make(where / kind, "example")
    assert zeros == pytest.approx(numbers(where / kind, "./example")[0])


def test_sanitizers_find_nothing(folder):
    where, want = folder
    make(where / "c", "check", "CFLAGS=-O0 " + " ".join(FLAGS))
    np.testing.assert_allclose(numbers(where / "c", "./example_check", "x.bin"), want, **TOLERANCE)


@pytest.mark.parametrize("name", ["int8", "gpt"])
def test_sanitizers_find_nothing_in_larger_models(built, name):
    library, got, _ = built(name)
    x = MODELS[name][1]
    x.tofile(library.folder / "x.bin")
    make(library.folder, "check", "CFLAGS=-O0 " + " ".join(FLAGS))
    np.testing.assert_allclose(
        numbers(library.folder, "./example_check", "x.bin"), got[0].ravel(), **TOLERANCE
    )


def test_the_program_says_what_is_wrong(folder, tmp_path):
    make(folder[0] / "c", "example")
    for words, why in ((["nothing.bin"], "cannot be read"), (["Makefile"], "")):
        done = subprocess.run(
            ["./example", *words], cwd=folder[0] / "c", capture_output=True, text=True
        )
        assert why in done.stderr
    done = subprocess.run(
        [folder[0] / "c" / "example"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "there is no model.bin here\n")


# ---- instances and errors -----------------------------------------------------------------------


def test_instances_run_in_threads(built):
    library, _, want = built("lenet")
    arenas = [library.instance() for _ in range(3)]
    images = [random(1, 1, 28, 28) * (k + 1) for k in range(3)]
    alone = [library.run({"inputs": x}, want)[0] for x in images]

    def many(k):
        return [library.run({"inputs": images[k]}, want, arenas[k])[0] for _ in range(30)]

    with ThreadPoolExecutor(3) as pool:
        for k, got in enumerate(pool.map(many, range(3))):
            assert all((y == alone[k]).all() for y in got)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data[:63], "do not have"),
        (lambda data: data[:-64], "do not have"),
        (lambda data: data + bytes(64), "do not have"),
        (lambda data: b"X" + data[1:], "no weights"),
        (lambda data: data[:8] + b"\x02" + data[9:], "another version"),
        (lambda data: data[:24] + bytes(8) + data[32:], "another export"),
        (lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:], "damaged"),
        (lambda data: data[:-1] + b"\x01", "damaged"),
    ],
)
def test_weights_are_checked(built, change, why):
    library = built("lenet")[0]
    with pytest.raises(ValueError, match=why):
        library.instance(change((library.folder / "model.bin").read_bytes()))


def test_an_arena_is_checked(built):
    library, _, want = built("lenet")
    with pytest.raises(ValueError, match="too small: it needs"):
        library.instance(short=1)
    with pytest.raises(ValueError, match="call model_init first"):
        library.run({}, want, allocate_aligned(library.arena.size))
    for wrong in (0, library.arena.ctypes.data + 4):
        code = library.library.model_run(ctypes.c_void_p(wrong))
        assert b"multiple of 64" in library.library.model_error(code)


def test_an_index_out_of_range_is_named_with_its_line(built):
    library, got, want = built("gpt")
    tokens = MODELS["gpt"][1]
    with pytest.raises(
        ValueError, match=r"embedding: an index is out of range, at built\.py:\d+, in"
    ):
        library.run({"tokens": tokens + 20}, want)
    assert (library.run({"tokens": tokens}, want)[0] == got[0]).all()


# ---- what programs may contain ------------------------------------------------------------------


def several(x, k, y):
    flags = k > 2
    return x + y.astype("float32"), paddle.where(flags, k, -k), flags, (y * 2).astype("float64")


def test_several_inputs_outputs_and_dtypes(tmp_path):
    inputs = random(2, 3), np.arange(6).reshape(2, 3), np.arange(3, dtype="int8")
    _, got, want = compile_and_run(tmp_path, several, *inputs)
    assert [y.dtype.name for y in want] == ["float32", "int64", "bool", "float64"]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b)


class Counter(nn.Layer):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", paddle.zeros([3]))

    def forward(self, x):
        self.total.set_value(self.total + x)
        return self.total * 2.0


def test_states_change_with_each_run_and_init_sets_them_back(tmp_path):
    x = random(3)
    one = saved(Counter(), x)
    write(one, tmp_path)
    library = Built(tmp_path)
    for k in (1, 2, 3):
        np.testing.assert_allclose(library.run({"x": x}, [x])[0], 2 * k * x, rtol=1e-6)
    np.testing.assert_allclose(library.run({"x": x}, [x], library.instance())[0], 2 * x, rtol=1e-6)
    assert "init sets them back" in (tmp_path / "model.h").read_text()


def looping(x, table, at):
    total = paddle.zeros([2])
    while total.sum() < 3.0:
        total = total + x
    if total[0] > 100.0:
        return total
    return total + paddle.gather(table, at)[0]


def test_branches_loops_and_indices(tmp_path):
    inputs = np.float32([1.0, 0.5]), random(4, 2), np.array([3])
    model = paddle.jit.to_static(looping)
    library, got, want = compile_and_run(tmp_path, model, *inputs)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
    with pytest.raises(ValueError, match="out of range"):
        library.run({"at": np.array([4])}, want)


def curves(x):
    return paddle.tanh(x) + paddle.sin(x) + paddle.erf(x) + paddle.log1p(x) + paddle.pow(x, 1.7)


def drawn(x):
    return x + paddle.rand([3])


def test_random_numbers_are_those_of_python(tmp_path):
    x = random(3)
    one = saved(drawn, x)
    paddle.seed(7)
    write(one, tmp_path)
    library = Built(tmp_path)
    for _ in range(2):
        np.testing.assert_allclose(library.run({"x": x}, [x])[0], results(drawn, x)[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mathematical_functions_are_its_own(tmp_path, dtype):
    library, got, want = compile_and_run(tmp_path, curves, random(300).astype(dtype))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6 if dtype == "float32" else 1e-14)
    assert library.undefined() <= {"memcpy"}


def folded(x):
    return paddle.max(x), paddle.min(x, axis=1), paddle.logsumexp(x), paddle.argmax(x, axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reductions_of_one_thread(tmp_path, dtype):
    x = np.random.default_rng(0).normal(size=(40, 30)).astype(dtype)
    _, got, want = compile_and_run(tmp_path, folded, x)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("seed", [4, 8, 21, 34])
def test_random_programs(tmp_path, seed):
    """Programs of the executors' fuzzer, which are as the interpreter has them."""
    (case, *_) = programs_of(seed, Report())
    program, arrays = case.program, [np.array(a) for a in case.calls[0]]
    with np.errstate(all="ignore"):
        want = [np.asarray(y) for y in Run(NUMPY)(program, [a.copy() for a in arrays])]
    tensors = {f"s{k}": paddle.to_tensor(a) for k, a in enumerate(arrays[len(program.inputs) :])}
    kept = {name: SavedState("constant", x, []) for name, x in tensors.items()}
    own = Program(**vars(program))
    own.states = [State(f"s{k}", s.record, s.update) for k, s in enumerate(program.states)]
    write(SavedModel({"forward": Method(own, None, [], [])}, kept, {}), tmp_path)
    library = Built(tmp_path)
    assert library.undefined() <= {"memcpy"}
    names = [
        slot.removeprefix("input_") for slot in identifiers([*Method(own, None, [], []).inputs])
    ]
    got = library.run(dict(zip(names, arrays)), want[: len(program.outputs)])
    for a, b in zip(got, want):
        exact = b.dtype.kind in "biu"
        np.testing.assert_allclose(a, b, **({"rtol": 0} if exact else {"rtol": 1e-4, "atol": 1e-5}))


def test_bfloat16_inside(tmp_path):
    def half(x):
        return (x.astype("bfloat16") * 3.0).astype("float32")

    _, got, want = compile_and_run(tmp_path, half, random(40))
    assert (got[0] == want[0]).all()


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "x", "parts"),
    [
        (lambda x: x.astype("float16") * 2, random(3), ["float16", "test_c.py:", "try: x.astype"]),
        (
            lambda x: paddle.linalg.svd(x)[1],
            random(3, 3),
            ["svd has no C of its own", "test_c.py:"],
        ),
    ],
)
def test_what_c_cannot_compute_is_refused_by_name(tmp_path, model, x, parts):
    with pytest.raises(ValueError, match="expected") as error:
        write(saved(model, x), tmp_path / "new")
    for part in parts:
        assert part in str(error.value)
    assert not (tmp_path / "new").exists()


def test_open_sizes_are_refused_with_what_to_say(tmp_path):
    with pytest.raises(ValueError, match=r"sizes are open: batch[\s\S]*--input 1,4") as error:
        paddle.jit.save(nn.Linear(4, 2), tmp_path / "c", [InputSpec([None, 4])], format="c")
    assert "input: float32[batch, 4]" in str(error.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"processor": "z80"}, "processor='z80'\n  expected: one of generic, x86-64"),
        ({"method": "backward"}, "no 'backward'\n  expected: one of forward"),
        ({"name": "int main"}, "expected: a name of C"),
        ({"speed": 3}, "the format c has no option 'speed'"),
        ({"format": "cobol"}, "no format 'cobol'\n  expected: one of c, wasm, onnx"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        paddle.jit.save(
            nn.Linear(4, 2), tmp_path / "c", [InputSpec([1, 4])], **{"format": "c", **options}
        )


# ---- for other machines -------------------------------------------------------------------------

needs_zig = pytest.mark.skipif(find_spec("ziglang") is None, reason="the extra `zig` is missing")
ZIG = [sys.executable, "-m", "ziglang", "cc"]


@needs_zig
@pytest.mark.slow
@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "x86_64-linux-musl", "aarch64-macos"])
def test_the_library_links_for_another_machine(built, target, tmp_path):
    for name in ("int8", "gpt"):
        words = ["-O1", "-target", target, *FLAGS, "-nostdlib", "-DFREESTANDING", "-shared"]
        folder = built(name)[0].folder
        made = tmp_path / f"{name}.so"
        subprocess.run([*ZIG, *words, "model.c", "-o", made], cwd=folder, check=True)
        kind = made.read_bytes()[:20]
        machine = {"aarch64-linux-gnu": b"\xb7", "x86_64-linux-musl": b"\x3e"}.get(target)
        assert kind[18:19] == machine if machine else kind.startswith(b"\xcf\xfa\xed\xfe")


@needs_zig
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not os.environ.get("EXPORT_ALL"), reason="EXPORT_ALL=1: zig builds musl first")
def test_the_static_program_by_zig_and_musl(folder):
    where, want = folder
    command = " ".join([*ZIG, "-target", "x86_64-linux-musl"])
    make(where / "c", "-B", "example", f"CC={command}", "LEVEL=")
    np.testing.assert_allclose(numbers(where / "c", "./example", "x.bin"), want, **TOLERANCE)
