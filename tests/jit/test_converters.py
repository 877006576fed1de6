"""What each converter makes of its construct, printed; the list of them; slots; the cache."""

import ast
import contextlib
import io
import re
from textwrap import dedent

import pytest

import minipaddle as paddle
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.jit.converters import CONVERTERS, Conversion
from minipaddle.engine.jit.transpile import INSTRUMENTS, code_text, transpile
from minipaddle.jit import verbosity
from minipaddle.jit.stages import stages

BY_NAME = {c.__name__: c for c in CONVERTERS}


def converted(name, text, **context):
    """What one converter makes of a function."""
    tree = ast.parse(dedent(text))
    return ast.unparse(BY_NAME[name](tree, Conversion(**context)))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("signature", "@d\ndef f(a, b=1, *, c=2): pass", "def f(a, b, *, c):\n    pass"),
        ("signature", "lambda x=1: x", "lambda x: x"),
        ("declarations", "def f():\n x\n global g", "def f():\n    global g\n    x\n    pass"),
        ("annotations", "def f(x: T) -> R:\n y: T = x\n z: T",
         "def f(x):\n    y = x\n    pass"),
        ("annotations", "class C:\n x: int = 1\n def f(self): y: int = 1",
         "class C:\n    x: int = 1\n\n    def f(self):\n        y = 1"),
        ("supers", "def f(self): return super().f(super(A, self))",
         "def f(self):\n    return super(__class__, self).f(super(A, self))"),
        ("undefined", "def f(x):\n if x: y = 1\n return y",
         "def f(x):\n    if x:\n        y = 1\n    return _jst.require_defined(y)"),
        ("writes", "def f():\n x.a, y[k] = z\n del x.a", "def f():\n"
         "    _jst.writing(x, 'a').a, _jst.writing(y)[k] = z\n    del _jst.writing(x, 'a').a"),
        ("writes", "def f():\n global g\n g = 1",
         "def f():\n    global g\n    _jst.writing_names(lambda: (g,))\n    g = 1"),
        ("tries", "try: a\nexcept E: b\nexcept: c",
         "try:\n    with _jst.trying(lambda: (E, BaseException)):\n        a\n"
         "except _jst.catch(E):\n    b\nexcept _jst.catch(BaseException):\n    c"),
        ("tries", "try: a\nfinally: b", "try:\n    a\nfinally:\n    b"),
        ("conditional", "a if t else b", "_jst.if_exp(t, lambda: a, lambda: b)"),
        ("conditional", "class C:\n x = a if t else b", "class C:\n    x = a if t else b"),
        ("conditional", "def f(): return (yield a) if t else b",
         "def f():\n    return (yield a) if t else b"),
        ("conditional", "lambda: (y := a) if t else b", "lambda: (y := a) if t else b"),
        ("logic", "a and b and c", "_jst.and_value(a, lambda: b, lambda: c)"),
        ("logic", "a or b and c", "_jst.or_value(a, lambda: _jst.and_value(b, lambda: c))"),
        ("comprehensions", "[f(x) for x in a if x], (x for x in b)",
         "(_jst.collect(a, lambda _jst_items: [f(x) for x in _jst_items if x]),"
         " _jst.collect(b, lambda _jst_items: (x for x in _jst_items)))"),
        ("comprehensions", "[(y := x) for x in a], {x for x in a}",
         "([(y := x) for x in a], {x for x in _jst.require_known(a)})"),
        ("repetitions", "[a] * n, a * [n]", "(_jst.repeat([a], n), a * [n])"),
        ("negation", "not a, -a", "(_jst.not_(a), -a)"),
        ("chains", "a < b <= c; a < b",
         "_jst.chain(a, '<', lambda: b, '<=', lambda: c)\na < b"),
        ("texts", "f'a {x!r:{n}}', '{}'.format(x, *a, k=1), '%d' % x, f'a', x % '%d', x.format(1)",
         "(_jst.text('a ', (x, 114, _jst.text((n, -1, '')))), _jst.format_text('{}', x, *a, k=1), "
         "_jst.percent('%d', x), f'a', x % '%d', x.format(1))"),
        ("membership", "a in b, a not in b, a < b", "(_jst.in_(a, b), _jst.not_in(a, b), a < b)"),
        ("assertions", "assert a, b", "_jst.assert_(a, lambda: b)"),
        ("assertions", "assert a", "_jst.assert_(a)"),
        ("assertions", "class C:\n assert a", "class C:\n    assert a"),
        ("size_checks", "assert a == b and c", "assert _jst.must_equal(a, b) and c"),
        ("size_checks", "assert a != b or c", "assert a != b or c"),
        ("size_checks", "if a != b or not c == d: raise e",
         "if _jst.may_differ(a, b) or not _jst.must_equal(c, d):\n    raise e"),
        ("size_checks", "if a == b: raise e", "if a == b:\n    raise e"),
        ("subscripts", "x[i], x[0], x[i:j], x[i, ::2]; x[i] = 1",
         "(_jst.item(x, i), _jst.item(x, 0), x[i:j], x[i, ::2])\nx[i] = 1"),
        ("calls", "f(g(x)).h(*a, **k)",
         "_jst.call(_jst.call(f)(_jst.call(g)(x)).h)(*a, **k)"),
        ("calls", "_jst.none(f)", "_jst.none(f)"),
    ],
)  # fmt: skip
def test_one_converter(name, before, after):
    assert converted(name, before) == after


def test_reads_are_noted_in_what_is_compiled():
    text = """
    def f(x):
        self.a.b[k].append(x.c)
        o.n += self.__d
        return d["k"] + g.e[x.i]
    """
    tree = ast.parse(dedent(text))
    noted, names = INSTRUMENTS[-1](BY_NAME["writes"](tree, Conversion()), "_Net")
    assert ast.unparse(noted) == dedent("""\
        def f(x):
            _jst.attr(_jst.attr(_jst.attr(self, 'a'), 'b')[k], 'append')(_jst.attr(x, 'c'))
            _jst.writing(_jst.read(o, 'n'), 'n').n += _jst.attr(self, '_Net__d')
            return _jst.entry(d, 'k') + _jst.attr(g, 'e')[_jst.attr(x, 'i')]""")
    assert names == {"self": True, "k": True, "x": True, "o": True, "d": False, "g": True}


JUMPS = [
    ("if a: return b\nreturn c", """
        if a:
            _jst_value = b
        else:
            _jst_value = c
        return _jst_value"""),
    ("for i in r:\n if a: continue\n g(i)", """
        for i in r:
            if a:
                pass
            else:
                g(i)"""),
    ("while t:\n if a: break\n g()", """
        _jst_break_1 = False
        while _jst.none((_jst_break_1,)) and t:
            _jst_break_1 = False
            if a:
                _jst_break_1 = True
            else:
                g()"""),
    ("for i in r:\n if a:\n  if b: break\n g()\nelse: h()", """
        _jst_break_1 = False
        for i in r:
            _jst_break_1 = False
            if a:
                if b:
                    _jst_break_1 = True
            if _jst.none((_jst_break_1,)):
                _jst_break_1 = False
                g()
        if _jst.none((_jst_break_1,)):
            _jst_break_1 = False
            h()"""),
    ("with c: return a\nreturn b", """
        with c:
            return a
        return b"""),
    ("for i in r:\n try: g()\n finally: continue", """
        for i in r:
            try:
                g()
            finally:
                continue"""),
    ("while t:\n yield\n if a: break", """
        while t:
            yield
            if a:
                break"""),
    ("if a: raise b\nif c: return d\nelse: raise e", """
        if a:
            raise b
        if c:
            _jst_value = d
        else:
            raise e
        return _jst_value"""),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), JUMPS)
def test_jumps(before, after):
    lines = "".join(f"\n    {line}" for line in before.splitlines())
    expected = "\n    ".join(["def f():", *dedent(after).strip().splitlines()])
    assert converted("jumps", f"def f():{lines}") == expected


def test_control_flow_becomes_functions():
    text = "def f(x):\n if x: y = 1; t = 2\n else: y = 2\n return y"
    assert converted("if_else", text) == dedent(
        """\
        def f(x):
            t: 'bound in a block'
            y: 'bound in a block'

            def _jst_then():
                nonlocal t, y
                y = 1
                t = 2

            def _jst_else():
                nonlocal y
                y = 2
            _jst.if_else(x, _jst_then, _jst_else, live_out=('y',), local=('t',))
            return y"""
    )
    assert converted("while_loop", "def f(x):\n while x: x = g(x)\n return x") == dedent(
        """\
        def f(x):

            def _jst_test():
                return x

            def _jst_body():
                nonlocal x
                x = g(x)
            _jst.while_loop(_jst_test, _jst_body, live_out=('x',))
            return x"""
    )
    assert converted("for_loop", "def f(r):\n global s\n for i, j in r: s = s + i") == dedent(
        """\
        def f(r):
            global s
            i: 'bound in a block'
            j: 'bound in a block'

            def _jst_body(_jst_item):
                nonlocal i, j
                global s
                i, j = _jst_item
                s = s + i
            _jst.for_loop(r, _jst_body, live_out=('s',), local=('i', 'j'))"""
    )


def test_what_stays_as_it_is():
    for text in (
        "class C:\n    if a:\n        b = 1",
        "def f():\n    for i in r:\n        yield i",
        "def f():\n    while t:\n        yield\n        if a:\n            break",
        "async def f():\n    async for i in r:\n        await i",
    ):
        for name in ("if_else", "while_loop", "for_loop"):
            assert converted(name, text) == text


def test_a_walrus_in_a_generated_lambda_binds_in_the_function():
    def f(a, b):
        """Text."""
        global WALRUS
        x = a and (y := b)
        z = a or (WALRUS := b)
        return x, y if a else None, z

    assert transpile(f)(1, 2) == (2, 2, 1)
    assert transpile(f)(0, 2) == (0, None, 2)
    assert WALRUS == 2
    text = code_text(f)
    assert "def _jst_set_y(_jst_new):\n        nonlocal y\n" in text
    assert "global WALRUS" in text
    assert text.index("Text.") < text.index("_jst_set_y")


def example(x, n):
    for k in range(n):
        if x > k:
            x = x + 1
    return x


def test_stages_print():
    found = stages(example)
    assert [s.name for s in found] == [c.__name__ for c in CONVERTERS]
    before, after = ([ast.unparse(getattr(s, side)) for s in found] for side in ("before", "after"))
    assert after[:-1] == before[1:]
    assert before[0].startswith("def example(x, n):\n    for k in range(n):")
    assert after[-1] == code_text(example)
    changed = [s.name for s, a, b in zip(found, before, after) if a != b]
    assert changed == ["if_else", "for_loop", "calls"]


def test_every_converter_is_a_slot():
    def shouting(tree, context):
        return ast.parse("def example(x, n):\n    return 'mine'")

    assert transpile(example)(1, 3) == 4
    with plugged("jit.calls", shouting):
        assert transpile(example)(1, 3) == "mine"
        assert code_text(example) == "def example(x, n):\n    return 'mine'"
    assert transpile(example)(1, 3) == 4


def test_a_conversion_is_made_once():
    a, b = transpile(example), transpile(example)
    assert a is not b
    assert a.__code__ is b.__code__


def test_what_a_converted_function_keeps():
    def outer(k):
        def f(a, b: int = 2, *, c=3):
            """Text."""
            nonlocal k
            k += 1
            return a + b + c + k

        return f

    f = outer(10)
    g = transpile(f)
    assert (g.__name__, g.__qualname__, g.__doc__) == (f.__name__, f.__qualname__, "Text.")
    assert (g.__defaults__, g.__kwdefaults__, g.__module__) == ((2,), {"c": 3}, __name__)
    assert g.__globals__ is f.__globals__
    assert (g(1), f(1), g(1)) == (17, 18, 19), "they share their cells"
    assert g.__code__.co_firstlineno == f.__code__.co_firstlineno
    assert g.__code__.co_filename == __file__


def test_what_is_no_function():
    with pytest.raises(TypeError, match="transpile was given 3"):
        transpile(3)


@pytest.fixture
def levels(monkeypatch):
    monkeypatch.setattr("minipaddle.engine.jit.transpile._cache", {})
    yield
    paddle.jit.set_code_level(-1)
    paddle.jit.set_verbosity(0)


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize("level", [1, 2, 3])
def test_verbosity(level, capsys):
    def f(x):
        return x if x > 1 else -x

    paddle.jit.set_verbosity(level)
    assert transpile(f)(3) == 3
    log = capsys.readouterr().err
    assert re.match(r"converting test_verbosity.<locals>.f \(.*test_converters.py:\d+\)", log)
    assert ("return x if x > 1 else -x" in log) is (level > 1)
    assert ("after conditional:\n" in log) is (level > 2)


@pytest.mark.usefixtures("levels")
def test_code_level():
    def f(x):
        return x if x > 1 else len(x)

    paddle.jit.set_code_level(also_to_stdout=True)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        transpile(f)
    assert out.getvalue() == err.getvalue()
    assert "_jst.if_exp(x > 1, lambda: x, lambda: _jst.call(len)(x))" in out.getvalue()
    assert verbosity.Levels.code == 100
