"""Converted code is compiled so that it notes its reads: the calls of `reads.py` are put in.

The text of the converted code shows nothing of them.
"""

import ast

from ..engine.jit.templates import constant, runtime, stand
from ..engine.jit.transpile import INSTRUMENTS
from ..engine.jit.walking import TreeRewriter, copy_tree

GROWING = {"append", "extend", "add", "appendleft", "update"}
"""Methods that change a container and read nothing of it."""


class Instrument(TreeRewriter):
    """`x.a` -> `_jst.attr(x, "a")`, and notes which names are read: {name: whether whole}."""

    def __init__(self, owner: str | None):
        self.names: dict[str, bool] = {}
        self.prefix = f"_{owner.lstrip('_')}" if owner and owner.strip("_") else ""

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.names[node.id] = True
        return node

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "_jst":
            return node
        if not isinstance(node.ctx, ast.Load):
            return self.target(node, read=isinstance(node.ctx, ast.Del))
        value = self.container(node.value) if node.attr in GROWING else self.visit(node.value)
        return runtime("attr", node, value, constant(self.mangle(node.attr), node))

    def visit_Subscript(self, node):
        stored = isinstance(node.ctx, ast.Store)
        key = isinstance(node.slice, ast.Constant) and type(node.slice.value) is str
        value = self.container(node.value) if stored or key else self.visit(node.value)
        node.slice = self.visit(node.slice)
        if key and isinstance(node.ctx, ast.Load):
            return runtime("entry", node, value, node.slice)
        cut = isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load)
        node.value = runtime("cut", node, value) if cut else value
        return node

    def visit_Assign(self, node):
        """`a, b = x` -> `a, b = _jst.unpack(x, 2)`."""
        self.generic_visit(node)
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple | ast.List) else ()
            if names and not any(isinstance(x, ast.Starred) for x in names):
                count = constant(len(names), node)
                node.value = runtime("unpack", node, node.value, count)
                break
        return node

    def visit_AugAssign(self, node):
        """`x.a += 1` reads `x.a`: its object says so before the value is computed."""
        if isinstance(node.target, ast.Name):
            self.names[node.target.id] = True
        elif isinstance(node.target, ast.Attribute):
            self.target(node.target, read=True)
        else:
            self.generic_visit(node.target)
        node.value = self.visit(node.value)
        return node

    def target(self, node, *, read: bool):
        """`_jst.writing(x, "a").a`, which is written; with `read` it must have a value before."""
        if not (isinstance(node.value, ast.Call) and len(node.value.args) == 2):
            self.generic_visit(node)
            return node
        owner, name = self.visit(node.value.args[0]), constant(self.mangle(node.attr), node)
        owner = runtime("read", node, owner, name) if read else owner
        node.value.args[:] = owner, constant(name.value, node)
        return node

    def visit_ImportFrom(self, node):
        """`from m import a` reads `m.a`."""
        names = [] if node.level else [constant(alias.name, node) for alias in node.names]
        module = constant(node.module, node)
        calls = [stand(ast.Expr(runtime("note_import", node, module, n)), node) for n in names]
        return [node, *calls]

    def visit_MatchValue(self, node):
        return node

    def container(self, node):
        """An expression for a container whose content is not read."""
        if isinstance(node, ast.Name):
            self.names.setdefault(node.id, False)
            return node
        if isinstance(node, ast.Call) and is_writing(node):  # `_jst.writing(x)[k] = v`
            node.args[0] = self.container(node.args[0])
            return node
        node = self.visit(node)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "attr":
            node.func.attr = "part"
        return node

    def mangle(self, name: str) -> str:
        private = name[:2] == "__" and name[-2:] != "__"
        return self.prefix + name if private else name


def is_writing(node: ast.Call) -> bool:
    """Whether a call is `_jst.writing(x)`."""
    f = node.func
    return isinstance(f, ast.Attribute) and f.attr == "writing" and len(node.args) == 1


def instrument(tree: ast.AST, owner: str | None) -> tuple:
    """The tree whose reads are noted, and the names that it reads."""
    noting = Instrument(owner)
    return noting.visit(copy_tree(tree)), noting.names


INSTRUMENTS.append(instrument)
