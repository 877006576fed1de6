"""Which names code reads, binds, leaves undefined, still needs."""

import ast
from textwrap import dedent

import pytest

from minipaddle.engine.jit.converters.undefined import mark_conditions
from minipaddle.engine.jit.scope import (
    Definedness,
    Liveness,
    ScopeNames,
    escapes,
    irrefutable,
    movable,
    parameters,
    suspends,
)
from minipaddle.engine.jit.walking import own


def body(text):
    return ast.parse(dedent(text)).body


def names(text):
    found = ScopeNames(body(text))
    return found.read, found.written, found.captured


@pytest.mark.parametrize(
    ("text", "read", "written", "captured"),
    [
        ("x = y", "y", "x", ""),
        ("x += y", "x y", "x", ""),
        ("x.a = y[k]", "x y k", "", ""),
        ("del x", "", "x", ""),
        ("a, (b, *c) = d", "d", "a b c", ""),
        ("for i in r: s = i", "r i", "i s", ""),
        ("with f() as g: pass", "f", "g", ""),
        ("import a.b, c as d\nfrom e import h", "", "a d h", ""),
        ("try: pass\nexcept E as e: pass", "E", "e", ""),
        ("match v:\n case [1, *r]: pass\n case {'k': w, **m}: pass\n case P(x) as p: pass",
         "v P", "r w m x p", ""),
        ("(x := y)", "y", "x", ""),
        ("[i * k for i in r if i]", "r k", "", ""),
        ("{(w := i): j for i in r for j in i}", "r", "w", ""),
        ("def f(a, b=d): return a + c", "c d", "f", "c"),
        ("def f():\n nonlocal n\n n = 1", "n", "f", "n"),
        ("def f():\n global g\n g = 1", "", "f", ""),
        ("f = lambda a: a + c", "c", "f", "c"),
        ("@d\ndef f(a: t) -> r: pass", "d t r", "f", ""),
        ("class C(B, metaclass=M):\n y = x\n z = y\n def m(self): return k", "B M x k", "C", "k"),
        ("async def f(): pass", "", "f", ""),
    ],
)  # fmt: skip
def test_names(text, read, written, captured):
    assert names(text) == (set(read.split()), set(written.split()), set(captured.split()))


def test_declarations():
    found = ScopeNames(body("global a, b\nnonlocal c"))
    assert (found.globals, found.nonlocals) == ({"a", "b"}, {"c"})


def test_parameters():
    (f,) = body("def f(a, /, b, *c, d=1, **e): pass")
    assert parameters(f.args) == set("abcde")


def test_what_is_a_functions_own():
    found = [n.id for n in own(body("x\ndef f(): y")) if isinstance(n, ast.Name)]
    assert found == ["x"]


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("x = 1", True),
        ("return 1", False),
        ("break", False),
        ("for i in r:\n break", True),
        ("for i in r:\n return 1", False),
        ("for i in r: pass\nelse:\n break", False),
        ("while t:\n if u:\n  continue", True),
        ("if t:\n continue", False),
        ("def f(): return 1", True),
        ("f = lambda: (yield)", True),
        ("x = yield 1", False),
        ("try: pass\nexcept E:\n return 1", False),
    ],
)
def test_what_may_move_into_a_function(text, moves):
    assert movable(body(text)) is moves
    assert moves or suspends(body(text)) or escapes(body(text))


def flow(text):
    """The first statement with a body in a function, analysed."""
    (function,) = body(text)
    Liveness(function)
    return next(n for n in function.body if isinstance(n, ast.If | ast.While | ast.For))


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("def f(x):\n if x: y = 1; z = 2\n return y", "y"),
        ("def f(x):\n if x: y = 1\n y = 2\n return y", ""),
        ("def f(x):\n if x: y = 1\n y += 2\n return y", "y"),
        ("def f(x):\n if x: y = 1\n while x: z = y\n", "x y"),
        ("def f(x):\n if x: y = 1\n for y in x: z = y\n", "x"),
        ("def f(x):\n if x: y = 1\n g = lambda: y\n", "y"),
        ("def f(x):\n if x: y = 1\n with x as y: z = y\n", "x"),
        ("def f(x):\n if x: y = z = 1\n try: z = 2\n except E: y\n", "E y"),
        ("def f(x):\n if x: y = z = 1\n match x:\n  case [y]: y\n  case _ if z: x\n", "x z"),
        ("def f(x):\n if x: y = 1\n raise y\n", "y"),
        ("def f(x):\n if x: y = 1\n return\n x\n", ""),
        ("def f(x):\n global y\n if x: y = 1\n", "y"),
        ("def f(x):\n if x: y = z = 1\n for i in x:\n  if i: break\n  if x: continue\n  y\n z",
         "x y z"),
    ],
)  # fmt: skip
def test_what_is_needed_after_an_if(text, live):
    assert flow(text).live == set(live.split())


def test_what_a_loop_needs():
    loop = flow("def f(n):\n while n > 0:\n  t = n\n  n = n - s\n  s = t\n return n")
    assert (loop.live, loop.head) == ({"n"}, {"n", "s"})
    assert loop.binds == (set(), {"t", "n", "s"})
    loop = flow("def f(r):\n for i in r:\n  s = s + i\n  i = 2\n return s")
    assert (loop.live, loop.head) == ({"s"}, {"s"})
    assert loop.binds == ({"i", "s"},)


def maybe(text):
    """The names read where some path leaves them undefined."""
    (function,) = body(text)
    Definedness(function)
    return {n.id for n in ast.walk(function) if getattr(n, "maybe", False)}


@pytest.mark.parametrize(
    ("text", "undefined"),
    [
        ("def f(x):\n if x: y = 1\n return y", "y"),
        ("def f(x):\n if x: y = 1\n else: y = 2\n return y", ""),
        ("def f(x):\n if x: return\n else: y = 2\n return y", ""),
        ("def f(x):\n if x: return\n else: return\n return y", ""),
        ("def f(x):\n while x: y = 1\n return y", "y"),
        ("def f(x):\n for y in x: y\n return y", "y"),
        ("def f(x):\n for i in x: y = 1\n else: y = 2\n return y", "y"),
        ("def f(x):\n y = 1\n del y\n return y", "y"),
        ("def f(x):\n try: y = 1\n except E: pass\n return y", "y"),
        ("def f(x):\n try: y = 1\n except E as e: y = e\n finally: z = 1\n return y, z, e", "e"),
        ("def f(x):\n try: return\n finally: return\n return y", ""),
        ("def f(x):\n with x as y: z = y\n return z", ""),
        ("def f(x):\n with x: return 1\n y = 2\n return y", ""),
        ("def f(x):\n match x:\n  case 1: y = 1\n  case _: y = 2\n return y", ""),
        ("def f(x):\n match x:\n  case 1: y = 1\n  case z if z: y = 2\n return y", "y"),
        ("def f(x):\n if (y := x): pass\n return y", ""),
        ("def f(x):\n if (y := x) > 1 and z: pass\n return y", ""),
        ("def f(x):\n x and (y := 1)\n return y", "y"),
        ("def f(x):\n z = x and (y := 1)\n return y, z", "y"),
        ("def f(x):\n global y\n if x: y = 1\n return y", ""),
        ("def f(x):\n if x: y = 1\n return [y for y in x]", ""),
        ("def f(x):\n if x: y = 1\n raise y", "y"),
    ],
)
def test_what_may_be_undefined(text, undefined):
    assert maybe(text) == set(undefined.split())


def test_conditions():
    tree = ast.parse("if a and (b or c): d = e or f\nnot (g and h)\n[i for i in j if k and l]")
    mark_conditions(tree)
    asked = {ast.unparse(n) for n in ast.walk(tree) if hasattr(n, "asked")}
    assert asked == {"a and (b or c)", "b or c", "g and h", "k and l"}


def test_irrefutable():
    (match,) = body("match x:\n case [a]: pass\n case y if y: pass\n case _: pass")
    assert [irrefutable(case) for case in match.cases] == [False, False, True]
