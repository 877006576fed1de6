"""`[f(x) for x in items]` and `[x] * n` where only a run knows how many items the list gets."""

import ast

from ...eager.numbers import Number
from ...engine.core.dim import Dim
from ...engine.core.slots import slot
from ...engine.jit.calling import call
from ...engine.jit.looping import for_loop
from ...engine.jit.templates import fill_expr, runtime
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.walking import TreeRewriter, looks_for
from ...tensor.growing_lists import has_grown, refuse_of_grown
from ...tensor.sequences import sequence
from ..sequences import repeat_items

COLLECT = "_jst.collect(iterable, lambda _jst_items: part)"
STAYS = ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom
"""Nodes that would bind or act elsewhere in a function of their own."""


@slot("jit.comprehensions")
@looks_for(ast.comprehension)
def comprehensions(tree: ast.AST, context) -> ast.AST:
    """`[f(x) for x in items]` -> `_jst.collect(items, lambda part: [f(x) for x in part])`."""
    return Comprehensions().visit(tree)


class Comprehensions(TreeRewriter):
    def visit_ListComp(self, node):
        self.generic_visit(node)
        first = node.generators[0]
        if first.is_async or any(isinstance(x, STAYS) for x in ast.walk(node)):
            return node
        call = fill_expr(COLLECT, node, iterable=first.iter, part=node)
        first.iter = fill_expr("_jst_items", first.iter)
        return call

    visit_GeneratorExp = visit_ListComp

    def visit_SetComp(self, node):
        self.generic_visit(node)
        first = node.generators[0]
        first.iter = runtime("require_known", first.iter, first.iter)
        return node

    visit_DictComp = visit_SetComp


@slot("jit.runtime.collect")
def collect(iterable, part):
    """`part(iterable)`, or a list that grows in a loop where only a run knows how many items."""
    if sequence(iterable) is None:
        return part(iterable)
    items: list = []

    def body(item):
        call(items.extend)(part([item]))

    for_loop(iterable, body)
    return items


def require_known(iterable):
    """The items of a set or a dict; refused where only a run knows how many."""
    if has_grown(iterable):
        refuse_of_grown("a set or a dict")
    return iterable


@slot("jit.repetitions")
@looks_for(ast.BinOp, op=ast.Mult)
def repetitions(tree: ast.AST, context) -> ast.AST:
    """`[x] * n` -> `_jst.repeat([x], n)`."""
    return Repetitions().visit(tree)


class Repetitions(TreeRewriter):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mult) or not isinstance(node.left, ast.List):
            return node
        return runtime("repeat", node, node.left, node.right)


@slot("jit.runtime.repeat")
def repeat(items: list, n):
    """`items * n`, where only a run may know n."""
    return repeat_items(items, n) if isinstance(n, Number | Dim) else items * n


RUNTIME.collect, RUNTIME.require_known, RUNTIME.repeat = collect, require_known, repeat
