"""`if`: both sides become functions, and the runtime chooses."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import movable
from ..templates import fill
from ..walking import looks_for
from .blocks import FunctionBlocks, options

BOTH = """
def _jst_then():
    body
def _jst_else():
    orelse
_jst.if_else(test, _jst_then, _jst_else)
"""
ONE = """
def _jst_then():
    body
_jst.if_else(test, _jst_then, None)
"""


@slot("jit.if_else")
@looks_for(ast.If)
def if_else(tree: ast.AST, context) -> ast.AST:
    """`if test: A else: B` -> two functions and `_jst.if_else(test, then, else_, live_out=names)`.

    `live_out` are the names bound inside that are needed afterwards, `local` those that are not.
    """
    return IfElse().visit(tree)


class IfElse(FunctionBlocks):
    def visit_If(self, node):
        self.generic_visit(node)
        if not movable([*node.body, *node.orelse]):
            return node
        template = BOTH if node.orelse else ONE
        new = fill(template, node, test=node.test, body=node.body, orelse=node.orelse)
        *functions, call = new
        for function, binds in zip(functions, node.binds):
            self.share(function, binds)
        bound = set().union(*node.binds)
        live_out, jumps = bound & node.live, getattr(node, "jumps", False)
        call.value.keywords = options(node, live_out=live_out, local=bound - live_out, jumps=jumps)
        return new
