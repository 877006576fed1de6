"""The head of a function, and names that depend on its enclosing scopes."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..templates import stand
from ..walking import BODIES, TreeRewriter, functions, looks_for, statements
from .blocks import put_first

DECLARATIONS = (ast.Global, ast.Nonlocal)


@slot("jit.signature")
@looks_for(ast.FunctionDef, decorator_list=True)
@looks_for(ast.arguments, defaults=True, kw_defaults=True)
def signature(tree: ast.AST, context) -> ast.AST:
    """Decorators and defaults were evaluated when the user's function was made."""
    (function,) = tree.body
    function = function.value if isinstance(function, ast.Expr) else function  # a lambda
    function.args.defaults = []
    function.args.kw_defaults = [None] * len(function.args.kwonlyargs)
    if isinstance(function, ast.FunctionDef):
        function.decorator_list = []
    return tree


@slot("jit.declarations")
@looks_for(*DECLARATIONS)
def declarations(tree: ast.AST, context) -> ast.AST:
    """`global` and `nonlocal` count for the whole function: they go to its start."""
    for function in functions(tree):
        declared = [n for n in statements(function.body) if isinstance(n, DECLARATIONS)]
        if declared:
            Undeclared().generic_visit(function)
            put_first(function, declared)
    return tree


class Undeclared(TreeRewriter):
    """Takes the declarations out of one function."""

    fields = BODIES

    def visit_FunctionDef(self, node):
        return node

    def visit_Global(self, node):
        return stand(ast.Pass(), node)

    visit_Nonlocal = visit_Global


@slot("jit.annotations")
@looks_for(ast.AnnAssign)
@looks_for(ast.arg, annotation=True)
@looks_for(ast.FunctionDef, returns=True)
def annotations(tree: ast.AST, context) -> ast.AST:
    """Python ignores the types of local names, and forbids them for names that are shared."""
    return Annotations().visit(tree)


class Annotations(TreeRewriter):
    fields = BODIES

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        a = node.args
        for each in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])):
            each.annotation = None
        node.returns = None
        return node

    def visit_AnnAssign(self, node):
        if node.value is None:
            return stand(ast.Pass(), node)
        return stand(ast.Assign([node.target], node.value), node)

    def visit_ClassDef(self, node):
        """The fields of a dataclass are annotations that count."""
        node.body = [n if isinstance(n, ast.AnnAssign) else self.visit(n) for n in node.body]
        return node
