"""Which tests are those of a module, and what do tests need? The answers are read off the sources.

`./run test --of minipaddle/engine/passes/nest.py` runs the test files that have most of the names
that this module defines and few other test files have. `run` itself asks which peers to install:
this file needs nothing but Python.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = "dp_accounting", "onnxruntime", "torch"
"""What some tests compare with."""
ANYTHING = "tests/house/test_import.py"
"""What covers a module of which no test has a name: its import."""
MOST = 3
"""Test files of a module."""


# ---- the tests of a module -------------------------------------------------------------------


def tests_of(path: str) -> list[str]:
    """The test files of a module; a ValueError if there is no such module."""
    _, inside, module = Path(os.path.abspath(path)).as_posix().rpartition("/minipaddle/")
    file = ROOT / "minipaddle" / module
    if not (inside and file.is_file()):
        near = sorted((ROOT / "minipaddle").rglob(file.name)) if inside else []
        there = ", ".join(found.relative_to(ROOT).as_posix() for found in near)
        hint = f"; there is {there}" if near else ""
        raise ValueError(f"--of {path}: minipaddle has no such module{hint}")
    names = names_of(module, ast.parse(file.read_text(encoding="utf-8")))
    return choose(module, {test: names & found for test, found in words().items()})


def names_of(module: str, tree: ast.Module) -> set[str]:
    """The module's own dotted name and what it defines."""
    dotted = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    own = f"minipaddle.{dotted}", f"test_{dotted.rpartition('.')[2]}"
    return {*own, *(name for name in found if not name.startswith("__"))}


@cache
def words() -> dict[str, set[str]]:
    """For each test file what it imports, and the words in it and in what of that is beside it."""
    found = {}
    for test in test_files(ROOT / "tests"):
        files = [f for f in reach(test)[0] if f.parent == test.parent and not is_test(f)]
        own = {test.stem, *imports(test)}
        found[test.relative_to(ROOT).as_posix()] = own.union(*map(words_in, [test, *files]))
    return found


def words_in(path: Path) -> list[str]:
    return re.findall(r"\w+", path.read_text(encoding="utf-8"))


def choose(module: str, covered: dict[str, set[str]]) -> list[str]:
    """The files that have most of the names which few others have; none that has less than a tenth
    of what the first one has.
    """
    count = Counter(name for names in covered.values() for name in names)

    def score(file: str) -> float:
        """A name that n files have counts 1/n."""
        return kinship(module, file) * sum(1 / count[name] for name in covered[file])

    best = sorted(sorted(covered), key=score, reverse=True)[:MOST]
    return [file for file in best if score(file) > score(best[0]) / 10] or [ANYTHING]


def kinship(module: str, file: str) -> float:
    """More than 1 for a test file that has the name of the module or of one of its folders; less
    for files about everything.
    """
    *folders, name = module.split("/")
    folder = file.split("/")[1]
    factor = 0.5 if folder in ("benchmarks", "docs", "house") else 1.0
    factor *= 2.0 if file.endswith(f"/test_{name}") else 1.0
    return factor * (4.0 if folder in folders else 1.0)


# ---- what tests need -------------------------------------------------------------------------


def peers_of(words: list[str]) -> list[str]:
    """The peers that the tests named in a command line import, themselves or through others."""
    named = [ROOT / word.partition("::")[0] for word in words]
    found = [file for path in named for file in test_files(path)]
    reached = {name.partition(".")[0] for file in found for name in reach(file)[1]}
    return [peer for peer in PEERS if peer in reached or not found]


def test_files(path: Path) -> list[Path]:
    """A test file, or those in a folder."""
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path] * is_test(path)


def is_test(path: Path) -> bool:
    return path.is_file() and path.match("test_*.py")


@cache
def reach(file: Path) -> tuple[frozenset[Path], frozenset[str]]:
    """A file and those of the tests that it reaches by imports; and what all of them import."""
    files, names, new = set(), set(), {file}
    while new:
        files |= new
        names |= {name for path in new for name in imports(path)}
        paths = {
            ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")
        }
        new = {path for path in paths if path.is_file()} - files
    return frozenset(files), frozenset(names)


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, anywhere in it, and what it takes from them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(name for node in ast.walk(tree) for name in imported(node, path))


def imported(node: ast.AST, path: Path) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            parts = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            source = ".".join([*parts, *[node.module] * bool(node.module)])
            yield from (source, *(f"{source}.{alias.name}" for alias in node.names))
        case ast.Call(ast.Attribute(attr="importorskip"), [ast.Constant(name), *_]):
            yield name
        case ast.Call(
            ast.Attribute(attr="import_module"), [ast.JoinedStr([ast.Constant(name), *_])]
        ):
            yield from (
                f"{name}{file.stem}" for file in (ROOT / name.replace(".", "/")).glob("*.py")
            )
