"""The table of which tests cover a module: whole, and made as it says."""

import subprocess
import sys

import pytest

from tests import coverage_table as table


def test_every_module_has_a_row_and_its_tests_exist():
    """After files came, went or moved: `python -m tests.coverage_table tidy`."""
    rows, existing = table.load(), table.modules()
    missing = [m for m in existing if table.key_of(m, rows, existing) is None]
    gone = {f for files in rows.values() for f in files if not (table.ROOT / f).is_file()}
    assert (missing, gone) == ([], set()), "mend it: python -m tests.coverage_table tidy"
    assert list(rows) == sorted(rows)
    assert all(1 <= len(files) <= table.MOST for files in rows.values())


def test_the_tests_of_a_module():
    path = "minipaddle/io/worker.py"
    assert "tests/io/test_worker.py" in table.tests_of(path)
    assert table.tests_of(str(table.ROOT / path)) == table.tests_of(path)
    with pytest.raises(ValueError, match=r"no such module; there is minipaddle/io/worker\.py"):
        table.tests_of("minipaddle/worker.py")


def test_pytest_runs_them():
    command = [sys.executable, "-m", "pytest", "-n0", "--no-cov", "--collect-only", "-q"]
    of = ["--of=minipaddle/io/worker.py", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *of], cwd=table.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert found == set(table.tests_of("minipaddle/io/worker.py"))


def test_lines_that_few_others_run_count_most():
    covered = {
        "tests/a/test_all.py": {1, 2, 3, 4, 5, 6},
        "tests/a/test_some.py": {1, 2, 3},
        "tests/a/test_others.py": {1, 7, 8, 9, 10, 11, 12},
        "tests/a/test_none.py": set(),
    }
    assert table.choose("x/y.py", covered) == ["tests/a/test_others.py", "tests/a/test_all.py"]
    same = {"tests/a/test_all.py": {1, 2, 3}, "tests/a/test_some.py": {1, 2, 3}}
    assert table.choose("x/some.py", same) == ["tests/a/test_some.py"]
    shared = {"tests/house/test_b.py": {1}, "tests/c/test_b.py": {1}, "tests/x/test_b.py": {1}}
    assert table.choose("x/y.py", shared) == ["tests/x/test_b.py"]


def test_a_row_follows_its_module():
    rows = ["passes/nest.py", "a/__init__.py", "b/__init__.py", "io/worker.py", "old/worker.py"]
    assert table.key_of("io/worker.py", rows, ["io/worker.py"]) == "io/worker.py"
    assert table.key_of("engine/passes/nest.py", rows, []) == "passes/nest.py"
    assert table.key_of("engine/a/__init__.py", rows, []) == "a/__init__.py"
    assert table.key_of("c/__init__.py", rows, []) is None
    assert table.key_of("new/worker.py", rows, ["io/worker.py"]) == "old/worker.py"
    assert table.key_of("new/worker.py", rows, []) is None  # two could have been it


def test_lines_of_imports_do_not_count():
    source = "import a\n\n@a\ndef f(x,\n      y):\n    x = 1\n    return [\n        x]\n\nb = 2\n"
    assert table.lines_of_functions(source) == {6, 7, 8}


def test_new_modules_are_guessed(monkeypatch):
    imported = {
        "tests/io/test_worker.py": {"minipaddle.io.worker"},
        "tests/io/test_loader.py": {"minipaddle.io.worker"},
        "tests/nn/test_worker.py": set(),
    }
    monkeypatch.setattr(table, "imports", lambda: imported)
    assert table.guess("io/worker.py", {}) == ["tests/io/test_worker.py", "tests/nn/test_worker.py"]
    assert table.guess("io/__init__.py", {}) == [table.ANYTHING]
    rows = {"io/a.py": ["tests/io/test_a.py", "tests/x.py"], "io/b.py": ["tests/x.py"]}
    assert table.guess("io/__init__.py", rows | {"nn/a.py": ["tests/y.py"]}) == ["tests/x.py"]
    imported["tests/io/test_loader.py"].add("minipaddle.io.batch")
    assert table.guess("io/batch.py", {}) == ["tests/io/test_loader.py"]
    monkeypatch.setattr(table, "modules", lambda: ["new/worker.py", "io/batch.py"])
    moved = {"old/worker.py": ["tests/old/test_loader.py"]}
    expected = {"io/batch.py": ["tests/io/test_loader.py"]}
    assert table.tidied(moved) == expected | {"new/worker.py": ["tests/io/test_loader.py"]}
