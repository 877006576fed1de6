"""Comparisons in a row, each operand evaluated once; `a in b`, where `==` may give a tensor;
`a is b`, where a tensor may choose what they are.
"""

import ast
import operator

from ...eager.numbers import boolean
from ...engine.core.slots import slot
from ...engine.eager.control_flow import is_static
from ...engine.jit.converters.lazy import Lazy
from ...engine.jit.templates import constant, lazily, runtime
from ...engine.jit.transpile import RUNTIME
from ...engine.jit.truth import and_, not_, truth
from ...engine.jit.walking import TreeRewriter, looks_for
from ...engine.ops import logic as ops
from ...engine.ops import reduction
from ..aliasing import same_object


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
    """`a in b` -> `_jst.in_(a, b)`, `a not in b` -> `_jst.not_in(a, b)`; likewise `is`."""
    return Membership().visit(tree)


class Membership(TreeRewriter):
    def visit_Compare(self, node):
        self.generic_visit(node)
        right = node.comparators[0]
        name = NAMES.get(type(node.ops[0]))
        if (
            several(node)
            or name is None
            or (isinstance(right, ast.Constant) and right.value is None)
        ):
            return node
        return runtime(name, node, node.left, right)


NAMES = {ast.In: "in_", ast.NotIn: "not_in", ast.Is: "is_", ast.IsNot: "is_not"}
"""The functions of the runtime; None is nothing that a tensor chooses."""


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
@boolean
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
@boolean
def not_in(x, container):
    """`x not in container`."""
    return not_(in_(x, container))


@slot("jit.runtime.is_")
def is_(a, b):
    """`a is b`."""
    return same_object(a, b)


@slot("jit.runtime.is_not")
def is_not(a, b):
    """`a is not b`."""
    return not_(same_object(a, b))


SIGNS = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge), ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
    ast.Is: ("is", is_), ast.IsNot: ("is not", is_not),
    ast.In: ("in", in_), ast.NotIn: ("not in", not_in),
}  # fmt: skip
COMPARE = dict(SIGNS.values())

for function in (chain, in_, not_in, is_, is_not):
    setattr(RUNTIME, function.__name__, function)
