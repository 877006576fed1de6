"""`x[i]`, `x[i] = v`: a list may be indexed by a tensor."""

import ast

from ...engine.core.dim import Dim, same
from ...engine.core.dispatch import current
from ...engine.core.errors import value_error
from ...engine.core.slots import slot
from ...engine.eager.control_flow import is_static
from ...engine.jit.scope import ScopeNames
from ...engine.jit.templates import runtime
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.walking import TreeRewriter, looks_for
from ...tensor.growing_lists import has_grown, kind_of_rest, refuse_of_grown, stack_items
from ...tensor.sequences import sequence
from ..sequences import pick, write_item


@slot("jit.subscripts")
@looks_for(ast.Subscript)
def subscripts(tree: ast.AST, context) -> ast.AST:
    """`x[i]` -> `_jst.item(x, i)` where the index is a number or computed."""
    return Subscripts().visit(tree)


class Subscripts(TreeRewriter):
    def visit_Subscript(self, node):
        self.generic_visit(node)
        fixed = not (number(node.slice) or ScopeNames([node.slice]).read) or holds_slice(node.slice)
        if fixed or not isinstance(node.ctx, ast.Load):
            return node
        return runtime("item", node, node.value, node.slice)


def number(index) -> bool:
    """`x[-1]`: the program finds the last item of a list that grew in a loop."""
    index = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(index, ast.Constant) and type(index.value) is int


def holds_slice(index) -> bool:
    """`x[a:b]` is Python's to write."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Slice | ast.Starred) for part in parts)


@slot("jit.runtime.item")
def item(owner, index):
    """`owner[index]`; a tensor may index a list."""
    if isinstance(owner, list | tuple) and (is_static(index) or sequence(owner) is not None):
        return pick(owner, index)
    return owner[index]


class WritableList:
    """A list that is about to be written: a tensor may say where."""

    def __init__(self, items: list):
        self.items = items

    def __getitem__(self, k):
        return item(self.items, k)

    def __setitem__(self, k, value):
        grown = has_grown(self.items)
        if grown and isinstance(k, slice):
            refuse_of_grown("a write to a slice")
        if grown or is_static(k):
            write_item(self.items, k, value)
        else:
            self.items[k] = value

    def __delitem__(self, k):
        if has_grown(self.items):
            refuse_of_grown("del of an item")
        del self.items[k]


class OpenList:
    """A list whose length only a run knows, for slices of it."""

    def __init__(self, items: list):
        self.items = items

    def __getitem__(self, key):
        return type(self.items)([kind_of_rest(self.items)(stack_items(self.items)[key])])


def cut(owner):
    """`owner`, or what gives slices of it."""
    return OpenList(owner) if has_grown(owner) else owner


def unpack(value, n: int):
    """`value`, which is about to be assigned to n variables; the program checks that it fits."""
    known = sequence(value) if current.top.tracing else None
    if known is None or not isinstance(known.length, Dim):
        return value
    if not same(known.length, n):
        raise value_error(f"a tensor with {known.length} rows is assigned to {n} variables")
    return [known.at(k) for k in range(n)]


note_writing = RUNTIME.writing


def writing(owner, attribute: str | None = None):
    """`owner`, or what writes its items; it is about to be written."""
    note_writing(owner, attribute)
    return WritableList(owner) if type(owner) is list and current.top.tracing else owner


RUNTIME.item, RUNTIME.writing, RUNTIME.cut, RUNTIME.unpack = item, writing, cut, unpack
