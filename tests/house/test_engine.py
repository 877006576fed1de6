"""The engine is small and closed, and its parts can be read without the rest."""

import ast
import io
import re
import sys
import tokenize

import pytest

from .test_layers import PACKAGE, imports, sources

ENGINE = PACKAGE / "engine"
MOST = 13_500
"""Lines of code the engine may have: 13,000 are the aim, 15,000 the end."""


DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def lines_of_code(text: str) -> int:
    """The lines that hold code: blank lines, comments and docstrings apart."""
    docs = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docs.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*empty, tokenize.ENDMARKER):
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docs)


def test_the_engine_fits(capsys):
    total = sum(lines_of_code(text) for _, text in sources(ENGINE))
    with capsys.disabled():
        print(f"\nminipaddle/engine: {total:,} lines of code", end=" ")
    assert total <= MOST


def test_lines_of_code():
    text = (
        '"""Doc."""\n\nx = 1  # one\n# none\n\n\ndef f():\n    "Doc."\n    return """a\n    b"""\n'
    )
    assert lines_of_code(text) == 4


ALLOWED = {*sys.stdlib_module_names, "numpy", "ml_dtypes"}
"""What the engine imports from outside; the last one only where it is installed."""


def test_the_engine_is_closed():
    """It imports itself, NumPy and the standard library."""
    outside = []
    for name, text in sources(ENGINE):
        for line, target in imports(f"engine/{name}", text):
            first, *rest = target.split(".")
            if first not in ALLOWED and (first, rest[:1]) != ("minipaddle", ["engine"]):
                outside.append(f"{name}:{line} imports {target}")
    assert not outside, "\n".join(outside)


def closure(module: str) -> dict[str, tuple[str, str]]:
    """The files, as (name, text), that one has to read with a file of the engine: what it imports
    at its top, and what these import.
    """
    files = {
        f"engine.{n[:-3].replace('/', '.')}".removesuffix(".__init__"): (n, t)
        for n, t in sources(ENGINE)
    }
    found, waiting = {}, [f"engine.{module}"]
    while waiting:
        each = waiting.pop()
        if each in found or each not in files:
            continue
        name, text = found[each] = files[each]
        for _, target in imports(f"engine/{name}", at_top(text)):
            target = target.removeprefix("minipaddle.")
            waiting.append(target if target in files else target.rpartition(".")[0])
    return found


def at_top(text: str) -> str:
    """A file's own imports: those in functions do not count."""
    tree = ast.parse(text)
    tree.body = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return ast.unparse(tree)


@pytest.mark.parametrize(
    ("module", "most", "most_lines"),
    [
        ("core.grad", 10, 1_100),
        ("passes.fusion", 22, 2_500),
        ("passes.memory", 18, 2_000),
        ("jit.transpile", 19, 1_400),
        ("passes.cse", 17, 1_700),
    ],
)
def test_one_idea_takes_few_files(module, most, most_lines):
    files = closure(module)
    assert f"engine.{module}" in files
    assert len(files) <= most, sorted(files)
    assert sum(lines_of_code(text) for _, text in files.values()) <= most_lines


def test_the_readme_leads_through_every_file():
    """Each file stands there once, on the day of its chapter; the days say about how many lines."""
    text = (ENGINE / "README.md").read_text(encoding="utf-8")
    files = {name: lines_of_code(source) for name, source in sources(ENGINE)}
    found = []
    for day in text.split("\n## Day ")[1:]:
        named = re.findall(r"^- `([\w/]+\.py)` \S", day, re.MULTILINE)
        total = sum(files.get(name, 0) for name in named)
        title = day.partition("\n")[0]
        stated = int(title.split(" · ")[-1].removesuffix(" lines").replace(",", ""))
        assert abs(total - stated) < 100, f"Day {title}: now {total:,} lines"
        found += named
    assert sorted(found) == sorted(files)
