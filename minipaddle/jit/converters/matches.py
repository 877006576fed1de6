"""`match` whose patterns only compare: then it is a row of `if`s, on tensors too."""

import ast

from ...engine.core.slots import slot
from ...engine.jit.scope import irrefutable
from ...engine.jit.templates import fill_expr, load, stand, store
from ...engine.jit.walking import BODIES, TreeRewriter, looks_for

SUBJECT = "_jst_subject"


@slot("jit.matches")
@looks_for(ast.Match, makes_work=True)
def matches(tree: ast.AST, context) -> ast.AST:
    """`match x: case 1: A case y: B` -> `subject = x` and `if subject == 1: A else: y = x; B`.

    A `match` with a pattern that takes its subject apart stays Python's.
    """
    return Matches().visit(tree)


class Matches(TreeRewriter):
    fields = BODIES

    def visit_Match(self, node):
        self.generic_visit(node)
        if not all(irrefutable(case) or compares(case.pattern) for case in node.cases):
            return node
        row: list[ast.stmt] = []
        for case in reversed(node.cases):
            row = bind_subject(case) if irrefutable(case) else [choice(case, row)]
        return [store(SUBJECT, node.subject, node.subject), *row]


def compares(pattern: ast.pattern) -> bool:
    """Does a pattern only compare, and bind nothing?"""
    if isinstance(pattern, ast.MatchOr):
        return all(map(compares, pattern.patterns))
    blank = isinstance(pattern, ast.MatchAs) and pattern.name is None
    return blank or isinstance(pattern, ast.MatchValue | ast.MatchSingleton)


def bind_subject(case: ast.match_case) -> list[ast.stmt]:
    """`case y: A` -> `y = subject; A`."""
    name, at = case.pattern.name, case.pattern
    return [*([store(name, load(SUBJECT, at), at)] if name else []), *case.body]


def choice(case: ast.match_case, rest: list[ast.stmt]) -> ast.stmt:
    """`case pattern if guard: A` -> `if test and guard: A`, else the `rest`."""
    at, test = case.pattern, test_of(case.pattern)
    if case.guard is not None:
        test = stand(ast.BoolOp(ast.And(), [test, case.guard]), at)
    return stand(ast.If(test, case.body, rest), at)


def test_of(pattern: ast.pattern) -> ast.expr:
    """Whether the subject fits a pattern."""
    if isinstance(pattern, ast.MatchOr):
        return stand(ast.BoolOp(ast.Or(), [*map(test_of, pattern.patterns)]), pattern)
    if isinstance(pattern, ast.MatchAs):
        return stand(ast.Constant(True), pattern)
    value, sign = pattern.value, "=="
    if isinstance(pattern, ast.MatchSingleton):
        value, sign = stand(ast.Constant(value), pattern), "is"
    return fill_expr(f"{SUBJECT} {sign} value", pattern, value=value)
