"""`break`, `continue` and early `return` as flags, so that every block has one way out.

Statements after a possible jump run only if no flag is up. If one side of an `if` always jumps, the
statements after it move to the other side, and no flag is read.
"""

from __future__ import annotations

import ast
from enum import Enum
from typing import NamedTuple

from ...core.slots import slot
from ..scope import JUMPS, irrefutable, suspends
from ..templates import constant, fill, fill_expr, load, stand, store
from ..walking import BODIES, TreeRewriter, functions, looks_for, own, statements

VALUE, RETURNED = "_jst_value", "_jst_returned"
BLOCKS = (ast.If, ast.While, ast.For)


class Way(Enum):
    """How control leaves a piece of code."""

    ON = "to the next statement"
    JUMP = "by a jump, always"
    EITHER = "one or the other"


ON, JUMP, EITHER = Way


class JumpTarget(NamedTuple):
    """The loop that a `break` or `continue` belongs to."""

    breaking: str
    continuing: str


@slot("jit.jumps")
@looks_for(*BLOCKS, makes_work=True)
def jumps(tree: ast.AST, context) -> ast.AST:
    """Lower the jumps of every function in the tree."""
    for function in functions(tree):
        if lowerable(function) and not suspends(function.body):
            function.body = Lowering(function).body()
    return tree


def lowerable(function) -> bool:
    """A jump out of `finally` also swallows an exception: such a function is left as it is."""
    tries = [n for n in statements(function.body) if isinstance(n, ast.Try | ast.TryStar)]
    return not any(isinstance(n, JUMPS) for t in tries for n in statements(t.finalbody))


class Lowering:
    """Rewrites the statements of one function."""

    def __init__(self, function: ast.FunctionDef):
        self.function = function
        blocks = [n for n in statements(function.body) if isinstance(n, BLOCKS)]
        self.returning = any(isinstance(n, ast.Return) for n in statements(blocks))
        self.count = 0
        self.loops: list[JumpTarget] = []

    def body(self) -> list:
        """The new body."""
        lowered = self.one_return() if self.returning else self.block(self.function.body)[0]
        return drop_idle_flags(lowered) if self.returning or self.count else lowered

    @slot("jit.jumps.one_return")
    def one_return(self) -> list:
        """The body of a function that returns early: one return, at the end, of the kept value."""
        statements = self.function.body
        first, last = statements[0], statements[-1]
        doc = ast.get_docstring(self.function, clean=False) is not None
        implicit = stand(ast.Return(constant(None, last)), last)
        lowered, _, _ = self.block([*statements[doc:], implicit])
        down = store(RETURNED, constant(False, last), first)
        end = stand(ast.Return(load(VALUE, last)), last)
        return [*statements[:doc], down, *lowered, end]

    @slot("jit.jumps.block")
    def block(self, statements) -> tuple[list, Way, set]:
        """The statements without jumps, how control leaves them, and the flags that may be up."""
        out, flags = [], set()
        for k, statement in enumerate(statements):
            new, way, raised = self.statement(statement)
            out += new
            flags |= raised
            if way is JUMP:
                return out, JUMP, flags
            if raised and way is EITHER:
                rest, then, more = self.block(statements[k + 1 :])
                if rest and not into_other_side(new[-1], rest):
                    out += unless(raised, rest, statements[k + 1])
                way = JUMP if then is JUMP else EITHER
                return out, way, flags | more
        return out, ON, flags

    def statement(self, node) -> tuple[list, Way, set]:
        """One statement, lowered."""
        lower = getattr(self, type(node).__name__, None)
        return ([node], ON, set()) if lower is None else lower(node)

    def Return(self, node):
        return self.early_return(node) if self.returning else ([node], JUMP, set())

    @slot("jit.jumps.return")
    def early_return(self, node):
        """The value is kept, and the flag says that there is one."""
        kept = store(VALUE, node.value or constant(None, node), node)
        return [kept, raise_flag(RETURNED, node)], JUMP, {RETURNED}

    def Raise(self, node):
        return [node], JUMP, set()

    @slot("jit.jumps.break")
    def Break(self, node):
        flag = self.loops[-1].breaking
        return [raise_flag(flag, node)], JUMP, {flag}

    @slot("jit.jumps.continue")
    def Continue(self, node):
        flag = self.loops[-1].continuing
        return [raise_flag(flag, node)], JUMP, {flag}

    def If(self, node):
        node.body, a, up = self.block(node.body)
        node.orelse, b, more = self.block(node.orelse)
        node.jumps = a is not ON or b is not ON
        node.sides = (a, b)
        way = a if a is b else EITHER
        return [node], way, up | more

    def While(self, node):
        before, break_flags = self.lower_loop(node)
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        node.test = goes_on(break_flags, node.test)
        only_return = endless and break_flags == {RETURNED}
        return self.after(node, before, break_flags, JUMP if only_return else EITHER)

    def For(self, node):
        before, break_flags = self.lower_loop(node)
        node.break_flags = tuple(sorted(break_flags))
        return self.after(node, before, break_flags, EITHER)

    @slot("jit.jumps.lower_loop")
    def lower_loop(self, node):
        """Lower a loop's body; return the statements before it, and the flags that end it."""
        self.count += 1
        loop = JumpTarget(f"_jst_break_{self.count}", f"_jst_continue_{self.count}")
        self.loops.append(loop)
        node.body, _, flags = self.block(node.body)
        self.loops.pop()
        node.body[:0] = [store(flag, constant(False, node), node) for flag in sorted(flags)]
        break_flags = flags - {loop.continuing}
        down = store(loop.breaking, constant(False, node), node)
        return [down] * (loop.breaking in break_flags), break_flags

    def after(self, node, before, break_flags, returning):
        """The loop, which is left the way `returning` if a return stops it; then its `else`."""
        orelse, node.orelse = node.orelse, []
        out, flags = [*before, node], break_flags & {RETURNED}
        way = returning if flags else ON
        if orelse:
            rest, then, more = self.block(orelse)
            out += otherwise(break_flags, rest, orelse[0])
            flags |= more
            if then is not ON:  # a return, from the loop or from here: it is sure
                way = then if break_flags <= {RETURNED} else EITHER
        return out, way, flags

    def With(self, node):
        """A context may swallow an exception: code after a sure jump may be reached."""
        node.body, way, flags = self.block(node.body)
        return [node], (ON if way is ON else EITHER), flags

    AsyncWith = With

    def Try(self, node):
        node.body, way, flags = self.block(node.body)
        if node.orelse:
            rest, then, more = self.block(node.orelse)
            node.orelse = unless(flags, rest, node.orelse[0])
            way = then if way is ON else EITHER
            flags = flags | more
        for handler in node.handlers:
            handler.body, other, more = self.block(handler.body)
            flags, way = flags | more, way if way is other else EITHER
        return [node], way, flags

    TryStar = Try

    def Match(self, node):
        flags, ways = set(), set() if irrefutable(node.cases[-1]) else {ON}
        for case in node.cases:
            case.body, way, more = self.block(case.body)
            flags |= more
            ways.add(way)
        return [node], (ways.pop() if len(ways) == 1 else EITHER), flags


def raise_flag(name: str, at) -> ast.stmt:
    return store(name, constant(True, at), at)


def quiet(flags, at) -> ast.expr:
    """An expression: none of the flags is up."""
    return fill_expr("_jst.none(flags)", at, flags=stand(
        ast.Tuple([load(f, at) for f in sorted(flags)], ast.Load()), at))  # fmt: skip


@slot("jit.jumps.goes_on")
def goes_on(flags, test) -> ast.expr:
    """The test of a `while` that `flags` end too: they are asked first."""
    return stand(ast.BoolOp(ast.And(), [quiet(flags, test), test]), test) if flags else test


@slot("jit.jumps.otherwise")
def otherwise(flags, rest, at) -> list:
    """The `else` of a loop: run if nothing stopped it."""
    return unless(flags, rest, at)


def unless(flags, rest, at) -> list:
    """`rest`, if none of the flags is up."""
    if not flags:
        return rest
    down = [store(flag, constant(False, at), at) for flag in sorted(flags)]
    (new,) = fill("if going:\n    rest", at, going=quiet(flags, at), rest=[*down, *rest])
    new.jumps = True
    return [new]


@slot("jit.jumps.other_side")
def into_other_side(node, rest) -> bool:
    """If one side of an `if` always jumps and the other never, `rest` belongs to the other."""
    sides = getattr(node, "sides", None)
    if sides == (JUMP, ON):
        node.orelse += rest
    elif sides == (ON, JUMP):
        node.body += rest
    else:
        return False
    return True


def drop_idle_flags(statements) -> list:
    """The statements without flags that nothing reads."""
    asked = set()
    for node in own(statements):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            asked.add(node.id)
        elif isinstance(node, ast.For):
            asked.update(getattr(node, "break_flags", ()))
    return Idle(asked).visit_list(statements)


class Idle(TreeRewriter):
    fields = BODIES

    def __init__(self, asked):
        self.asked = asked

    def visit_Assign(self, node):
        target = node.targets[0]
        idle = isinstance(target, ast.Name) and target.id.startswith("_jst_")
        return None if idle and target.id not in self.asked else node

    def visit_FunctionDef(self, node):
        return node

    visit_ClassDef = visit_AsyncFunctionDef = visit_FunctionDef

    def generic_visit(self, node):
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [stand(ast.Pass(), node)]
        return node
