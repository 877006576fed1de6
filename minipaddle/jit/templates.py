"""Generated code is written as code: a small template with holes, parsed and filled.

A name in the template that is given as a hole is replaced: by another name (a string), by an
expression, or, where it stands alone on a line, by statements (a list). What is new takes the place
of the node it stands for, so that a traceback shows the user's line.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from functools import cache

PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def fill(template: str, at: ast.AST, **holes) -> list[ast.stmt]:
    """The statements of a template, standing where `at` stands."""
    tree = copy.deepcopy(parsed(textwrap.dedent(template)))
    for node in ast.walk(tree):
        stand(node, at)
    return Fill(holes).visit(tree).body


def fill_expr(template: str, at: ast.AST, **holes) -> ast.expr:
    """The one expression of a template."""
    return fill(template, at, **holes)[0].value


def stand(node: ast.AST, at: ast.AST) -> ast.AST:
    """Give a node the place of `at`: of its head, if it is a statement with a body."""
    head = next((getattr(at, f) for f in ("test", "iter", "subject") if hasattr(at, f)), at)
    if "lineno" in node._attributes:
        for part in PLACE:
            setattr(node, part, getattr(head, part))
    return node


def constant(value, at: ast.AST) -> ast.expr:
    return stand(ast.Constant(value), at)


def load(name: str, at: ast.AST) -> ast.expr:
    return stand(ast.Name(name, ast.Load()), at)


def store(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    """`name = value`."""
    return stand(ast.Assign([stand(ast.Name(name, ast.Store()), at)], value), at)


def runtime(name: str, at: ast.AST, *args: ast.expr) -> ast.expr:
    """`_jst.name(args...)`."""
    function = stand(ast.Attribute(load("_jst", at), name, ast.Load()), at)
    return stand(ast.Call(function, list(args), []), at)


def lazily(value: ast.expr) -> ast.expr:
    """`lambda: value`."""
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    made = stand(ast.Lambda(empty, value), value)
    made.lazy = True  # not the user's
    return made


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


class Fill(ast.NodeTransformer):
    def __init__(self, holes: dict):
        self.holes = holes

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Name) and isinstance(self.holes.get(node.value.id), list):
            return self.holes[node.value.id]
        return self.generic_visit(node)

    def visit_Name(self, node):
        hole = self.holes.get(node.id)
        if isinstance(hole, str):
            node.id = hole
            return node
        return node if hole is None else hole
