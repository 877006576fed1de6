"""`a if test else b`: each side is evaluated only if it is chosen."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..templates import lazily, runtime
from ..walking import looks_for
from .lazy import Lazy


@slot("jit.conditional")
@looks_for(ast.IfExp)
def conditional(tree: ast.AST, context) -> ast.AST:
    """`a if test else b` -> `_jst.if_exp(test, lambda: a, lambda: b)`."""
    return Conditional().visit(tree)


class Conditional(Lazy):
    def visit_IfExp(self, node):
        self.generic_visit(node)
        if self.stays([node.body, node.orelse]):
            return node
        return runtime("if_exp", node, node.test, lazily(node.body), lazily(node.orelse))
