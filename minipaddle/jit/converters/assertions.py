"""`assert` and `if ...: raise`: a tensor or a size is checked when the program runs."""

import ast

from ...engine.core.dim import Dim, same, same_shape
from ...engine.core.slots import slot
from ...engine.eager.control_flow import is_static
from ...engine.jit.converters.lazy import Lazy
from ...engine.jit.effects import check_held
from ...engine.jit.leaves import as_condition
from ...engine.jit.templates import lazily, runtime, stand
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.truth import truth
from ...engine.jit.walking import TreeRewriter, looks_for


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


@slot("jit.size_checks")
@looks_for(ast.Compare)
def size_checks(tree: ast.AST, context) -> ast.AST:
    """`assert a == b` -> `assert _jst.must_equal(a, b)`, `if a != b: raise error` ->
    `if _jst.may_differ(a, b): raise error`.
    """
    return SizeChecks().visit(tree)


class SizeChecks(TreeRewriter):
    def visit_Assert(self, node):
        self.generic_visit(node)
        node.test = fold_equal_sizes(node.test, True)
        return node

    def visit_If(self, node):
        self.generic_visit(node)
        if isinstance(node.body[0], ast.Raise):
            node.test = fold_equal_sizes(node.test, False)
        return node


def fold_equal_sizes(test: ast.expr, holds: bool) -> ast.expr:
    """A test that is always true, or always false, if sizes are as they must be."""
    match test:
        case ast.BoolOp(op, values) if isinstance(op, ast.And if holds else ast.Or):
            test.values = [fold_equal_sizes(each, holds) for each in values]
        case ast.UnaryOp(ast.Not(), operand):
            test.operand = fold_equal_sizes(operand, not holds)
        case ast.Compare(left, [op], [right]) if isinstance(op, ast.Eq if holds else ast.NotEq):
            return runtime("must_equal" if holds else "may_differ", test, left, right)
    return test


# ---- at run time ---------------------------------------------------------------------------------


@slot("jit.runtime.must_equal")
def must_equal(a, b):
    """`a == b` where anything else is an error: sizes that nobody has seen are equal."""
    held = equal_sizes(a, b)
    return a == b if held is None else held


@slot("jit.runtime.may_differ")
def may_differ(a, b):
    """`a != b` where that is an error: sizes that nobody has seen are equal."""
    held = equal_sizes(a, b)
    return a != b if held is None else not held


def equal_sizes(a, b) -> bool | None:
    """Whether two sizes, or lists of sizes, are equal, on which the program relies; else None."""
    if isinstance(a, list | tuple) and type(a) is type(b):
        if all(isinstance(n, int | Dim) for n in (*a, *b)):
            return same_shape(a, b)
    elif isinstance(a, int | Dim) and isinstance(b, int | Dim):
        return same(a, b)
    return None


@slot("jit.runtime.assert_")
def assert_(test, text=None) -> None:
    """`assert test, text()`: a tensor is checked when the program runs."""
    test = as_condition(test)
    if is_static(test):
        check_held(truth(test), str(text()) if text else "", AssertionError)
    elif not test:
        raise AssertionError(*([text()] if text else []))


RUNTIME.assert_ = assert_
RUNTIME.must_equal = must_equal
RUNTIME.may_differ = may_differ
