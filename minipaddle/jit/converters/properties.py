"""Properties, which hold code of the user: their getters are converted when they are read."""

from __future__ import annotations

import ast
from types import FunctionType

from ...engine.core.slots import slot
from ...engine.jit.calling import converted
from ...engine.jit.templates import constant, runtime
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.walking import Rewriter, looks_for


@slot("jit.properties")
@looks_for(ast.Attribute)
def properties(tree: ast.AST, context) -> ast.AST:
    """`x.size` -> `_jst.attr(x, "size")` if some class at hand has a property of that name."""
    return Properties(context.properties).visit(tree) if context.properties else tree


class Properties(Rewriter):
    def __init__(self, names):
        self.names = names

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr in self.names and isinstance(node.ctx, ast.Load):
            return runtime("attr", node, node.value, constant(node.attr, node))
        return node


@slot("jit.runtime.attr")
def attr(owner, name: str):
    """`owner.name`; if that is a property, its getter is converted."""
    kind = type(owner)
    if kind is super:  # the classes after its own, in the order in which it asks them
        order, owner_ = owner.__self_class__.__mro__, owner.__self__
        later = order[order.index(owner.__thisclass__) + 1 :]
        member = next((vars(each)[name] for each in later if name in vars(each)), None)
    else:
        member, owner_ = getattr(kind, name, None), owner
    if isinstance(member, property) and type(member.fget) is FunctionType:
        return converted(member.fget)(owner_)
    return getattr(owner, name)


RUNTIME.attr = attr
