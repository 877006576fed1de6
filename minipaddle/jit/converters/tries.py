"""`try`: handlers catch neither the errors of a running program nor a refusal to write it."""

import ast
import sys
from contextlib import contextmanager

from ...engine.core.dispatch import current
from ...engine.core.errors import inside
from ...engine.core.slots import slot
from ...engine.jit.scope import suspends
from ...engine.jit.templates import fill, lazily, load, runtime, stand
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.walking import BODIES, TreeRewriter, copy_tree, looks_for


@slot("jit.tries")
@looks_for(ast.Try, ast.TryStar)
def tries(tree: ast.AST, context) -> ast.AST:
    """`try: A except E: B` -> `try: with _jst.trying(lambda: (E,)): A except _jst.catch(E): B`."""
    return Tries().visit(tree)


class Tries(TreeRewriter):
    fields = BODIES

    def visit_Try(self, node):
        self.generic_visit(node)
        kinds = [h.type or load("BaseException", h) for h in node.handlers]
        if node.handlers and not suspends(node.body):
            caught = lazily(stand(ast.Tuple(kinds, ast.Load()), node.handlers[0]))
            node.body = fill(
                "with _jst.trying(caught): body", node.body[0], caught=caught, body=node.body
            )
        for handler, kind in zip(node.handlers, kinds, strict=True):
            handler.type = runtime("catch", handler, copy_tree(kind))
        return node

    visit_TryStar = visit_Try


@contextmanager
def trying(kinds):
    """The body of a `try`; `kinds()` gives the exceptions it catches. Only a trace needs them."""
    handlers = current.top.handlers if current.top.tracing else []
    handlers.append(kinds)
    try:
        yield
    finally:
        handlers.pop()


def catch(kinds):
    """The errors that a handler catches; none of the user's once the trace is refused."""
    return () if current.top.refusal and not inside(sys._getframe(1)) else kinds


RUNTIME.trying, RUNTIME.catch = trying, catch
