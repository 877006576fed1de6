"""Tests that run as on another machine: what is set for that, and what is said if it cannot be."""

import os
import subprocess
import sys

import pytest

from minipaddle.engine.executors.compiler import compiler
from tests import processors

needs_levels = pytest.mark.skipif(
    "x86-64-v2" not in processors.processors(), reason="no compiler here knows levels of x86"
)


@pytest.fixture
def lacking(monkeypatch):
    """A machine whose processor lacks what is named, at x86-64-v4."""

    def lacks(cc, name, here="native"):
        return ["AVX512F", "AVX512VL"] if name == "x86-64-v4" else []

    monkeypatch.setattr(processors, "compiler", lambda: compiler() or "a compiler")
    monkeypatch.setattr(processors, "find_missing", lacks)
    monkeypatch.setattr(processors, "processors", processors.processors.__wrapped__)


def test_what_is_missing_is_named(lacking):
    with pytest.raises(ValueError, match="x86-64-v4 needs AVX512F, AVX512VL; this") as why:
        processors.variables("x86-64-v4")
    assert str(why.value).endswith("It can run x86-64, x86-64-v2, x86-64-v3, native.")


def test_levels_of_which_there_are_none(lacking, monkeypatch):
    with pytest.raises(ValueError, match="no 'v3'; expected: native, x86-64-v2, x86-64-v3, x86"):
        processors.variables("v3")
    monkeypatch.setattr(processors, "compiler", lambda: None)
    with pytest.raises(ValueError, match="without a C compiler nothing is compiled for x86-64-v3"):
        processors.variables("x86-64-v3")
    assert processors.processors() == []


def test_libraries_take_no_more_than_a_level_has(lacking, monkeypatch):
    monkeypatch.setattr(processors, "__cpu_dispatch__", ["X86_V3", "X86_V4", "AVX512_ICL"])
    for name in processors.settings("x86-64-v2"):
        monkeypatch.delenv(name, raising=False)
    found = processors.variables("x86-64-v3")
    assert found["MINIPADDLE_PROCESSOR"] == "x86-64-v3"
    assert found["NPY_DISABLE_CPU_FEATURES"] == "X86_V4,AVX512_ICL"
    assert found["OPENBLAS_CORETYPE"] == "Haswell"
    older = processors.variables("x86-64-v2")
    assert older["NPY_DISABLE_CPU_FEATURES"] == "X86_V3,X86_V4,AVX512_ICL"
    assert older["OPENBLAS_CORETYPE"] == "Nehalem"
    assert processors.variables("native") == {"MINIPADDLE_PROCESSOR": "native"}


def test_what_the_user_chose_for_a_library_stays(lacking, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    monkeypatch.setenv("MINIPADDLE_PROCESSOR", "x86-64-v2")  # less than what is asked for now
    found = processors.variables("x86-64-v3")
    assert (found["OPENBLAS_CORETYPE"], found["MINIPADDLE_PROCESSOR"]) == ("Zen", "x86-64-v3")


@needs_levels
def test_a_process_of_a_level_has_no_more():
    """It is asked of those who choose: NumPy, its OpenBLAS, PyTorch, and the kernels' emitters."""
    pytest.importorskip("torch")
    code = """if True:
        import torch
        from numpy._core._multiarray_umath import __cpu_features__ as has
        from minipaddle.codegen.products import blas
        from minipaddle.codegen.machine import facts
        print(has["X86_V3"], blas.core() in ("Nehalem", ""), facts().vector,
              torch.backends.cpu.get_cpu_capability())
    """
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **processors.settings("x86-64-v2")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["False", "True", "16", "DEFAULT"]
