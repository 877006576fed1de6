"""`while` and `for`: test and body become functions, and the runtime goes round."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import movable
from ..templates import fill
from .blocks import Blocks, options
from .survey import looks_for

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
    """`while test: body` -> two functions and `_jst.while_loop(test, body, keeps=names)`."""
    return WhileLoop().visit(tree)


class WhileLoop(Blocks):
    def visit_While(self, node):
        self.generic_visit(node)
        if node.orelse or not movable([node.test, *node.body]):
            return node
        new = while_statement(node, self.share)
        new[-1].value.keywords = groups(node)
        return new


@slot("jit.while_statement")
def while_statement(node: ast.While, share) -> list[ast.stmt]:
    """Test, body, call; `share` lets a function bind names of the function around it."""
    test, body, call = fill(WHILE, node, test=node.test, body=node.body)
    in_test, in_body = node.binds
    share(test, in_test)
    share(body, in_body)
    return [test, body, call]


@slot("jit.for_loop")
@looks_for(ast.For)
def for_loop(tree: ast.AST, context) -> ast.AST:
    """`for target in items: body` -> a function and `_jst.for_loop(items, body, keeps=names)`.

    `stops` are the flags that end the loop: see `jumps`.
    """
    return ForLoop().visit(tree)


class ForLoop(Blocks):
    def visit_For(self, node):
        self.generic_visit(node)
        if node.orelse or not movable(node.body):
            return node
        new = fill(FOR, node, target=node.target, iterable=node.iter, body=node.body)
        function, call = new
        (bound,) = node.binds
        self.share(function, bound)
        call.value.keywords = [*groups(node), *options(node, stops=getattr(node, "stops", ()))]
        return new


def groups(node) -> list[ast.keyword]:
    """The names that a loop binds, as keywords for the runtime."""
    keeps, turns, drops = carried_names(set().union(*node.binds), node.live, node.head)
    return options(node, keeps=keeps, turns=turns, drops=drops)


@slot("jit.carried_names")
def carried_names(bound: set, live: set, head: set) -> tuple[set, set, set]:
    """Of what a loop binds: what is needed after it, by its next round only, not at all."""
    keeps, turns = bound & live, (bound & head) - live
    return keeps, turns, bound - keeps - turns
