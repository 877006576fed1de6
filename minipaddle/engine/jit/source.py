"""From a function to the syntax tree of its definition in its file.

The whole file is parsed, so every node keeps its line and column, the class a method belongs to is
known, and the columns of their code tell lambdas apart that share a line.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType, FunctionType
from typing import NamedTuple

from ..core.errors import teach
from .walking import FUNCTIONS, copy_tree, own


class SourceMissing(OSError):
    """The source of a function cannot be found, or has changed since the import."""


class Definition(NamedTuple):
    """A definition (a copy, free to be changed), and its position."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    filename: str
    owner: str | None  # the class around it, whose name private attributes are mangled with


def source_of(function: FunctionType) -> Definition:
    """The definition of a function; raises SourceMissing that says what to do."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise SourceMissing(missing(code, "its source cannot be read"))
    try:
        definitions = parse_file("".join(lines))
    except SyntaxError:
        raise SourceMissing(missing(code, "the file has changed since it was imported")) from None
    fits = [pair for pair in definitions.get(code.co_firstlineno, ()) if fit(pair[0], code)]
    if len(fits) > 1:  # lambdas on one line
        fits = [pair for pair in fits if holds(pair[0], code)]
    if not fits:
        raise SourceMissing(missing(code, "the file has changed since it was imported"))
    node, owner = fits[0]
    return Definition(copy_tree(node), code.co_filename, owner)


def missing(code: CodeType, why: str) -> str:
    return teach(
        f"{code.co_name} cannot be converted: {why} ({code.co_filename})",
        expected="a function defined in a .py file or in a notebook's cell",
        hint="put it into a file of its own; what is typed at a prompt, made by exec, or shipped "
        "as .pyc alone has no source",
    )


@lru_cache(maxsize=64)
def parse_file(text: str) -> dict[int, list]:
    """The definitions of a file by first line, each with the class around it."""
    definitions: dict[int, list] = {}
    scopes = [(ast.parse(text), None)]
    for scope, owner in scopes:
        for node in own(ast.iter_child_nodes(scope), (ast.ClassDef,)):
            if isinstance(node, ast.ClassDef):
                scopes.append((node, node.name))
            elif isinstance(node, FUNCTIONS):
                heads = [node, *getattr(node, "decorator_list", [])]
                first = min([head.lineno for head in heads])
                definitions.setdefault(first, []).append((node, owner))
    return definitions


def fit(node, code: CodeType) -> bool:
    """Whether a definition has the name and the parameters of the code."""
    a = node.args
    names = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])]
    count = len(names)
    name = getattr(node, "name", "<lambda>")
    parameters = code.co_varnames[:count]
    return name == code.co_name and all(
        ours.endswith(n.arg) for n, ours in zip(names, parameters, strict=False)
    ) and len(parameters) == count == arguments(code)  # fmt: skip


def arguments(code: CodeType) -> int:
    stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_argcount + code.co_kwonlyargcount + stars


def holds(node, code: CodeType) -> bool:
    """Whether all instructions of the code are inside the definition."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    spots = [p for p in code.co_positions() if None not in p and p[3] > 0]
    inside = all(start <= (p[0], p[2]) and (p[1], p[3]) <= end for p in spots)
    body = node.body
    if not spots:  # Python 3.12.1 has no places for `lambda: 1`
        return isinstance(body, ast.Constant) and (type(body.value), body.value) in [
            (type(c), c) for c in code.co_consts
        ]
    widest = max(((p[1], p[3]) for p in spots), default=None)
    return inside and (not isinstance(body, ast.AST) or widest == (
        body.end_lineno, body.end_col_offset
    ))  # fmt: skip
