"""`and`, `or`, `not`: what needs a truth value."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..templates import lazily, runtime
from ..walking import TreeRewriter, looks_for
from .lazy import Lazy


@slot("jit.logic")
@looks_for(ast.BoolOp)
def logic(tree: ast.AST, context) -> ast.AST:
    """`a and b` -> `_jst.and_(a, lambda: b)`: the right side is evaluated only if it counts.

    Where not only its truth counts it is `_jst.and_value`.
    """
    return Logic().visit(tree)


class Logic(Lazy):
    def visit_BoolOp(self, node):
        self.generic_visit(node)
        first, *rest = node.values
        if self.stays(rest):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        name += "" if hasattr(node, "asked") else "value"
        return runtime(name, node, first, *map(lazily, rest))


@slot("jit.negation")
@looks_for(ast.UnaryOp, op=ast.Not)
def negation(tree: ast.AST, context) -> ast.AST:
    """`not a` -> `_jst.not_(a)`."""
    return Negation().visit(tree)


class Negation(TreeRewriter):
    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return runtime("not_", node, node.operand) if isinstance(node.op, ast.Not) else node
