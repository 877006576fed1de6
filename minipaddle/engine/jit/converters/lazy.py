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
        outer, self.in_class = self.in_class, True
        self.generic_visit(node)
        self.in_class = outer
        return node

    def visit_FunctionDef(self, node):
        outer = self.in_class, self.in_lambda
        self.in_class = self.in_lambda = False
        self.generic_visit(node)
        self.in_class, self.in_lambda = outer
        return node

    def visit_Lambda(self, node):
        outer = self.in_class, self.in_lambda
        self.in_class, self.in_lambda = False, self.in_lambda or not hasattr(node, "lazy")
        self.generic_visit(node)
        self.in_class, self.in_lambda = outer
        return node

    def stays(self, parts) -> bool:
        """Whether the parts must be evaluated in place."""
        binds = self.in_lambda and any(isinstance(n, ast.NamedExpr) for n in own(parts))
        return self.in_class or binds or suspends(parts)
