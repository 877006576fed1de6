"""Generated code is written as code: a small template with holes, parsed and filled.

A name in the template that is given as a hole is replaced: by another name (a string), by an
expression, or, where it stands alone on a line, by statements (a list). What is new takes the place
of the node it stands for, so that a traceback shows the user's line.
"""

from __future__ import annotations

import ast
import textwrap
from functools import cache
from operator import attrgetter

from .walking import INSIDE

PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
HEADS = {
    ast.If: "test", ast.While: "test", ast.IfExp: "test", ast.Assert: "test",
    ast.For: "iter", ast.AsyncFor: "iter", ast.comprehension: "iter", ast.Match: "subject",
}  # fmt: skip


def fill(template: str, at: ast.AST, **holes) -> list[ast.stmt]:
    """The statements of a template, at the position of `at`."""
    return Filling(holes, place(at)).several(parse_template(template).body)


def fill_expr(template: str, at: ast.AST, **holes) -> ast.expr:
    """The one expression of a template."""
    return fill(template, at, **holes)[0].value


def place(at: ast.AST) -> dict:
    """The position of a node: of a statement with a body, its head."""
    head = HEADS.get(type(at))
    return dict(zip(PLACE, attrgetter(*PLACE)(at if head is None else getattr(at, head))))


def stand(node: ast.AST, at: ast.AST) -> ast.AST:
    """Give a node the place of another."""
    vars(node).update(place(at))
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
    function = stand(ast.Lambda(empty, value), value)
    function.lazy = True  # not the user's
    return function


@cache
def parse_template(template: str) -> ast.Module:
    return ast.parse(textwrap.dedent(template))


class Filling:
    """Copies a template: every node gets one position, and the holes are filled."""

    def __init__(self, holes: dict, place: dict):
        self.holes, self.place = holes, place

    def several(self, nodes: list) -> list:
        """The nodes of a list; a hole alone on a line may stand for many."""
        statements: list = []
        for node in nodes:
            lines = self.holes.get(node.value.id) if is_line(node) else None
            if isinstance(lines, list):
                statements += lines
            else:
                statements.append(self.one(node))
        return statements

    def one(self, node: ast.AST) -> ast.AST:
        hole = self.holes.get(node.id) if type(node) is ast.Name else None
        if isinstance(hole, ast.AST):
            return hole
        kind = type(node)
        new = kind.__new__(kind)
        held = vars(new)
        held.update(vars(node))
        if "lineno" in held:
            held.update(self.place)
        for name in INSIDE[kind]:
            inside = held[name]
            if type(inside) is list:
                held[name] = self.several(inside)
            elif inside is not None:
                held[name] = self.one(inside)
        if hole is not None:
            new.id = hole
        return new


def is_line(node: ast.AST) -> bool:
    """Whether a statement is a name alone on its line."""
    return type(node) is ast.Expr and type(node.value) is ast.Name
