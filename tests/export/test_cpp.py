"""Paddle's C++ interface over exported libraries: a program under the sanitizers, beside Python."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.export.c import write
from minipaddle.testing.exported import FLAGS
from tests.export.built import TOLERANCE, results, saved
from tests.export.test_c import Counter, several

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("make") is None, reason="there is no g++ or make"
)
SANITIZERS = "-g -fsanitize=address,undefined -fno-sanitize-recover"


def values(shape, scale=1, dtype="float32"):
    """The numbers that the program writes into an input."""
    return ((np.arange(np.prod(shape)) % 7 - 2) * scale).astype(dtype).reshape(shape)


def build(folder):
    """Compile the libraries in a folder."""
    flags = f"CFLAGS=-O0 {' '.join(FLAGS)} {SANITIZERS}"
    done = subprocess.run(
        ["make", "paddle", flags, "LDFLAGS="], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def network():
    paddle.seed(2)
    return nn.Sequential(
        nn.Conv2D(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(64, 10)
    )


@pytest.fixture(scope="module")
def folder(network, tmp_path_factory):
    """The network for one image and for three."""
    where = tmp_path_factory.mktemp("net_c")
    for name, batch in (("net", 1), ("net_3", 3)):
        write(saved(network, values([batch, 1, 8, 8])), where, name=name)
    return build(where)


@pytest.fixture(scope="module")
def program(folder, tmp_path_factory):
    """The lines that tests/export/paddle_program.cc prints for some words."""
    made = tmp_path_factory.mktemp("program") / "program"
    source = Path(__file__).with_name("paddle_program.cc")
    words = ["-std=c++14", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-pthread"]
    include = ["-I", folder / "paddle/include"]
    command = ["g++", *words, *SANITIZERS.split(), *include, source, "-o", made, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def run(*words, cwd=None):
        done = subprocess.run([made, *map(str, words)], cwd=cwd, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


def numbers(lines, like):
    """The numbers of lines `output_0 …`, shaped as arrays like these."""
    rows = [[float(x) for x in line.split()[1:]] for line in lines]
    return [np.reshape(row, y.shape) for row, y in zip(rows, like, strict=True)]


def test_shapes_that_were_exported_run_as_in_python(program, folder, network):
    lines = program("run", folder, "-", "3,1,8,8", "1,1,8,8", "3,1,8,8")
    want = [results(network, values([n, 1, 8, 8]))[0] for n in (3, 1, 3)]
    for got, y in zip(numbers(lines, want), want, strict=True):
        np.testing.assert_allclose(got, y, **TOLERANCE)
    assert np.ptp(want[0]) > 0.01


def test_a_model_says_what_it_is(program, folder):
    lines = program("describe", folder, "-")
    assert lines[:2] == ["input input: -1 1 8 8", "output output_0: -1 10"]
    assert lines[2:4] == ["type input: 0, of 4", f"model: {folder}"]


def test_names_of_paddle_mean_the_libraries_beside_them(program, folder, network):
    want = results(network, values([3, 1, 8, 8]))
    for words in (
        ["net.pdmodel", "net.pdiparams"],
        ["./net.json", "-"],
        ["net_3.so", "net_3.bin"],
        [folder / "net.pdmodel", folder / "net.pdiparams"],
    ):
        got = numbers(program("run", *words, "3,1,8,8", cwd=folder), want)
        np.testing.assert_allclose(got[0], want[0], **TOLERANCE)
    assert program("accept", "net", "-", cwd=folder) == ["1 0 1"]


def test_two_clones_run_at_once(program, folder, network):
    lines = program("threads", folder / "net_3.so", "-")
    want = [results(network, values([3, 1, 8, 8], scale))[0] for scale in (1, 2)]
    for got, y in zip(numbers(lines, want), want, strict=True):
        np.testing.assert_allclose(got, y, **TOLERANCE)


def test_memory_of_the_user_is_read_and_written(program, folder, network):
    lines = program("share", folder, "-", "1,1,8,8", "1,10")
    for line, scale in zip(lines, (1, 2), strict=True):
        want = results(network, np.full([1, 1, 8, 8], scale, "float32"))[0][0]
        np.testing.assert_allclose([float(x) for x in line.split()], want, **TOLERANCE)


def test_memory_can_be_freed_between_runs(program, folder):
    first, second, freed, third, clone = program("times", folder / "net.so", "-")
    assert freed == "freed 1"
    assert first == second == third == clone


def test_several_inputs_and_outputs_of_several_types(program, tmp_path):
    inputs = values([2, 3]), values([2, 3], 1, "int64"), values([3], 1, "int8")
    write(saved(several, *inputs), tmp_path, embed=True)
    want = results(several, *inputs)
    lines = program("run", build(tmp_path), "-", "2,3", "2,3", "3")
    for got, y in zip(numbers(lines, want), want, strict=True):
        np.testing.assert_allclose(got, y)
    assert program("describe", tmp_path, "-")[7:10] == [
        "type k: 1, of 8", "type x: 0, of 4", "type y: 4, of 1",
    ]  # fmt: skip


def test_states_change_with_each_run_and_a_clone_begins_anew(program, tmp_path):
    write(saved(Counter(), values([3])), tmp_path, name="a")
    first, second, freed, third, clone = program("times", build(tmp_path), "-")
    assert [first, second, third] == [f"output_0 {-4 * k} {-2 * k} 0" for k in (1, 2, 3)]
    assert (freed, clone) == ("freed 0", first)


# ---- mistakes ----------------------------------------------------------------------------------


def test_mistakes_are_named(program, folder):
    said, what = {}, None
    for line in program("mistakes", folder, "-"):
        if not line.startswith("  "):
            what, _, line = line.partition(": ")
        said[what] = f"{said.get(what, '')}{line}\n"
    parts = {
        "not run": ["output_0 has no shape: call Run first"],
        "not filled": ["input has no values: CopyFromCpu gives it some"],
        "not shaped": ["input has no shape: call Reshape first"],
        "shape": ["no library is for input [2, 1, 8, 8]", "net.so: [1, 1, 8, 8]",
                  "net_3.so: [3, 1, 8, 8]", "--to c --input 2,1,8,8"],
        "not read": ["input has no values"],
        "double": ["input is of float32; the elements of CopyFromCpu are of another type"],
        "integer": ["input is of float32"],
        "output's shape": ["output_0 is an output, and Reshape is for inputs"],
        "output's values": ["output_0 is an output, and CopyFromCpu is for inputs"],
        "name": ["there is no array y; there are input"],
        "lod": ["SetLoD"],
        "pool": ["a pool of 2 has no predictor 2"],
        "gpu": ["EnableUseGpu: an exported library runs on the processor alone"],
        "tensorrt": ["EnableTensorRtEngine: an exported library"],
        "int8": ["EnableMkldnnInt8: the numbers are those of the export"],
        "run": ["no error"],
        "int64": ["output_0 is of float32; the elements of CopyToCpu"],
        "old values": ["input has no values"],
        "shared": ["output_0 is [3, 10], and ShareExternalData was given [1, 10]"],
        "shrunk": ["call Run first"],
        "no model": ["no model is set"],
    }  # fmt: skip
    assert said.keys() == parts.keys()
    for what, texts in parts.items():
        for text in texts:
            assert text in said[what]


def test_inputs_of_shapes_that_were_not_exported_together_are_refused(program, tmp_path):
    def add(x, y):
        return x + y

    for name, n in (("one", 1), ("two", 2)):
        write(saved(add, values([n]), values([n])), tmp_path, name=name)
    lines = program("run", build(tmp_path), "-", "2", "2", "1", "2")
    assert lines[0] == "output_0 -4 -2"
    assert "no library is for x [1], y [2]" in lines[1]


def test_an_index_out_of_range_is_named_with_its_line(program, tmp_path):
    def pick(table, at):
        return paddle.gather(table, at)

    write(saved(pick, values([1]), values([3], 1, "int64")), tmp_path)
    (line,) = program("run", build(tmp_path), "-", "1", "3")
    assert "index is out of range, at test_cpp.py:" in line


@pytest.fixture
def copied(folder, tmp_path):
    """A folder of one's own with the libraries."""
    return shutil.copytree(folder, tmp_path / "net_c")


def test_models_that_are_not_there_are_refused(program, copied):
    def why(*words):
        return "\n".join(program("describe", *words, cwd=copied))

    assert "there is no exported library at nowhere\n  try: python -m" in why("nowhere", "-")
    assert "there is no exported library at paddle/net.pdmodel" in why("paddle/net.pdmodel", "-")
    (copied / "net.pdiparams").touch()
    assert "net.pdiparams holds weights for Python" in why("net.pdmodel", "net.pdiparams")
    assert "net.bin belongs to one library, and there are" in why("net.pdmodel", "net.bin")
    assert "there are no weights none.bin" in why("net_3.so", "none.bin")
    (copied / "net_3.so").write_bytes(b"no library")
    assert "a library cannot be opened: ./net_3.so" in why("net_3.so", "-")


def test_weights_are_checked(program, copied):
    def why(file="net_3.bin"):
        return "\n".join(program("describe", copied / "net_3.so", copied / file))

    assert "net.bin does not have" in why("net.bin") or "of another export" in why("net.bin")
    data = (copied / "net_3.bin").read_bytes()
    (copied / "net_3.bin").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "net_3.so: the weights are damaged" in why()
    (copied / "net_3.bin").write_bytes(data[:-64])
    assert f"does not have {len(data)} bytes" in why()


def test_libraries_of_different_models_are_refused(program, copied, tmp_path):
    shutil.copy(copied / "net.so", copied / "net_4.so")
    assert "are for the same shapes" in "\n".join(program("describe", copied, "-"))
    for name, n in (("a", 3), ("b", 4)):
        write(saved(Counter() if n == 3 else nn.Linear(4, 2), values([n])), tmp_path, name=name)
    assert "are not one model" in "\n".join(program("describe", build(tmp_path), "-"))
