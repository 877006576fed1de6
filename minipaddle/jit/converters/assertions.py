"""`assert`: a tensor is checked when the program runs."""

from __future__ import annotations

import ast

from ...engine.core.slots import slot
from ...engine.eager.control_flow import is_static
from ...engine.jit.converters.lazy import Lazy
from ...engine.jit.effects import check_held
from ...engine.jit.leaves import as_condition
from ...engine.jit.templates import lazily, runtime, stand
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.truth import truth
from ...engine.jit.walking import looks_for


@slot("jit.assertions")
@looks_for(ast.Assert)
def assertions(tree: ast.AST, context) -> ast.AST:
    """`assert test, text` -> `_jst.assert_(test, lambda: text)`; `python -O` drops them."""
    return Assertions().visit(tree) if __debug__ else tree


class Assertions(Lazy):
    def visit_Assert(self, node):
        self.generic_visit(node)
        if self.stays([node]):
            return node
        text = [lazily(node.msg)] if node.msg else []
        return stand(ast.Expr(runtime("assert_", node, node.test, *text)), node)


@slot("jit.runtime.assert_")
def assert_(test, text=None) -> None:
    """`assert test, text()`: a tensor is checked when the program runs."""
    test = as_condition(test)
    if is_static(test):
        check_held(truth(test), str(text()) if text else "", AssertionError)
    elif not test:
        raise AssertionError(*([text()] if text else []))


RUNTIME.assert_ = assert_
