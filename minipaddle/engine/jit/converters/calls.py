"""Calls: a function of the user is converted when it is called."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..templates import runtime
from ..walking import TreeRewriter, looks_for


@slot("jit.calls")
@looks_for(ast.Call)
def calls(tree: ast.AST, context) -> ast.AST:
    """`f(x)` -> `_jst.call(f)(x)`: there is no frame between the caller and the callee."""
    return CallConverter().visit(tree)


class CallConverter(TreeRewriter):
    def visit_Call(self, node):
        self.generic_visit(node)
        if not is_generated(node.func):
            node.func = runtime("call", node.func, node.func)
        return node


def is_generated(function: ast.expr) -> bool:
    """Whether a function is `_jst.something`."""
    inside = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(inside, ast.Name) and inside.id == "_jst"
