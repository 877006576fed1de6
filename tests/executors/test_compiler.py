"""Which C compiler there is, and what people are told of it."""

import shutil
import stat

import pytest

import minipaddle as paddle
from minipaddle import utils
from minipaddle.executors import compiler as c


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
    assert c.links(found.command)


def test_what_makes_a_file_that_can_not_be_loaded_has_no_library(chosen):
    found = chosen('[ "$1" = --version ] && echo "clang version 99" || eval "echo x > \\${6}"')
    assert found.openmp == c.VECTORS


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
def test_what_is_not_declared_does_not_compile(tmp_path):
    with pytest.raises(RuntimeError, match="lgammaf"):
        c.build(
            c.compiler(), ["float f(float x)\n{\n    return lgammaf(x);\n}\n"], tmp_path / "f.so"
        )


@pytest.mark.skipif(c.compiler() is None, reason="no C compiler")
def test_a_file_without_parallel_loops_needs_no_threads(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(c, "called", lambda cc, words: told.append(cc.openmp))
    monkeypatch.setattr(c.os, "replace", lambda made, path: None)
    c.build(c.compiler(), ["#pragma omp simd"], tmp_path / "f.so")
    c.build(c.compiler(), ["", "#pragma omp parallel for"], tmp_path / "f.so")
    assert told == [c.VECTORS, *[c.compiler().openmp] * 3]


def test_none_is_none(monkeypatch):
    monkeypatch.setenv("MINIPADDLE_CC", "none")
    assert c.compiler.__wrapped__() is None
    monkeypatch.setenv("MINIPADDLE_CC", "there-is-no-such-compiler")
    assert c.compiler.__wrapped__() is None


def test_run_check_says_what_there_is(capsys):
    utils.run_check()
    said = capsys.readouterr().out
    assert said.startswith("MiniPaddle works eagerly and as a program on the CPU.")
    assert said.endswith("MiniPaddle is installed successfully!\n")
    assert str(c.compiler() or c.INSTALL) in said


def test_run_check_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(utils, "compiler", lambda: None)
    monkeypatch.setattr("minipaddle.executors.choice.compiler", lambda: None)
    utils.run_check()
    said = capsys.readouterr().out
    assert "There is no C compiler: NumPy computes, large groups in blocks." in said
    assert "pip install 'minipaddle[zig]'" in said


def test_run_check_finds_what_is_wrong():
    x = paddle.ones([2])
    with pytest.raises(RuntimeError, match="compiled, MiniPaddle computes what is 1 away"):
        utils.agree(x + 1, x, "compiled")
