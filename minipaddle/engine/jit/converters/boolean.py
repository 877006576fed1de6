"""`and`, `or`, `not`, comparisons in a row, `in`, `assert`: all that needs a truth value."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..templates import constant, lazily, runtime, stand
from ..walking import Rewriter, looks_for
from .lazy import Lazy


@slot("jit.assertions")
@looks_for(ast.Assert)
def assertions(tree: ast.AST, context) -> ast.AST:
    """`assert test, text` -> `_jst.assert_(test, lambda: text)`; `python -O` drops them."""
    return Assertions().visit(tree) if __debug__ else tree


class Assertions(Lazy):
    def visit_Assert(self, node):
        self.generic_visit(node)
        if self.stays([node]):
            return node
        text = [lazily(node.msg)] if node.msg else []
        return stand(ast.Expr(runtime("assert_", node, node.test, *text)), node)


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


class Negation(Rewriter):
    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return runtime("not_", node, node.operand) if isinstance(node.op, ast.Not) else node


SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def several(node: ast.Compare) -> bool:
    return len(node.ops) > 1


@slot("jit.chains")
@looks_for(ast.Compare)
def chains(tree: ast.AST, context) -> ast.AST:
    """`a < b < c` -> `_jst.chain(a, "<", lambda: b, "<", lambda: c)`."""
    return Chains().visit(tree)


class Chains(Lazy):
    def visit_Compare(self, node):
        self.generic_visit(node)
        if not several(node) or self.stays(node.comparators):
            return node
        steps = zip(node.ops, node.comparators)
        parts = [p for op, x in steps for p in (constant(SIGNS[type(op)], x), lazily(x))]
        return runtime("chain", node, node.left, *parts)


@slot("jit.membership")
@looks_for(ast.Compare)
def membership(tree: ast.AST, context) -> ast.AST:
    """`a in b` -> `_jst.in_(a, b)`, `a not in b` -> `_jst.not_in(a, b)`."""
    return Membership().visit(tree)


class Membership(Rewriter):
    def visit_Compare(self, node):
        self.generic_visit(node)
        if several(node) or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        name = "in_" if isinstance(node.ops[0], ast.In) else "not_in"
        return runtime(name, node, node.left, node.comparators[0])
