"""Reads of names that some path leaves undefined: the runtime knows which branch it was."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import Definedness
from ..templates import runtime
from ..walking import TreeRewriter, functions, looks_for, walk


@slot("jit.undefined")
@looks_for(ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Match)
@looks_for(ast.Try, ast.TryStar, ast.Delete, ast.BoolOp, ast.NamedExpr)
def undefined(tree: ast.AST, context) -> ast.AST:
    """`y` -> `_jst.require_defined(y)`, where `y` may be undefined."""
    mark_conditions(tree)
    reads = [Definedness(function).found for function in functions(tree)]
    return ReadConverter().visit(tree) if any(reads) else tree


class ReadConverter(TreeRewriter):
    def visit_Name(self, node):
        if getattr(node, "maybe", False):
            node.maybe = False
            return runtime("require_defined", node, node)
        return node


def mark_conditions(tree: ast.AST) -> None:
    """Sets `asked` on each `and`/`or` whose truth alone counts."""
    for node in walk(tree):
        kind = type(node)
        if kind in TESTING:
            truth(node.test)
        elif kind is ast.UnaryOp and isinstance(node.op, ast.Not):
            truth(node.operand)
        elif kind is ast.comprehension:
            for test in node.ifs:
                truth(test)


TESTING = {ast.If, ast.While, ast.IfExp, ast.Assert}


def truth(test: ast.expr) -> None:
    if isinstance(test, ast.BoolOp):
        test.asked = True
        for part in test.values:
            truth(part)
