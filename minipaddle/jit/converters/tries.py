"""`try`: an error that a program raises when it runs cannot be caught by what is traced."""

from __future__ import annotations

import ast

from ...core.slots import slot
from ..scope import suspends
from ..templates import fill, lazily, load, stand
from ..walking import BODIES, Rewriter
from .survey import looks_for


@slot("jit.tries")
@looks_for(ast.Try)
def tries(tree: ast.AST, context) -> ast.AST:
    """`try: A except E: B` -> `try: with _jst.trying(lambda: (E,)): A except E: B`."""
    return Tries().visit(tree)


class Tries(Rewriter):
    fields = BODIES

    def visit_Try(self, node):
        self.generic_visit(node)
        if node.handlers and not suspends(node.body):
            kinds = [h.type or load("BaseException", h) for h in node.handlers]
            caught = lazily(stand(ast.Tuple(kinds, ast.Load()), node.handlers[0]))
            node.body = fill(
                "with _jst.trying(caught): body", node.body[0], caught=caught, body=node.body
            )
        return node
