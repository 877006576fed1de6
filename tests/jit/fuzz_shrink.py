"""A failing program made small: statements deleted, blocks unwrapped, expressions replaced by what
they are made of, for as long as it fails in the same way.
"""

from __future__ import annotations

import ast
import copy
import linecache
import time
import types
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from tests.jit.fuzz_programs import HEADER

BLOCKS = ("body", "orelse", "finalbody")
SIMPLE = ("x", "s", "1", "0.5", "True", "False", "x.sum() > 0", "p", "n", "flag")
numbers = count()


def shrink(text: str, fails: Callable[[str], bool], limit: int = 400, seconds: int = 120) -> str:
    """The source of a function, smaller; `fails` says whether a source still fails.

    So many sources are tried at most, for so long.
    """
    end = time.monotonic() + seconds
    tree, tried = ast.parse(text).body[0], {text}
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in candidates(tree):
            source = ast.unparse(ast.fix_missing_locations(smaller))
            if source in tried or len(source) >= len(ast.unparse(tree)):
                continue
            tried.add(source)
            limit -= 1
            if limit <= 0 or time.monotonic() > end:
                return ast.unparse(tree)
            if fails(source):
                tree, shrunk = smaller, True
                break
    return ast.unparse(tree)


def candidates(tree: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Smaller programs, the boldest cuts first."""
    spots = [(k, name) for k, node in enumerate(ast.walk(tree)) for name in BLOCKS
             if isinstance(getattr(node, name, None), list)]  # fmt: skip
    for size in (8, 4, 2, 1):
        for k, name in spots:
            for start in range(0, len(block_of(tree, k, name)), size):
                yield from without(tree, k, name, start, size)
    for k, name in spots:
        for start, statement in enumerate(block_of(tree, k, name)):
            for inner in inside(statement):
                new = copy.deepcopy(tree)
                block_of(new, k, name)[start : start + 1] = copy.deepcopy(inner)
                yield new
    yield from simpler_expressions(tree)


def block_of(tree, k: int, name: str) -> list:
    return getattr(list(ast.walk(tree))[k], name)


def without(tree, k: int, name: str, start: int, size: int):
    new = copy.deepcopy(tree)
    block = block_of(new, k, name)
    if size > 1 and len(block) <= size // 2:
        return
    if "return" in ast.unparse(block[start]) and new.body is block and start == len(block) - 1:
        return
    del block[start : start + size]
    if not block and name == "body":
        block.append(ast.Pass())
    yield new


def inside(statement) -> Iterator[list]:
    """The blocks of a statement, each of which may stand in its place."""
    if isinstance(statement, ast.FunctionDef):
        return
    for name in BLOCKS:
        block = getattr(statement, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    for case in getattr(statement, "cases", []):
        yield case.body


def simpler_expressions(tree) -> Iterator[ast.FunctionDef]:
    """Programs in which one expression is replaced by a part of it, or by something plain."""
    nodes = list(ast.walk(tree))
    for k, node in enumerate(nodes):
        for field, value in ast.iter_fields(node):
            if field in ("keys", "pattern", "func"):
                continue
            places = enumerate(value) if isinstance(value, list) else [(None, value)]
            for j, each in places:
                if isinstance(each, ast.expr) and not isinstance(
                    getattr(each, "ctx", None), ast.Store
                ):
                    for other in replacements(each):
                        new = copy.deepcopy(tree)
                        put(list(ast.walk(new))[k], field, j, other)
                        yield new


def replacements(node: ast.expr) -> Iterator[ast.expr]:
    """Expressions that may stand for this one."""
    length = len(ast.unparse(node))
    for part in ast.walk(node):
        small = isinstance(part, ast.expr) and part is not node and not calls(node, part)
        if small and isinstance(getattr(part, "ctx", ast.Load()), ast.Load):
            yield copy.deepcopy(part)
    for text in SIMPLE:
        if len(text) < length:
            yield ast.parse(text, mode="eval").body


def calls(node, part) -> bool:
    """Is it what a call in the node calls? A method alone is no result."""
    return any(isinstance(n, ast.Call) and n.func is part for n in ast.walk(node))


def put(node, field: str, j: int | None, value) -> None:
    if j is None:
        setattr(node, field, value)
    else:
        getattr(node, field)[j] = value


def function_of(text: str, folder: Path, name: str) -> types.FunctionType:
    """The function of a source, in a file of its own."""
    path = folder / f"shrunk_{next(numbers)}.py"
    path.write_text(f"{HEADER}\n\n{text}\n")
    linecache.checkcache(str(path))
    space: dict = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space[name]
