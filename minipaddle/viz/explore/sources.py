"""The user's functions that records come from, and the expressions in them.

A record knows (code object, offset of an instruction), and Python knows the first and last column
of the expression behind it: `self.conv1(x)` inside `F.relu(self.bn(self.conv1(x)))` is found alone.
"""

import ast
import linecache
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ...engine.core.errors import line_of
from ...engine.jit.source import Definition, parse_file
from ...engine.jit.transpile import passes
from ...engine.jit.walking import copy_tree

WHOLE = 200
"""The most lines of a module that are shown whole for what stands outside of functions."""


class FunctionLines(NamedTuple):
    """A definition in a file: its qualified name, its lines from decorators to end."""

    name: str
    first: int
    last: int
    line: int  # of its first decorator or `def`, as code objects have it


class Sources:
    """Numbers for functions (`rows`) and for expressions in them (`spans`), as they are met."""

    def __init__(self):
        self.rows: list[dict] = []
        self.numbers: dict[tuple, int] = {}
        self.spans: dict[tuple, int] = {}

    def number_span(self, where) -> int:
        """The number of the expression behind a record's `where`; -1 if nobody knows it."""
        if where is None:
            return -1
        if isinstance(where, str):
            return self.number_saved_line(where)
        code, offset = where[:2]
        line, last, start, end = positions(code)[offset // 2]
        if line is None or not (text := linecache.getline(code.co_filename, line)):
            return self.number_saved_line(line_of(where).rpartition("/")[2])
        source = self.number_function(code, line)
        if start is None:
            start, end = 0, len(text.rstrip())
        else:
            start = to_column(text, start)
            end = to_column(linecache.getline(code.co_filename, last), end)
        return self.spans.setdefault((source, line, start, last, end), len(self.spans))

    def number_function(self, code, line: int) -> int:
        """The number of the innermost function that holds a line."""
        around = function_at(code.co_filename, line)
        key = code.co_filename, around
        if key not in self.numbers:
            self.numbers[key] = len(self.rows)
            self.rows.append(describe(code, around))
        row = self.rows[self.numbers[key]]
        if "conv" not in row and is_converted(code):
            row |= convert(code.co_filename, around, row)
        return self.numbers[key]

    def number_saved_line(self, where: str) -> int:
        """The number of a line of which a saved program knows the place alone: it becomes a line
        that says so.
        """
        if "saved" not in self.numbers:
            self.numbers["saved"] = len(self.rows)
            row = {"name": "where it was written", "file": "", "first": 1, "lines": []}
            self.rows.append(row)
        source = self.numbers["saved"]
        lines = self.rows[source]["lines"]
        where = where.rpartition("/")[2]
        if where not in lines:
            lines.append(where)
        line = lines.index(where) + 1
        return self.spans.setdefault((source, line, 0, line, len(where)), len(self.spans))


@lru_cache(maxsize=256)
def positions(code) -> list[tuple]:
    """(line, last line, column, last column) of each instruction; columns count bytes."""
    return [*code.co_positions()]


def to_column(text: str, byte: int) -> int:
    """The column of a byte in a line."""
    return len(text.encode()[:byte].decode(errors="replace"))


def function_at(file: str, line: int) -> FunctionLines | None:
    """The innermost function that holds a line; None outside of functions."""
    around = [
        f for f in functions_of("".join(linecache.getlines(file))) if f.line <= line <= f.last
    ]
    return max(around, key=lambda f: f.first, default=None)


@lru_cache(maxsize=64)
def functions_of(text: str) -> list[FunctionLines]:
    """The functions of a file, with their classes' and outer functions' names."""
    try:
        todo, functions = [(ast.parse(text), "")], []
    except SyntaxError:  # the file has changed
        return []
    for node, outer in todo:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}".lstrip(".")
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([child.lineno, *[d.lineno for d in child.decorator_list]])
                functions.append(FunctionLines(name, child.lineno, child.end_lineno, first))
            todo.append((child, name))
    return functions


def describe(code, around: FunctionLines | None) -> dict:
    """A function's name and lines; of a module the whole text, or its beginning."""
    file = "a notebook's cell" if "ipykernel_" in code.co_filename else Path(code.co_filename).name
    lines = [line.rstrip("\n") for line in linecache.getlines(code.co_filename)]
    if around is None:
        return {"name": file, "file": "", "first": 1, "lines": lines[:WHOLE]}
    lines = lines[around.line - 1 : around.last]
    return {"name": around.name, "file": file, "first": around.line, "lines": lines}


def is_converted(code) -> bool:
    """Whether the AST converters wrote a code object: it calls their functions."""
    return "_jst" in code.co_freevars or "_jst" in code.co_names


def convert(file: str, around: FunctionLines | None, row: dict) -> dict:
    """The function as the converters leave it, and for each of its lines the user's line."""
    definitions = parse_file("".join(linecache.getlines(file))).get(around.line if around else 0)
    if not definitions:
        return {}
    node, owner = definitions[0]
    *_, (_, tree) = passes(None, Definition(copy_tree(node), file, owner))
    text = ast.unparse(tree)
    pairs = zip(ast.walk(ast.parse(text)), ast.walk(tree))
    lines = [
        (new.lineno, getattr(old, "lineno", 0)) for new, old in pairs if hasattr(new, "lineno")
    ]
    back: dict[int, int] = {}
    for new, old in sorted(lines):
        if row["first"] <= old < row["first"] + len(row["lines"]):
            back.setdefault(new, old)
    return {"conv": text.split("\n"), "back": back}
