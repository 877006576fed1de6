"""`super()`, which looks at the frame that calls it: blocks become functions with frames."""

import ast

from ...engine.core.slots import slot
from ...engine.jit.templates import load
from ...engine.jit.walking import looks_for, own, walk


@slot("jit.supers")
@looks_for(ast.Name, id="super")
def supers(tree: ast.AST, context) -> ast.AST:
    """`super()` finds its class and object by looking at the frame: they are named instead."""
    if any(isinstance(n, ast.FunctionDef) and n.name == "super" for n in walk(tree)):
        return tree  # a function of the user's has that name
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            params = [*node.args.posonlyargs, *node.args.args]
            body = node.body if isinstance(node.body, list) else [node.body]
            for call in own(body) if params else ():
                if isinstance(call, ast.Call) and ast.unparse(call) == "super()":
                    call.args = [load("__class__", call), load(params[0].arg, call)]
    return tree
