"""Changes of objects, which a branch must notice."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import ScopeNames
from ..templates import constant, fill_expr, load, runtime, stand
from ..walking import TreeRewriter, looks_for
from .blocks import put_first

STORED = (ast.Store, ast.Del)


@slot("jit.writes")
@looks_for(ast.Global, ast.Nonlocal)
@looks_for(ast.Attribute, ast.Subscript, ctx=STORED)
def writes(tree: ast.AST, context) -> ast.AST:
    """`x.a = v` -> `_jst.writing(x, "a").a = v`; `x[k] = v` -> `_jst.writing(x)[k] = v`.

    Wherever a target may be: the object is evaluated when Python would evaluate it. A function
    that binds names of other scopes says so first.
    """
    return Writes().visit(tree)


class Writes(TreeRewriter):
    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, STORED):
            node.value = runtime("writing", node, node.value, constant(node.attr, node))
        return node

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, STORED):
            node.value = runtime("writing", node, node.value)
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        names = ScopeNames(node.body)
        outer = sorted(names.written & (names.globals | names.nonlocals))
        if outer:
            at = node.body[0]
            call = runtime("writing_names", at, outer_names(outer, at))
            put_first(node, [stand(ast.Expr(call), at)])
        return node


def outer_names(names, at) -> ast.expr:
    """`lambda: (a, b)`: a function that shares these names."""
    together = stand(ast.Tuple([load(name, at) for name in names], ast.Load()), at)
    return fill_expr("lambda: names", at, names=together)
