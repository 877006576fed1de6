"""Which tests cover a module? `./run test --of minipaddle/engine/passes/nest.py` runs them.

The answers are rows of tests/data/tests_of_modules.json, made from the lines that tests run:

    python -m tests.coverage_table          run the suite and write all rows again (15 minutes)
    python -m tests.coverage_table tidy     mend the rows of files that came, went or moved

A row names the few test files that run most of a module's lines which few other test files run.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests/data/tests_of_modules.json"
ANYTHING = "tests/house/test_import.py"
"""What covers a module of which nothing runs but its import."""
MOST = 3
"""Files in a row."""
CONTEXT = "MINIPADDLE_TEST_FILE"
"""Is set while the table is made: to the file of the test that runs."""

Lines = dict[str, set[int]]
"""For each test file the lines of a module that it runs."""


# ---- looking up ------------------------------------------------------------------------------


def load() -> dict[str, list[str]]:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def modules() -> list[str]:
    """Every file of the package, as rows name them: `passes/nest.py`."""
    package = ROOT / "minipaddle"
    return sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))


def key_of(module: str, table: Iterable[str], existing: Iterable[str]) -> str | None:
    """The row of a module: its own, or that of a module which is gone and had its name."""
    keys, existing = set(table), set(existing)
    if module in keys:
        return module
    least = 2 if module.endswith("__init__.py") else 1
    shared = {key: common_suffix(key, module) for key in keys - existing}
    best = max(shared.values(), default=0)
    found = [key for key, length in shared.items() if length == best >= least]
    return found[0] if len(found) == 1 else None


def common_suffix(a: str, b: str) -> int:
    """The number of last parts that two paths have in common."""
    same = [x == y for x, y in zip(reversed(a.split("/")), reversed(b.split("/")))]
    return [*same, False].index(False)


def tests_of(path: str) -> list[str]:
    """The test files of a module; a ValueError if there is no such module."""
    module = Path(os.path.abspath(path)).as_posix().rpartition("/minipaddle/")[2]
    existing, table = modules(), load()
    if module not in existing:
        near = [m for m in existing if m.rpartition("/")[2] == module.rpartition("/")[2]]
        hint = f"; there is minipaddle/{', minipaddle/'.join(near)}" if near else ""
        raise ValueError(f"--of {path}: minipaddle has no such module{hint}")
    key = key_of(module, table, existing)
    return table[key] if key else guess(module, table)


# ---- making rows -----------------------------------------------------------------------------


def choose(module: str, covered: Lines) -> list[str]:
    """The files that run most of the lines which few others run; a file that adds less than a
    twentieth of all lines is left out.
    """
    count = Counter(line for lines in covered.values() for line in lines)
    left, chosen = set(count), []

    def gain(file: str) -> float:
        """A line that n files run counts 1/n."""
        return kinship(module, file) * sum(1 / count[line] for line in covered[file] & left)

    while len(chosen) < MOST and left:
        best = max(sorted(covered), key=gain)
        if chosen and len(covered[best] & left) < 0.05 * len(count):
            break
        chosen.append(best)
        left -= covered[best]
    return chosen


def kinship(module: str, file: str) -> float:
    """More than 1 for a test file that has the name of the module or of one of its folders; less
    for files about everything.
    """
    *folders, name = module.split("/")
    folder = file.split("/")[1]
    factor = 0.5 if folder in ("benchmarks", "docs", "house") else 1.0
    factor *= 2.0 if file.endswith(f"/test_{name}") else 1.0
    return factor * (1.5 if folder in folders else 1.0)


def guess(module: str, table: dict[str, list[str]]) -> list[str]:
    """Without measured lines: the tests of this name, else those that import the module, else what
    covers most of its neighbours in their folder.
    """
    stem = module.removesuffix("/__init__.py").removesuffix(".py")
    name, folder = stem.rpartition("/")[2], stem.split("/")[0]
    named = [f for f in imports() if f.endswith(f"/test_{name}.py")]
    dotted = f"minipaddle.{stem.replace('/', '.')}"
    importing = [f for f, found in imports().items() if dotted in found]
    for files in (named, importing):
        if files:
            return sorted(files, key=lambda f: (f"/{folder}/" not in f, f))[:MOST]
    home = module.rpartition("/")[0]
    nearby = [files for other, files in table.items() if other.rpartition("/")[0] == home]
    counts = Counter(file for files in nearby for file in files if home)
    return [max(sorted(counts), key=counts.get)] if counts else [ANYTHING]


@cache
def imports() -> dict[str, set[str]]:
    """For each test file the modules that it imports."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        names = found[path.relative_to(ROOT).as_posix()] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    return found


def tidied(table: dict[str, list[str]]) -> dict[str, list[str]]:
    """A row for every module: new paths of files that moved, and guesses for new modules."""
    existing, files = modules(), list(imports())
    found = {}
    for module in existing:
        key = key_of(module, table, existing)
        row = [key_of(f, files, table.get(key, [])) for f in table.get(key, [])]
        found[module] = [f for f in dict.fromkeys(row) if f] or guess(module, table)
    return found


def write(table: dict[str, list[str]]) -> None:
    lines = [f"{json.dumps(module)}: {json.dumps(table[module])}" for module in sorted(table)]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


# ---- measuring -------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item) -> Iterator[None]:
    """As a plugin of pytest: lines are counted for the file of the test that runs."""
    from coverage import Coverage

    file = item.path.relative_to(ROOT).as_posix()
    measuring = Coverage.current()
    if os.environ.get(CONTEXT) != file and measuring is not None:
        os.environ[CONTEXT] = file
        measuring.switch_context(file)
    return (yield)


def measure(args: list[str], folder: str) -> dict[str, Lines]:
    """Run tests; for each module the lines that each test file runs."""
    file = Path(folder) / "coverage"
    command = [sys.executable, "-m", "pytest", "-p", "tests.coverage_table", "--cov"]
    options = ["--cov-report=", "--cov-fail-under=0", "-n", "auto", "--dist", "loadfile"]
    environment = {**os.environ, "COVERAGE_FILE": str(file), "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, *options, *args], cwd=ROOT, env=environment, check=False)
    return lines_of(file)


def lines_of(file: Path) -> dict[str, Lines]:
    """What a file of coverage's says about each module."""
    from coverage import CoverageData

    data = CoverageData(str(file))
    data.read()
    found: dict[str, Lines] = {}
    for path in data.measured_files():
        covered = found[Path(path).as_posix().rpartition("/minipaddle/")[2]] = {}
        bodies = lines_of_functions(Path(path).read_text(encoding="utf-8"))
        for line, contexts in data.contexts_by_lineno(path).items():
            for context in contexts if line in bodies else ():
                if re.fullmatch(r"tests/.*\.py", context):
                    covered.setdefault(context, set()).add(line)
    return found


def lines_of_functions(source: str) -> set[int]:
    """The lines inside of functions; the others run when a module is imported, by anybody."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, functions):
            body = node.body if isinstance(node.body, list) else [node.body]
            found |= set(range(body[0].lineno, body[-1].end_lineno + 1))
    return found


def main(args: list[str]) -> None:
    if args == ["tidy"]:
        return write(tidied(load()))
    with tempfile.TemporaryDirectory() as folder:
        found = measure(args, folder)
    write(tidied({module: choose(module, lines) for module, lines in found.items() if lines}))


if __name__ == "__main__":
    main(sys.argv[1:])
