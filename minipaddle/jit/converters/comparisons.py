"""Comparisons in a row, each operand evaluated once; `a in b`, where `==` may give a tensor."""

from __future__ import annotations

import ast
import operator

from ...engine.core.slots import slot
from ...engine.eager.control_flow import is_static
from ...engine.jit.converters.lazy import Lazy
from ...engine.jit.templates import constant, lazily, runtime
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.truth import and_, not_, truth
from ...engine.jit.walking import Rewriter, looks_for
from ...engine.ops import logic as ops
from ...engine.ops import reduction


def several(node: ast.Compare) -> bool:
    return len(node.ops) > 1


@slot("jit.chains")
@looks_for(ast.Compare)
def chains(tree: ast.AST, context) -> ast.AST:
    """`a < b < c` -> `_jst.chain(a, "<", lambda: b, "<", lambda: c)`."""
    return Chains().visit(tree)


class Chains(Lazy):
    def visit_Compare(self, node):
        self.generic_visit(node)
        if not several(node) or self.stays(node.comparators):
            return node
        steps = zip(node.ops, node.comparators)
        parts = [p for op, x in steps for p in (constant(SIGNS[type(op)][0], x), lazily(x))]
        return runtime("chain", node, node.left, *parts)


@slot("jit.membership")
@looks_for(ast.Compare)
def membership(tree: ast.AST, context) -> ast.AST:
    """`a in b` -> `_jst.in_(a, b)`, `a not in b` -> `_jst.not_in(a, b)`."""
    return Membership().visit(tree)


class Membership(Rewriter):
    def visit_Compare(self, node):
        self.generic_visit(node)
        if several(node) or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        name = "in_" if isinstance(node.ops[0], ast.In) else "not_in"
        return runtime(name, node, node.left, node.comparators[0])


# ---- at run time ---------------------------------------------------------------------------------


@slot("jit.runtime.chain")
def chain(left, sign, right, *rest):
    """`left < right() < …`: each operand once, the rest only if it held so far."""
    right = right()
    held = COMPARE[sign](left, right)
    if not rest:
        return held
    return and_(held, lambda: chain(right, *rest))


@slot("jit.runtime.in_")
def in_(x, container):
    """`x in container`: the program compares tensors."""
    if is_static(container):
        same = ops.equal(container, x)
        return reduction.any(same, axis=tuple(range(same.spec.ndim)), keepdim=False)
    if not isinstance(container, list | tuple) or not any(map(is_static, (x, *container))):
        return x in container
    result = False
    for each in container:
        equal = each is x or each == x
        if is_static(equal):
            equal = truth(equal)
            result = ops.logical_or(result, equal) if is_static(result) else equal
        elif equal:
            return True
    return result


@slot("jit.runtime.not_in")
def not_in(x, container):
    """`x not in container`."""
    return not_(in_(x, container))


SIGNS = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge), ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
    ast.Is: ("is", operator.is_), ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", in_), ast.NotIn: ("not in", not_in),
}  # fmt: skip
COMPARE = dict(SIGNS.values())

for function in (chain, in_, not_in):
    setattr(RUNTIME, function.__name__, function)
