"""Walks over trees find what `ast`'s own find; what the survey calls idle changes nothing."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from minipaddle.engine.jit import converters, transpile
from minipaddle.engine.jit.converters import CONVERTERS
from minipaddle.engine.jit.source import source_of
from minipaddle.engine.jit.walking import (
    BODIES,
    INSIDE,
    TreeRewriter,
    Visitor,
    copy_tree,
    functions,
    own,
    statements,
    survey,
    walk,
)
from tests.jit.examples import examples

NOTHING = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
EVERYTHING = """
    @d(1)
    async def f(a, /, b: t = 1, *c: u, k, l=2, **m) -> r:
        async with a as b, c: await d
        async for i in j: yield i
        else: yield from k
        global g
        try: import a.b as c
        except E as e: raise X from e
        else: del x[1:2, ::3]
        finally: nonlocal n
        try: pass
        except* E: pass
        match p:
            case [1, *r] | {'k': w, **s} | P(x, y=z) as q if not (u and v or w): pass
            case None: return
        x: int = {**m, 'a': [1, *b], **{c: d for c, d in e if f if g}}
        lambda a, b=1, *, c, d=3: (y := a) < b <= {c}
        x += (-a if b else ~c)(*d, e=f, **g)
        assert f'{a!r:>{w}}', (i for i in j)
        class C(B, metaclass=M):
            def m(self): return super().m
        while True:
            if a: break
            elif b: continue
"""
FILES = sorted(Path(converters.__file__).parent.glob("*.py"))


def trees():
    yield ast.parse(dedent(EVERYTHING))
    for path in FILES:
        yield ast.parse(path.read_text())


def test_a_walk_meets_all_that_has_something_inside():
    for tree in trees():
        wanted = [id(n) for n in ast.walk(tree) if not isinstance(n, NOTHING)]
        assert sorted(wanted) == sorted(id(n) for n in walk(tree))
        assert {id(f) for f in functions(tree)} == {
            id(n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)
        }


def test_fields():
    assert INSIDE[ast.If] == ("test", "body", "orelse")
    assert BODIES[ast.If] == ("body", "orelse")
    assert INSIDE[ast.Constant] == BODIES[ast.Lambda] == INSIDE[type(None)] == ()


def test_own_statements():
    (f,) = ast.parse("def f():\n if a: b\n def g(): c\n class D: e\n lambda: h").body
    assert {n.id for n in own(f.body) if isinstance(n, ast.Name)} == {"a", "b"}
    kinds = sorted(type(n).__name__ for n in statements(f.body))
    assert kinds == ["ClassDef", "Expr", "Expr", "FunctionDef", "If"]


def test_a_copy_is_the_same_and_shares_nothing_that_changes():
    for tree in trees():
        new = copy_tree(tree)
        assert ast.dump(new, include_attributes=True) == ast.dump(tree, include_attributes=True)
        assert not {*map(id, walk(tree))} & {*map(id, walk(new))}


def test_a_visitor_comes_where_asts_comes():
    class Ours(Visitor):
        def __init__(self):
            self.names = []

        def visit_Name(self, node):
            self.names.append(node.id)

        def visit_Lambda(self, node):
            self.generic_visit(node)
            self.names.append("lambda")

    class Theirs(ast.NodeVisitor):
        __init__ = Ours.__init__
        visit_Name, visit_Lambda = Ours.visit_Name, Ours.visit_Lambda

    for tree in trees():
        ours, theirs = Ours(), Theirs()
        Ours.visit(ours, tree)
        Theirs.generic_visit(theirs, tree)
        assert ours.names == theirs.names
        assert ours.names or not any(isinstance(n, ast.Name) for n in ast.walk(tree))


def changes(kind):
    """A rewriter that replaces, doubles, and takes away."""

    class Changes(kind):
        def visit_Name(self, node):
            return ast.Constant(node.id)

        def visit_Expr(self, node):
            self.generic_visit(node)
            return [node, ast.Pass()]

        def visit_Assert(self, node):
            return None

        def visit_keyword(self, node):
            return None

        visit_Global = visit_Nonlocal = visit_Assert

    return Changes()


def test_a_rewriter_does_what_asts_does():
    for tree in trees():
        theirs = changes(ast.NodeTransformer).visit(copy_tree(tree))
        assert ast.dump(changes(TreeRewriter).visit(tree)) == ast.dump(theirs)


def test_nothing_to_visit():
    class Nothing(Visitor):
        pass

    class Same(TreeRewriter):
        pass

    name = ast.Name("a", ast.Load())
    assert Nothing().visit(name) is None
    assert Same().visit(name) is name


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("part", range(4))
def test_what_the_survey_passes_over_changes_nothing(part, monkeypatch):
    passed = 0
    for example in examples()[part::4]:
        *_, (_, quick) = transpile.passes(example.function, source_of(example.function))
        with monkeypatch.context() as patch:
            patch.setattr(transpile, "survey", lambda tree: set())
            *_, (_, whole) = transpile.passes(example.function, source_of(example.function))
        assert ast.dump(quick) == ast.dump(whole)
    for _, tree in transpile.passes(example.function, source_of(example.function)):
        passed += len(survey(tree))
    assert passed > len(CONVERTERS)
