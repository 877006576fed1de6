"""`x[i]`: a list may be indexed by a tensor."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import Names
from ..templates import runtime


@slot("jit.subscripts")
def subscripts(tree: ast.AST, context) -> ast.AST:
    """`x[i]` -> `_jst.item(x, i)` where the index is computed."""
    return Subscripts().visit(tree)


class Subscripts(ast.NodeTransformer):
    def visit_Subscript(self, node):
        self.generic_visit(node)
        fixed = not Names([node.slice]).read or holds_slice(node.slice)
        if fixed or not isinstance(node.ctx, ast.Load):
            return node
        return runtime("item", node, node.value, node.slice)


def holds_slice(index) -> bool:
    """`x[a:b]` is Python's to write."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Slice | ast.Starred) for part in parts)
