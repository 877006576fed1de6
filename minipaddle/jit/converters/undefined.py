"""Reads of names that some path leaves undefined: the runtime knows which branch it was."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import Definedness
from ..templates import runtime
from ..walking import Rewriter, functions, walk


@slot("jit.undefined")
def undefined(tree: ast.AST, context) -> ast.AST:
    """`y` -> `_jst.defined(y)`, where `y` may be undefined."""
    mark_conditions(tree)
    for function in functions(tree):
        Definedness(function)
    return Reads().visit(tree)


class Reads(Rewriter):
    def visit_Name(self, node):
        if getattr(node, "maybe", False) and not node.id.startswith("_jst_"):
            node.maybe = False
            return runtime("defined", node, node)
        return node


def mark_conditions(tree: ast.AST) -> None:
    """Sets `asked` on each `and`/`or` of which only the truth counts."""
    for node in walk(tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            truth(node.test)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth(node.operand)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                truth(test)


def truth(test: ast.expr) -> None:
    if isinstance(test, ast.BoolOp):
        test.asked = True
        for part in test.values:
            truth(part)
