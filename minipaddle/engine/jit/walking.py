"""Fast walks over syntax trees.

`ast` reads every field of every node; here each kind of node knows which fields hold nodes.
Operators and contexts (`Add`, `Load`) are left out: they have no position and nothing inside.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import repeat

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)


def fields_of(sorts: set[str]) -> dict[type, tuple[str, ...]]:
    """Kind of node -> the names of its fields that hold nodes of some sorts.

    As Python's grammar has them, which is the text of every kind:
    `If(expr test, stmt* body, stmt* orelse)`.
    """
    table = {type(None): ()}
    for kind in vars(ast).values():
        if isinstance(kind, type) and issubclass(kind, ast.AST):
            fields = re.findall(r"(\w+)[*?]* (\w+)[,)]", kind.__doc__ or "")
            table[kind] = tuple([name for sort, name in fields if sort in sorts])
    return table


STATEMENTS = {"mod", "stmt", "excepthandler", "match_case"}
EXPRESSIONS = {"expr", "pattern", "comprehension", "arguments", "arg", "keyword", "alias"}
BODIES = fields_of(STATEMENTS)
"""The nodes that hold statements."""
INSIDE = fields_of(STATEMENTS | EXPRESSIONS | {"withitem", "type_param"})


def own(nodes: Iterable[ast.AST], stop=SCOPES, fields=INSIDE) -> list[ast.AST]:
    """The nodes and those below, without what nested functions and classes hold."""
    waiting, visited = list(nodes), []
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        visited.append(node)
        kind = type(node)
        if kind not in stop:
            for name in fields[kind]:
                inside = getattr(node, name)
                if type(inside) is list:
                    waiting += inside
                else:
                    waiting.append(inside)
    return visited


def walk(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree."""
    return own([tree], stop=())


def statements(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """The statements and all below them, without nested functions and classes."""
    return own(nodes, fields=BODIES)


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    """The `def`s in a tree, outer ones first."""
    return [n for n in own([tree], (), BODIES) if isinstance(n, ast.FunctionDef)]


class Methods(dict):
    """Kind of node -> the method of a visitor for it; None if there is nothing to do below."""

    def __init__(self, visitor: type):
        self.visitor = visitor

    def __missing__(self, kind: type):
        visitor = self.visitor
        below = visitor.generic_visit if visitor.fields[kind] else None
        self[kind] = method = getattr(visitor, f"visit_{kind.__name__}", below)
        return method


class ByKind:
    """A visitor that skips empty fields."""

    fields = INSIDE
    visit_Constant = None  # nothing is inside

    def __init_subclass__(cls):
        cls.methods = Methods(cls)


class Visitor(ByKind, ast.NodeVisitor):
    """An `ast.NodeVisitor` that skips empty fields."""

    def visit(self, node: ast.AST):
        method = self.methods[type(node)]
        return None if method is None else method(self, node)

    def visit_all(self, nodes: Iterable) -> None:
        """Visit each node; None is skipped."""
        methods = self.methods
        for node in nodes:
            method = methods[type(node)]
            if method is not None:
                method(self, node)

    def generic_visit(self, node: ast.AST) -> None:
        methods = self.methods
        for name in self.fields[type(node)]:
            inside = getattr(node, name)
            if type(inside) is list:
                if inside:
                    self.visit_all(inside)
            elif (method := methods[type(inside)]) is not None:
                method(self, inside)


class TreeRewriter(ByKind, ast.NodeTransformer):
    """An `ast.NodeTransformer` that skips empty fields."""

    def visit(self, node: ast.AST):
        method = self.methods[type(node)]
        return node if method is None else method(self, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        methods = self.methods
        for name in self.fields[type(node)]:
            inside = getattr(node, name)
            if type(inside) is list:
                if inside:
                    inside[:] = self.visit_list(inside)
            elif inside is not None:
                method = methods[type(inside)]
                if method is not None:
                    setattr(node, name, method(self, inside))
        return node

    def visit_list(self, nodes: list) -> list:
        """The replacements of the nodes of a list: for each a node, several, or none (None)."""
        methods, rewritten = self.methods, []
        for node in nodes:
            method = methods[type(node)]
            new = node if method is None else method(self, node)
            if type(new) is list:
                rewritten += new
            elif new is not None or node is None:
                rewritten.append(new)
        return rewritten


def copy_tree(node: ast.AST) -> ast.AST:
    """A copy of a tree, whose nodes can be changed."""
    copied = [node]
    places = [(copied, 0)]
    for held, key in places:
        old = held[key]
        if type(old) is list:
            held[key] = [*old]
            places += zip(repeat(held[key]), range(len(old)))
        elif old is not None:
            kind = type(old)
            held[key] = new = kind.__new__(kind)
            vars(new).update(vars(old))
            places += zip(repeat(vars(new)), vars(new).keys() & INSIDE[kind])
    return copied[0]


# ---- what converters look for -------------------------------------------------------------------

WANTED: dict[type, list[tuple]] = defaultdict(list)
"""Kind of node -> (converter, field, its value) for the converters that look for it."""


def looks_for(*kinds: type, makes_work: bool = False, **fields):
    """Decorator: a converter that changes nothing where there is no such node.

    `fields` say what a field of it must hold: a text, a class, or True for anything at all; one
    of them suffices. With `makes_work`, a converter may make what others look for.
    """

    def register(converter):
        for kind in kinds:
            WANTED[kind] += [(converter.__name__, *each) for each in fields.items() or [("", None)]]
        converter.makes_work = makes_work
        return converter

    return register


def survey(tree: ast.AST) -> set[str]:
    """The names of the converters that find nothing to do in the tree."""
    idle = {name for wanted in WANTED.values() for name, *_ in wanted}
    for node in walk(tree):
        for name, field, wanted in WANTED.get(type(node), ()):
            if name in idle and (not field or holds(getattr(node, field), wanted)):
                idle.remove(name)
    return idle


def holds(held, wanted) -> bool:
    """Whether a field has the value that a converter looks for."""
    if wanted is True:
        return bool(held)
    return held == wanted if isinstance(wanted, str) else isinstance(held, wanted)
