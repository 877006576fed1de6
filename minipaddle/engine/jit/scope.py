"""The names in a piece of code: those it reads, binds, leaves undefined, still needs.

Everything here is about one function's own names. A nested function, a lambda, a class and a
comprehension have scopes of their own: seen from outside, they read what is free in them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from itertools import chain

from ..core.slots import slot
from .walking import BODIES, SCOPES, Visitor, own, statements

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
JUMPS = (ast.Return, ast.Break, ast.Continue)


class ScopeNames(Visitor):
    """The names some nodes read, bind, share with nested functions, and declare."""

    def __init__(self, nodes: Iterable[ast.AST] = ()):
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.captured: set[str] = set()  # used inside nested functions
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.visit_all(nodes)

    def visit_Name(self, node):
        (self.read if isinstance(node.ctx, ast.Load) else self.written).add(node.id)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)

    def visit_Global(self, node):
        self.globals.update(node.names)

    def visit_Nonlocal(self, node):
        self.nonlocals.update(node.names)

    def visit_Import(self, node):
        self.written.update((a.asname or a.name.partition(".")[0]) for a in node.names)

    visit_ImportFrom = visit_Import

    def binding(self, node):
        """`except E as name`, `case [*name]`, `case {**name}`, `case P as name`."""
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.written.add(name)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = binding

    def visit_FunctionDef(self, node):
        self.written.add(node.name)
        self.function(node, [*node.decorator_list, node.returns], node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self.function(node, [], [node.body])

    def function(self, node, outside, body):
        """Names at the definition are read now, free variables of the body later."""
        a = node.args
        params = parameters(a)
        hints = [p.annotation for p in (*a.posonlyargs, *a.args, *a.kwonlyargs) if p.annotation]
        self.visit_all([*outside, *hints, *a.defaults, *a.kw_defaults])
        inner = ScopeNames(body)
        local = (inner.written | params) - inner.globals - inner.nonlocals
        free = (inner.read | inner.written | inner.captured) - local - inner.globals
        self.read |= free
        self.captured |= free

    def visit_ClassDef(self, node):
        self.visit_all([*node.decorator_list, *node.bases, *(k.value for k in node.keywords)])
        inner = ScopeNames(node.body)
        self.read |= inner.read - inner.written | inner.captured
        self.captured |= inner.captured
        self.written.add(node.name)

    def comprehension(self, node):
        """Its targets are its own; `:=` inside it binds outside."""
        inner = ScopeNames()
        inner.generic_visit(node)
        targets = ScopeNames(g.target for g in node.generators).written
        self.read |= inner.read - targets
        self.written |= inner.written - targets
        self.captured |= inner.captured - targets

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension


@slot("jit.find_modified_names")
def find_modified_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that these nodes bind or delete in their function."""
    return ScopeNames(nodes).written


def parameters(a: ast.arguments) -> set[str]:
    """The names of a function's parameters."""
    stars = filter(None, [a.vararg, a.kwarg])
    return {p.arg for p in chain(a.posonlyargs, a.args, a.kwonlyargs, stars)}


def suspends(nodes: Iterable[ast.AST]) -> bool:
    """Whether there is a `yield` or an `await`, which cannot move into another function."""
    return not {*map(type, own(nodes))}.isdisjoint(SUSPENDING)


def escapes(nodes: Iterable[ast.AST]) -> bool:
    """Whether a return, or a break or continue of an outer loop, leaves these nodes."""
    return any(map(leaves, nodes))


def leaves(node: ast.AST) -> bool:
    """The same of one statement."""
    if isinstance(node, SCOPES):
        return False
    if isinstance(node, LOOPS):
        inside = statements(node.body)
        return any(isinstance(n, ast.Return) for n in inside) or escapes(node.orelse)
    below = (getattr(node, name) for name in BODIES[type(node)])
    return isinstance(node, JUMPS) or any(map(escapes, below))


def movable(nodes: list[ast.AST]) -> bool:
    """Whether these statements may become a function of their own."""
    return not suspends(nodes) and not escapes(nodes)


class Liveness:
    """For each `if` and each loop of a function: the names whose values are still needed.

    Sets `live` on them: what is needed after them; on loops `head`: what is needed at the start of
    an iteration; and `binds`: the names that each of their blocks binds.
    """

    def __init__(self, function: ast.FunctionDef):
        # nothing changes while the analysis runs, and it visits the body of a loop often
        self.names = cache(lambda node: ScopeNames([node]))
        self.binds = cache(lambda node, field: find_modified_names(getattr(node, field)))
        names = ScopeNames(function.body)
        # what other code can see is always needed
        self.always = names.captured | names.globals | names.nonlocals
        self.loops: list[tuple[set, set]] = []  # (needed after, needed at the next iteration)
        self.block(function.body, set())

    @slot("jit.live.block")
    def block(self, statements, live: set) -> set:
        """The names needed before these statements, when `live` is needed after them."""
        for statement in reversed(statements):
            live = self.before(statement, live)
        return live

    def before(self, statement, live: set) -> set:
        """The names needed before one statement."""
        visit = getattr(self, type(statement).__name__, self.plain)
        return visit(statement, live | self.always) | self.always

    @slot("jit.live.plain")
    def plain(self, node, live):
        names = self.names(node)
        return (live - names.written) | names.read

    def Return(self, node, live):
        return self.leaving(node)

    def Raise(self, node, live):
        return self.leaving(node)

    @slot("jit.live.leaving")
    def leaving(self, node):
        """No statement after a `return` or a `raise` is reached."""
        return self.names(node).read

    def Break(self, node, live):
        return self.loops[-1][0]

    def Continue(self, node, live):
        return self.loops[-1][1]

    def If(self, node, live):
        node.live, node.binds = live, (self.binds(node, "body"), self.binds(node, "orelse"))
        return self.fork(node, live)

    @slot("jit.live.fork")
    def fork(self, node, live):
        """Before an `if`: its test, and what either side needs."""
        sides = self.block(node.body, live) | self.block(node.orelse, live)
        return sides | self.names(node.test).read

    def While(self, node, live):
        test = self.names(node.test)
        node.binds = (test.written, self.binds(node, "body"))
        return self.loop(node, live, test.read, set())

    def For(self, node, live):
        target = self.names(node.target)
        node.binds = (target.written | self.binds(node, "body"),)
        break_flags = set(getattr(node, "break_flags", ()))  # each iteration reads them
        before = self.loop(node, live, target.read | break_flags, target.written)
        return before | self.names(node.iter).read

    AsyncFor = For

    def loop(self, node, live, reads, writes):
        """Iterate to the fixed point: what one iteration needs, the one before must keep."""
        after = self.block(node.orelse, live)
        head, before = after | reads, None
        while head != before:
            before = head
            self.loops.append((live | after, head))
            head = head | (self.block(node.body, head) - writes)
            self.loops.pop()
        node.live, node.head = live, head
        return head

    def With(self, node, live):
        live = self.block(node.body, live)
        for item in reversed(node.items):
            names = self.names(item)
            live = (live - names.written) | names.read
        return live

    AsyncWith = With

    def Try(self, node, live):
        """Any statement of the body may be the last, so what handlers need is needed throughout."""
        final = self.block(node.finalbody, live)
        caught = [self.block(h.body, final) | self.names(h.type).read for h in node.handlers]
        outer, self.always = self.always, self.always.union(final, *caught)
        inside = self.block(node.body, self.block(node.orelse, final))
        self.always = outer
        return inside.union(final, *caught)

    TryStar = Try

    def Match(self, node, live):
        cases = [self.case(case, live) for case in node.cases]
        return live.union(*cases) | self.names(node.subject).read

    def case(self, case, live):
        pattern, guard = self.names(case.pattern), self.names(case.guard)
        return (self.block(case.body, live) | guard.read) - pattern.written | pattern.read


class Definedness(ast.NodeVisitor):
    """Sets `maybe` on each read of a local name that some path leaves undefined.

    `found` says whether there is one. What converters have named is not looked at.
    """

    EVERYTHING = None  # after a jump nothing is reached, and everything may be assumed

    def __init__(self, function: ast.FunctionDef):
        names = ScopeNames(function.body)
        params = parameters(function.args)
        local = names.written - names.globals - names.nonlocals - params
        self.local = {name for name in local if not name.startswith("_jst_")}
        self.found = False
        self.block(function.body, set())

    @slot("jit.known.block")
    def block(self, statements, known):
        """The names bound for certain after these statements, when `known` is before them."""
        for statement in statements:
            if known is self.EVERYTHING:
                break
            known = self.after(statement, known)
        return known

    def after(self, statement, known):
        """The same for one statement."""
        return getattr(self, type(statement).__name__, self.plain)(statement, known)

    def reads(self, nodes, known):
        """Mark the reads in expressions, and add what `:=` binds for certain in one."""
        self.mark(nodes, self.local - known)
        return known.union(*map(names_bound_first, nodes))

    def mark(self, nodes, loose):
        """Mark the reads of these names; a comprehension's targets are its own."""
        for node in own(nodes, (*SCOPES, *COMPREHENSIONS)) if loose else ():
            if isinstance(node, ast.Name) and node.id in loose and isinstance(node.ctx, ast.Load):
                node.maybe = self.found = True
            elif isinstance(node, COMPREHENSIONS):
                targets = ScopeNames(g.target for g in node.generators).written
                self.mark([node.generators[0].iter], loose)
                self.mark([*ast.iter_child_nodes(node)], loose - targets)

    def plain(self, node, known):
        self.reads([node], known)
        written = ScopeNames([node]).written
        if isinstance(node, ast.Delete):
            return known - written
        if written <= known:
            return known
        lazy = (ast.BoolOp, ast.IfExp, ast.Compare, *COMPREHENSIONS)
        if isinstance(node, ast.AugAssign | ast.Assign | ast.Expr) and any(
            isinstance(n, lazy) for n in own([node])
        ):
            certain = ScopeNames(getattr(node, "targets", [getattr(node, "target", node)]))
            return known | (certain.written if not isinstance(node, ast.Expr) else set())
        return known | written

    def Return(self, node, known):
        self.reads([node], known)
        return self.EVERYTHING

    Raise = Break = Continue = Return

    @slot("jit.known.both")
    def both(self, *paths):
        """The names bound for certain where paths join."""
        paths = [path for path in paths if path is not self.EVERYTHING]
        return set.intersection(*paths) if paths else self.EVERYTHING

    @slot("jit.known.if")
    def If(self, node, known):
        known = self.reads([node.test], known)
        return self.both(self.block(node.body, known), self.block(node.orelse, known))

    @slot("jit.known.while")
    def While(self, node, known):
        known = self.reads([node.test], known)
        self.block(node.body, known)
        return self.both(self.block(node.orelse, known), known)

    @slot("jit.known.for")
    def For(self, node, known):
        known = self.reads([node.iter], known)
        self.block(node.body, known | ScopeNames([node.target]).written)
        return self.both(self.block(node.orelse, known), known)

    AsyncFor = For

    def With(self, node, known):
        self.reads(node.items, known)
        inside = self.block(node.body, known | ScopeNames(node.items).written)
        return known if inside is self.EVERYTHING else inside

    AsyncWith = With

    def Try(self, node, known):
        done = self.block(node.orelse, self.block(node.body, known))
        caught = []
        for handler in node.handlers:
            self.reads(filter(None, [handler.type]), known)
            name = {handler.name} if handler.name else set()
            path = self.block(handler.body, known | name)
            caught.append(path if path is self.EVERYTHING else path - name)
        met = self.both(done, *caught)
        final = self.block(node.finalbody, known)
        return met if met is self.EVERYTHING or final is self.EVERYTHING else met | final

    TryStar = Try

    def Match(self, node, known):
        self.reads([node.subject], known)
        paths = [known]
        for case in node.cases:
            bound = known | ScopeNames([case.pattern]).written
            self.reads(filter(None, [case.guard]), bound)
            paths.append(self.block(case.body, bound))
        return self.both(*(paths[1:] if irrefutable(node.cases[-1]) else paths))


def irrefutable(case: ast.match_case) -> bool:
    """Whether a `case` matches every value."""
    pattern = case.pattern
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and case.guard is None


def names_bound_first(test: ast.AST) -> set[str]:
    """The names that a test always binds: by `:=` in its first operand."""
    while isinstance(test, ast.BoolOp | ast.Compare):
        test = test.values[0] if isinstance(test, ast.BoolOp) else test.left
    return ScopeNames([test]).written if isinstance(test, ast.NamedExpr | ast.Call) else set()
