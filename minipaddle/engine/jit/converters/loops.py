"""`while` and `for`: test and body become functions, and the runtime iterates."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import movable
from ..templates import fill
from ..walking import looks_for
from .blocks import FunctionBlocks, options

WHILE = """
def _jst_test():
    return test
def _jst_body():
    body
_jst.while_loop(_jst_test, _jst_body)
"""
FOR = """
def _jst_body(_jst_item):
    target = _jst_item
    body
_jst.for_loop(iterable, _jst_body)
"""


@slot("jit.while_loop")
@looks_for(ast.While)
def while_loop(tree: ast.AST, context) -> ast.AST:
    """`while test: body` -> two functions and `_jst.while_loop(test, body, live_out=names)`."""
    return WhileLoop().visit(tree)


class WhileLoop(FunctionBlocks):
    def visit_While(self, node):
        self.generic_visit(node)
        if node.orelse or not movable([node.test, *node.body]):
            return node
        new = while_statement(node, self.share)
        new[-1].value.keywords = groups(node)
        return new


@slot("jit.while_statement")
def while_statement(node: ast.While, share) -> list[ast.stmt]:
    """Test, body, call; `share` lets a function bind names of the enclosing function."""
    test, body, call = fill(WHILE, node, test=node.test, body=node.body)
    in_test, in_body = node.binds
    share(test, in_test)
    share(body, in_body)
    return [test, body, call]


@slot("jit.for_loop")
@looks_for(ast.For)
def for_loop(tree: ast.AST, context) -> ast.AST:
    """`for target in items: body` -> a function and `_jst.for_loop(items, body, live_out=names)`.

    `break_flags` are the flags that end the loop: see `jumps`.
    """
    return ForLoop().visit(tree)


class ForLoop(FunctionBlocks):
    def visit_For(self, node):
        self.generic_visit(node)
        if node.orelse or not movable(node.body):
            return node
        new = fill(FOR, node, target=node.target, iterable=node.iter, body=node.body)
        function, call = new
        (bound,) = node.binds
        self.share(function, bound)
        flags = options(node, break_flags=getattr(node, "break_flags", ()))
        call.value.keywords = [*groups(node), *flags]
        return new


def groups(node) -> list[ast.keyword]:
    """The names that a loop binds, as keywords for the runtime."""
    live_out, loop_carried, local = group_names(set().union(*node.binds), node.live, node.head)
    return options(node, live_out=live_out, loop_carried=loop_carried, local=local)


@slot("jit.group_names")
def group_names(bound: set, live: set, head: set) -> tuple[set, set, set]:
    """The names that a loop binds, in three groups: needed after it, only by its next iteration,
    or not at all.
    """
    live_out, loop_carried = bound & live, (bound & head) - live
    return live_out, loop_carried, bound - live_out - loop_carried
