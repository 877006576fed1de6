"""Every example in a docstring runs, and everything a user can reach is described."""

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import OPS

PACKAGE = pkgutil.walk_packages(paddle.__path__, "minipaddle.")
MODULES = ["minipaddle", *sorted(m.name for m in PACKAGE if "__main__" not in m.name)]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
IMPORT = ">>> import minipaddle as paddle"
SPACES = ["", "nn", "nn.functional", "nn.initializer", "optimizer", "optimizer.lr", "io", "metric"]


@pytest.fixture(autouse=True)
def keep_the_name(monkeypatch):
    """Give back Paddle's name, which `import minipaddle.as_paddle` takes."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    before = {*sys.modules}
    yield
    for name in sys.modules.keys() - before:
        if name.partition(".")[0] == "paddle":
            del sys.modules[name]


def examples_of(module) -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(module, module.__name__, module=module, globs={"paddle": paddle})
    return [test for test in found if test.examples]


def run(test: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_modules(name):
    for test in examples_of(importlib.import_module(name)):
        run(test)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", sorted(OPS))
def test_examples_of_operators(name):
    op = OPS[name]
    assert op.doc, f"{name} says nothing of itself"
    parser, place = doctest.DocTestParser(), inspect.getsourcefile(op.body)
    test = parser.get_doctest(op.doc, {"paddle": paddle}, name, place, 0)
    if test.examples:
        run(test)


def reachable():
    for space in SPACES:
        module = paddle
        for part in filter(None, space.split(".")):
            module = getattr(module, part)
        for name, value in vars(module).items():
            if not name.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value)):
                yield f"paddle.{space}.{name}".replace("..", "."), value


PUBLIC = dict(reachable())


def test_everything_public_is_described():
    assert not [name for name, value in PUBLIC.items() if not inspect.getdoc(value)]


def test_no_docstring_repeats_the_rules_of_the_package():
    """Neither the import that every example starts with nor its own name as its source."""
    root = Path(paddle.__file__).parent
    repeated = [f"{p}: imports" for p in root.rglob("*.py") if IMPORT in p.read_text("utf-8")]
    for name, value in PUBLIC.items():
        source = re.search(r"Source:\s+Paddle\s+API\s+`([\w.]+)`[.;]", inspect.getdoc(value) or "")
        if source and source[1].rpartition(".")[2] == value.__name__:
            repeated.append(f"{name}: names itself")
    assert not repeated


def test_examples_are_plenty():
    """An example for at least nine in ten public names: this is a framework to learn from."""
    documented = [name for name, value in PUBLIC.items() if ">>>" in (inspect.getdoc(value) or "")]
    missing = sorted(set(PUBLIC) - set(documented))
    assert len(documented) >= 0.9 * len(PUBLIC), f"{len(missing)} without an example: {missing}"
