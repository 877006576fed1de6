"""Which tests are run, and what is installed for them."""

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests import selection

SUITE = """
import pytest

@pytest.mark.parametrize("k", range(2))
def test_plain(k):
    pass

@pytest.mark.sweep
@pytest.mark.parametrize("k", range(6))
def test_long(k):
    assert __import__("sys").gettrace() is None

@pytest.mark.sweep(one_in=3)
def test_alone():
    pass

@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("k", range(6))
def test_sampled(k):
    pass
"""


@pytest.fixture
def suite(tmp_path):
    """Run pytest on tests in a folder that has the suite's own `conftest.py`."""
    (tmp_path / "conftest.py").write_bytes((selection.ROOT / "tests/conftest.py").read_bytes())
    (tmp_path / "test_it.py").write_text(SUITE)
    markers = "[pytest]\nmarkers = sweep(one_in): long\naddopts = -p no:cacheprovider -q\n"
    (tmp_path / "pytest.ini").write_text(markers)

    def run(*words) -> str:
        command = [sys.executable, "-m", "pytest", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_brief_run_has_samples_of_sweeps(suite):
    ids = [line for line in suite("--brief", "--collect-only").splitlines() if "::" in line]
    counts = Counter(re.split(r"::|\[", line)[1] for line in ids)
    assert counts == {"test_plain": 2, "test_long": 1, "test_alone": 1, "test_sampled": 2}
    first, second = (int(line[-2]) for line in ids if "sampled" in line)
    assert second == first + 3
    assert "15 passed" in suite()


def test_sweeps_run_without_the_tracer(suite):
    """(It would slow them down by a factor of two to four.)"""
    assert "15 passed" in suite("--cov=test_it", "--cov-report=")


def test_every_module_has_tests():
    for path in (selection.ROOT / "minipaddle/engine/passes").rglob("*.py"):
        files = selection.tests_of(str(path))
        assert 1 <= len(files) <= selection.MOST
        assert all((selection.ROOT / file).is_file() for file in files)


@pytest.mark.parametrize(("module", "test"), [
    ("io/worker.py", "io/test_worker.py"),  # has its name
    ("engine/passes/nest.py", "passes/test_fusion_groups.py"),  # imports from it
    ("ops/gamma.py", "ops/test_operators.py"),  # has cases of its operators
    ("nn/layer/conv.py", "nn/test_conv.py"),
])  # fmt: skip
def test_the_tests_of_a_module(module, test):
    assert f"tests/{test}" in selection.tests_of(str(selection.ROOT / "minipaddle" / module))


def test_a_module_that_there_is_not():
    with pytest.raises(ValueError, match=r"no such module; there is minipaddle/io/worker\.py"):
        selection.tests_of("minipaddle/worker.py")
    with pytest.raises(ValueError, match=r"no such module$"):
        selection.tests_of("")


def test_names_that_few_others_have_count_most():
    covered = {
        "tests/a/test_all.py": {"a", "b", "c"},
        "tests/a/test_one.py": {"c"},
        "tests/a/test_own.py": {"own"},
        "tests/a/test_none.py": set(),
    }
    best = ["tests/a/test_all.py", "tests/a/test_own.py", "tests/a/test_one.py"]
    assert selection.choose("x/y.py", covered) == best
    assert selection.choose("x/one.py", covered)[1:] == ["tests/a/test_one.py", best[1]]
    assert selection.choose("x/y.py", {file: set() for file in covered}) == [selection.ANYTHING]


@pytest.mark.parametrize(("words", "expected"), [
    ([], ["dp_accounting", "onnxruntime", "torch"]),
    (["-k", "exercises"], ["dp_accounting", "onnxruntime", "torch"]),  # which is a folder too
    (["tests/core", "-x"], []),
    (["tests/ops/test_operators.py::test_value[add]"], ["torch"]),
    (["tests/passes/test_operators.py"], ["torch"]),  # through what it imports
    (["tests/distributed/test_parameter_servers.py"], ["torch"]),  # by `importorskip`
    (["tests/onnx/test_models.py"], ["onnxruntime"]),
])  # fmt: skip
def test_the_peers_of_tests(words, expected):
    assert selection.peers_of(words) == expected


def test_what_a_file_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "ROOT", tmp_path)
    folder = tmp_path / "tests/a"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text("def f():\n    from .b import c\n")
    (folder / "b.py").write_text("from importlib import *\nx.import_module(f'tests.a.{y}')\n")
    (folder / "d.py").write_text("import torch.nn as nn\n")
    assert selection.peers_of(["tests/a/test_it.py"]) == ["torch"]
