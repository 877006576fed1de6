"""Which C compiler there is, and the messages about it."""

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle import utils
from minipaddle.engine.executors import compiler as c
from minipaddle.executors.native import compilers, ownership


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """A function: the compiler that a shell script in the place of one makes of us."""

    def choose(script):
        path = tmp_path / "cc"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("MINIPADDLE_CC", str(path))
        return c.compiler.__wrapped__()

    return choose


def test_one_without_openmp_s_library_makes_programs_of_one_thread(chosen):
    found = chosen('[ "$1" = --version ] && echo "clang version 99" || exit 1')
    assert found.openmp == c.VECTORS
    assert str(found) == "clang version 99, one thread (it brings no OpenMP)"
    assert "-lmvec" not in found.libraries


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_gcc_has_threads(chosen):
    found = chosen('exec gcc "$@"')
    assert found.openmp == c.THREADS
    assert str(found) == found.version
    assert compilers.has_openmp(found.command)


TWO_PROCESSORS = """case "$*" in
    --version) echo "clang version 99";;
    *march=native*-dM*) echo "#define __OLD__ 1"; echo "#define __small 1";;
    *march=newer*-dM*) echo "#define __OLD__ 1"; echo "#define __NEW__ 1"; echo "#define __big 1";;
    *march=older*-dM*) echo "#define __OLD__ 1";;
    *) exit 1;;
esac"""
"""A compiler of two other processors: one has more instructions than this one, one as many."""


def test_programs_are_for_the_processor_that_is_named(chosen, monkeypatch):
    assert "-march=native" in chosen(TWO_PROCESSORS).flags
    monkeypatch.setenv("MINIPADDLE_PROCESSOR", "older")
    flags = chosen(TWO_PROCESSORS).flags
    assert [flag for flag in flags if "march" in flag] == ["-march=older"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("newer", "this processor lacks NEW\n"), ("z80", "cc knows none")],
)
def test_none_are_compiled_that_would_not_run(name, why, chosen, monkeypatch):
    monkeypatch.setattr(c, "unusable", [])
    monkeypatch.setenv("MINIPADDLE_PROCESSOR", name)
    with pytest.warns(UserWarning, match=f"MINIPADDLE_PROCESSOR is '{name}': .*{why}"):
        assert chosen(TWO_PROCESSORS) is None
    assert len(c.unusable) == 1


def test_what_makes_a_file_that_can_not_be_loaded_has_no_library(chosen):
    found = chosen('[ "$1" = --version ] && echo "clang version 99" || eval "echo x > \\${6}"')
    assert found.openmp == c.VECTORS


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
def test_what_is_not_declared_does_not_compile(tmp_path):
    text = "float f(float x)\n{\n    return lgammaf(x);\n}\n"
    with pytest.raises(RuntimeError, match="lgammaf"):
        c.build(c.compiler(), text, tmp_path / "f.so")


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
def test_a_file_without_parallel_loops_needs_no_threads(tmp_path, monkeypatch):
    options = []

    def called(cc, words):
        options.append(cc.openmp)
        Path(words[words.index("-o") + 1]).write_bytes(b"object")

    monkeypatch.setattr(c, "run_compiler", called)
    c.build(c.compiler(), "#pragma omp simd", tmp_path / "f.so")
    c.build(c.compiler(), "#pragma omp parallel for", tmp_path / "f.so")
    assert options == [c.VECTORS, c.compiler().openmp]


def test_none_is_none(monkeypatch):
    monkeypatch.setenv("MINIPADDLE_CC", "none")
    assert c.compiler.__wrapped__() is None
    monkeypatch.setenv("MINIPADDLE_CC", "there-is-no-such-compiler")
    with pytest.warns(UserWarning, match="MINIPADDLE_CC is 'there-is-no-such-compiler'"):
        assert c.compiler.__wrapped__() is None


# ---- what goes wrong -------------------------------------------------------------------------


def one_program(k, backend="native"):
    return paddle.jit.to_static(lambda x: paddle.tanh(x) * k, backend=backend)(paddle.zeros([3]))


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_object_is_made_again(tmp_path, monkeypatch, part, cut):
    """Loaded as it is, it would end this process."""
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    text = f'__attribute__((visibility("default"))) int seven(void) {{ return 7; }} // {part} {cut}'
    path = c.library_path(text, c.compiler())
    c.build(c.compiler(), text, path, (), *c.compiler().libraries)
    whole = path.read_bytes()
    place = int(part * len(whole))
    path.write_bytes(
        whole[:place] + (b"" if cut else bytes([whole[place] ^ 1]) + whole[place + 1 :])
    )
    assert c.load(text).seven() == 7
    assert path.read_bytes() == whole


def cache_is_a_file(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path / "file"))


def cache_is_full(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", full)


def compiler_is(script):
    def choose(tmp_path, monkeypatch):
        path = tmp_path / "cc"
        path.write_text(f"#!/bin/sh\n[ $1 = --version ] && exec echo cc 1\n{script}\n")
        path.chmod(0o755)
        made = c.Compiler((str(path),), "cc 1", (), c.VECTORS)
        monkeypatch.setattr(c, "compiler", lambda: made)
        monkeypatch.setattr("minipaddle.engine.executors.executable_cache.compiler", lambda: made)
        monkeypatch.setattr(c, "TIMEOUT", 0.2)

    return choose


BROKEN = {
    "cache_is_a_file": (cache_is_a_file, "MINIPADDLE_CACHE"),
    "cache_is_full": (cache_is_full, "No space left on device(.|\n)*MINIPADDLE_CACHE"),
    "no_room_says_the_compiler": (
        compiler_is("echo ld: final link failed: No space left on device >&2; exit 1"),
        "No space left on device(.|\n)*MINIPADDLE_CACHE",
    ),
    "hangs": (compiler_is("sleep 60 & wait"), "takes more than 0.2 s(.|\n)*MINIPADDLE_CC"),
    "silent": (compiler_is("exit 3"), r"without a word \(status 3\)(.|\n)*MINIPADDLE_CC"),
    "makes_nothing": (compiler_is("exit 0"), "makes nothing(.|\n)*MINIPADDLE_CC"),
}


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
@pytest.mark.skipif(sys.platform == "win32", reason="no shell scripts")
@pytest.mark.parametrize("broken", [*BROKEN])
def test_what_can_not_compile_interprets_with_one_warning(broken, tmp_path, monkeypatch):
    change, message = BROKEN[broken]
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(c, "unusable", [])
    monkeypatch.setattr("minipaddle.engine.executors.executable_cache.unusable", c.unusable)
    change(tmp_path, monkeypatch)
    with pytest.warns(UserWarning, match=message) as heard:
        assert one_program(2).tolist() == [0.0] * 3
    assert len(heard) == 1
    assert one_program(3).tolist() == [0.0] * 3  # a second warning would be an error


def test_a_compiler_that_hangs_leaves_no_process(tmp_path):
    mark = tmp_path / "alive"
    with pytest.raises(subprocess.TimeoutExpired):
        compilers.run_alone(["sh", "-c", f"(sleep 1; touch {mark}) & wait"], 0.2)
    time.sleep(1.2)
    assert not mark.exists()


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
def test_a_cache_that_may_only_be_read_serves(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    text = '__attribute__((visibility("default"))) int eight(void) { return 8; }\n'
    c.build(c.compiler(), text, c.library_path(text, c.compiler()))

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(c.os, "utime", refuse)
    monkeypatch.setattr(c, "build", refuse)
    assert c.load(text).eight() == 8


# ---- whose the cache is ----------------------------------------------------------------------

TEXT = '__attribute__((visibility("default"))) int nine(void) { return 9; } // '
"""What is compiled; a word follows."""
with_owners = pytest.mark.skipif(
    c.compiler() is None or not hasattr(os, "getuid"), reason="no C compiler, or no owners of files"
)


@pytest.fixture
def strangers(monkeypatch, tmp_path):
    """A cache in a folder, and a function that gives a path to another user."""
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    ownership.say.cache_clear()
    ownership.private.cache_clear()
    given, real = set(), ownership.fault_of

    def fault_of(about):
        changed = about.st_uid if about.st_ino not in given else 4321
        values = [*about][:10]
        values[4] = changed
        return real(os.stat_result(values))

    monkeypatch.setattr(ownership, "fault_of", fault_of)
    return lambda path: given.add(os.lstat(path).st_ino)


def compile_nine(word: str) -> Path:
    """Compile the text; where its library is."""
    assert c.load(TEXT + word).nine() == 9
    return c.library_path(TEXT + word, c.compiler())


@with_owners
def test_a_new_cache_is_closed_to_others(tmp_path, strangers):
    before = os.umask(0o002)
    try:
        path = compile_nine("closed")
    finally:
        os.umask(before)
    assert path.parent == tmp_path / "minipaddle" / "native"
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path.parent.parent, path.parent, path)]
    assert modes == [0o700, 0o700, 0o644]


def writable(folder, strangers):
    folder.chmod(0o770)


def writable_above(folder, strangers):
    folder.parent.chmod(0o777)


def of_another(folder, strangers):
    strangers(folder)


def behind_a_strangers_link(folder, strangers):
    folder.rename(folder.parent.parent / "elsewhere")
    folder.symlink_to(folder.parent.parent / "elsewhere")
    strangers(folder)


@with_owners
@pytest.mark.parametrize("change", [writable, writable_above, of_another, behind_a_strangers_link])
def test_a_folder_of_others_is_not_used(change, tmp_path, strangers):
    """Nothing is loaded from there or written there; it is said once."""
    folder = compile_nine("used").parent
    there = sorted(p.name for p in folder.iterdir())
    change(folder, strangers)
    with pytest.warns(UserWarning, match=r"is not used(.|\n)*MINIPADDLE_CACHE") as heard:
        path = compile_nine("used")
    assert len(heard) == 1
    assert str(tmp_path) not in str(path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    compile_nine("used again")  # a second warning would be an error
    assert sorted(p.name for p in folder.iterdir()) == there
    shutil.rmtree(path.parent)


def planted_by_another(path, strangers):
    strangers(path)


def planted_writable(path, strangers):
    path.chmod(0o666)


def planted_link(path, strangers):
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


@with_owners
@pytest.mark.parametrize("plant", [planted_by_another, planted_writable, planted_link])
def test_a_file_of_others_is_compiled_again(plant, strangers):
    """One with a right sum, which returns something else."""
    word = plant.__name__
    path = c.library_path(TEXT + word, c.compiler())
    c.build(c.compiler(), (TEXT + word).replace("9", "66"), path)
    plant(path, strangers)
    with pytest.warns(UserWarning, match="are not used(.|\n)*see who wrote it") as heard:
        assert compile_nine(word) == path
    assert len(heard) == 1
    assert not path.is_symlink()


@with_owners
def test_a_link_of_ours_is_followed(tmp_path, strangers):
    (tmp_path / "disk").mkdir()
    (tmp_path / "minipaddle").symlink_to(tmp_path / "disk")
    assert compile_nine("link").parent == tmp_path / "minipaddle" / "native"
    assert list((tmp_path / "disk" / "native").glob("*.so"))


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
def test_a_library_without_our_function_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    path = c.library_path(TEXT + "other", c.compiler())
    other = '__attribute__((visibility("default"))) int ten(void) { return 10; }\n'
    c.build(c.compiler(), other, path, (), *c.compiler().libraries)
    assert c.load(TEXT + "other").nine() == 9


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
def test_the_functions_of_a_program_s_file_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    texts = []
    real = c.library_path
    monkeypatch.setattr(c, "library_path", lambda text, cc: texts.append(text) or real(text, cc))
    assert one_program(1.25).tolist() == [0.0] * 3
    text = next(t for t in texts if c.EXPORTED.findall(t))
    assert {"run", "threads", "host"} <= {n.rpartition("_")[2] for n in c.EXPORTED.findall(text)}


def test_run_check_says_what_there_is(capsys):
    utils.run_check()
    output = capsys.readouterr().out
    assert output.startswith("MiniPaddle works eagerly and as a program on the CPU.")
    assert output.endswith("MiniPaddle is installed successfully!\n")
    assert str(c.compiler() or c.INSTALL) in output


def test_run_check_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(utils, "compiler", lambda: None)
    monkeypatch.setattr("minipaddle.engine.executors.executable_cache.compiler", lambda: None)
    utils.run_check()
    output = capsys.readouterr().out
    assert "There is no C compiler: NumPy computes, large groups in blocks." in output
    assert "pip install 'minipaddle[zig]'" in output


def test_run_check_finds_what_is_wrong():
    x = paddle.ones([2])
    with pytest.raises(RuntimeError, match="compiled, MiniPaddle computes what is 1 away"):
        utils.require_equal(x + 1, x, "compiled")


LIBGOMP_SPINS = """
import os
from minipaddle.engine.executors.compiler import compiler
libraries = compiler().libraries
print("-lgomp" in libraries, "GOMP_SPINCOUNT" in os.environ)
"""


@pytest.mark.parametrize(("own", "spins"), [
    ({}, compilers.BRIEFLY),
    ({"GOMP_SPINCOUNT": "77"}, None),
    ({"OMP_WAIT_POLICY": "active"}, None),
])  # fmt: skip
def test_threads_of_openmp_spin_briefly_unless_the_user_says_how_they_wait(own, spins):
    waiting = {compilers.SPINS, "OMP_WAIT_POLICY"}
    rest = {name: value for name, value in os.environ.items() if name not in waiting}
    environment = {**rest, "OMP_DISPLAY_ENV": "VERBOSE", **own}
    command = [sys.executable, "-c", LIBGOMP_SPINS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    libgomp, left = done.stdout.split()
    if libgomp != "True":
        pytest.skip("another compiler, or another library of C")
    assert left == str(compilers.SPINS in own)  # other processes do not inherit ours
    assert (f"GOMP_SPINCOUNT = '{spins}'" in done.stderr) is (spins is not None)
