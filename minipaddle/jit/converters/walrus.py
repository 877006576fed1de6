"""`y := x` inside a generated lambda, which has names of its own: a setter binds the right one."""

import ast

from ...engine.core.slots import slot
from ...engine.jit.converters.blocks import hint, put_first
from ...engine.jit.scope import ScopeNames, parameters
from ...engine.jit.templates import fill, load, stand
from ...engine.jit.walking import TreeRewriter, looks_for

SETTER = """
def setter(_jst_new):
    declare
    _jst.writing_names(lambda: name)
    name = _jst_new
    return _jst_new
"""


@slot("jit.walrus")
@looks_for(ast.NamedExpr)
def walrus(tree: ast.AST, context) -> ast.AST:
    """`lambda: (y := x)` -> `lambda: _jst_set_y(x)`, with `_jst_set_y` defined at the start."""
    return Walrus().visit(tree)


class Walrus(TreeRewriter):
    def __init__(self):
        self.lazy = False  # inside a lambda that a converter made?
        self.setters: set[str] = set()  # names that the user's function needs a setter for

    def visit_FunctionDef(self, node):
        outer = self.lazy, self.setters
        block = node.name.startswith("_jst_")
        self.lazy, self.setters = False, self.setters if block else set()
        self.generic_visit(node)
        if self.setters and not block:
            put_first(node, [line for name in sorted(self.setters) for line in setter(name, node)])
        self.lazy, self.setters = outer
        return node

    def visit_Lambda(self, node):
        outer, self.lazy = self.lazy, hasattr(node, "lazy")
        self.generic_visit(node)
        self.lazy = outer
        return node

    def visit_NamedExpr(self, node):
        self.generic_visit(node)
        if not self.lazy:
            return node
        name = node.target.id
        self.setters.add(name)
        return stand(ast.Call(load(f"_jst_set_{name}", node), [node.value], []), node)


def setter(name: str, function) -> list:
    """A function that binds `name` where the user's function has it."""
    names = ScopeNames(function.body)
    at = function.body[0]
    declare = stand((ast.Global if name in names.globals else ast.Nonlocal)([name]), at)
    lines = fill(SETTER, at, setter=f"_jst_set_{name}", name=name, declare=[declare])
    lines[0].name = f"_jst_set_{name}"
    shared = names.written | names.globals | names.nonlocals | parameters(function.args)
    return lines if name in shared else [*hint(name, at), *lines]
