"""Whether a part of an expression may be evaluated in a lambda: converters ask it."""

from __future__ import annotations

import ast

from ..scope import suspends
from ..walking import TreeRewriter, own


class Lazy(TreeRewriter):
    """Walks a tree and knows whether a class body is around, whose names a lambda cannot see."""

    in_class = False
    in_lambda = False  # of the user

    def visit_ClassDef(self, node):
        return self.walk(node, True, self.in_lambda)

    def visit_FunctionDef(self, node):
        return self.walk(node, False, False)

    def visit_Lambda(self, node):
        return self.walk(node, False, self.in_lambda or not hasattr(node, "lazy"))

    def walk(self, node, in_class: bool, in_lambda: bool):
        """Visit the inside of a node, where a class body or a lambda may be around."""
        outer = self.in_class, self.in_lambda
        self.in_class, self.in_lambda = in_class, in_lambda
        self.generic_visit(node)
        self.in_class, self.in_lambda = outer
        return node

    def stays(self, parts) -> bool:
        """Whether the parts must be evaluated in place."""
        binds = self.in_lambda and any(isinstance(n, ast.NamedExpr) for n in own(parts))
        return self.in_class or binds or suspends(parts)
