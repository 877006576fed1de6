"""A block of statements becomes a function: the base of the converters of control flow."""

from __future__ import annotations

import ast

from ..scope import Liveness, ScopeNames, parameters
from ..templates import constant, fill, stand
from ..walking import BODIES, TreeRewriter


class FunctionBlocks(TreeRewriter):
    """Walks the functions of a tree; each is analysed before anything in it moves."""

    fields = BODIES

    def __init__(self):
        self.globals: set[str] = set()
        self.shared: set[str] = set()  # names of the function that its new blocks bind

    def visit_FunctionDef(self, node):
        if not hasattr(node, "analysed"):
            Liveness(node)
            node.analysed = True
        outer = self.globals, self.shared
        self.globals, self.shared = global_names(node), set()
        self.generic_visit(node)
        keep_local(node, self.shared)
        self.globals, self.shared = outer
        return node

    def visit_ClassDef(self, node):
        """The body of a class itself stays Python: its names cannot be shared."""
        node.body = [self.visit(n) if isinstance(n, ast.FunctionDef) else n for n in node.body]
        return node

    def share(self, function: ast.FunctionDef, binds: set) -> None:
        """Let a block's function bind the names of the enclosing function."""
        ours, theirs = sorted(binds - self.globals), sorted(binds & self.globals)
        declared = [(ast.Nonlocal, ours), (ast.Global, theirs)]
        self.shared.update(ours)
        first = function.body[0]
        function.body[:0] = [stand(kind(names), first) for kind, names in declared if names]
        function.analysed = True


def global_names(function: ast.FunctionDef) -> set[str]:
    """The names that a function declares at its start."""
    lines = [n for n in function.body if isinstance(n, ast.Global)]
    return {name for line in lines for name in line.names}


def keep_local(function: ast.FunctionDef, shared: set[str]) -> None:
    """A name that only blocks bind is still the function's own: it gets a hint of type."""
    if shared:
        names = ScopeNames(function.body)
        bound = names.written | names.globals | names.nonlocals | parameters(function.args)
        lost, at = sorted(shared - bound), function.body[0]
        put_first(function, [line for name in lost for line in hint(name, at)])


def hint(name: str, at) -> list[ast.stmt]:
    """`y: "bound in a block"`, which makes `y` local and does nothing."""
    return fill("name: 'bound in a block'", at, name=name)


def put_first(function: ast.FunctionDef, statements: list) -> None:
    """Insert statements at the start of a function, after its text and its declarations."""
    body = function.body
    k = int(ast.get_docstring(function, clean=False) is not None)
    while k < len(body) and isinstance(body[k], ast.Global | ast.Nonlocal):
        k += 1
    body[k:k] = statements


def options(at, **given) -> list[ast.keyword]:
    """`live_out=("a", "b"), jumps=True`: sets of names, and flags; empty ones are left out."""

    def write_item(value):
        if value is True:
            return constant(True, at)
        return stand(ast.Tuple([constant(name, at) for name in sorted(value)], ast.Load()), at)

    return [stand(ast.keyword(key, write_item(x)), at) for key, x in given.items() if x]
