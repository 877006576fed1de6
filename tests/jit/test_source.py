"""From a function to its definition, wherever it stands; and the errors if there is none."""

import ast
import linecache
import types

import pytest

from minipaddle.engine.jit import source
from minipaddle.engine.jit.source import SourceMissing, source_of
from minipaddle.engine.jit.transpile import transpile


def text(function):
    return ast.unparse(source_of(function).node)


def doubled(function):
    return lambda *args: function(*args) * 2


@doubled
@doubled
def decorated(x):
    return x + 1


class Owner:
    @staticmethod
    def still(x):
        return x

    @property
    def size(self):
        return 3

    def __private(self, a, *rest, k=1, **more):
        return a

    class Inner:
        def method(self):
            return lambda: 5


PAIR = (lambda x: x + 1, lambda x: x + 2)
NESTED = lambda x: lambda y: x + y
SAME = [lambda: 1, lambda: 1]
MANY_LINES = (
    lambda a, b: a
    * b
)  # fmt: skip


def test_a_function_and_its_place():
    found = source_of(text)
    assert found.node.name == "text"
    assert found.filename == __file__
    assert found.owner is None
    assert found.node.lineno == text.__code__.co_firstlineno


def test_a_decorated_function_is_found_by_its_first_decorator():
    inner = decorated.__closure__[0].cell_contents.__closure__[0].cell_contents
    assert source_of(inner).node.name == "decorated"
    assert isinstance(source_of(decorated).node, ast.Lambda)


def test_methods_know_their_class():
    found = source_of(Owner._Owner__private)
    assert (found.owner, found.node.name) == ("Owner", "__private")
    assert source_of(Owner.still).owner == "Owner"
    assert source_of(Owner.Inner.method).owner == "Inner"
    assert source_of(Owner.Inner().method()).owner == "Inner"


def test_lambdas_on_one_line_are_told_apart():
    assert [text(f) for f in PAIR] == ["lambda x: x + 1", "lambda x: x + 2"]
    assert text(NESTED) == "lambda x: lambda y: x + y"
    assert text(NESTED(1)) == "lambda y: x + y"
    assert text(MANY_LINES) == "lambda a, b: a * b"
    assert [text(f) for f in SAME] == ["lambda: 1", "lambda: 1"]
    if any(end for *_, end in SAME[0].__code__.co_positions()):  # not in Python 3.12.1
        assert [source_of(f).node.col_offset for f in SAME] == [8, 19]


def test_what_is_found_is_a_copy():
    source_of(text).node.name = "other"
    assert source_of(text).node.name == "text"


def test_no_source():
    space = {}
    exec("def f(x):\n    return x", space)
    with pytest.raises(SourceMissing, match="f cannot be converted: its source cannot be read"):
        source_of(space["f"])
    with pytest.raises(OSError, match="made by exec"):
        transpile(space["f"])


def function_in(name, lines):
    """A function of a file that exists for linecache alone, as a notebook's cells do."""
    linecache.cache[name] = (len(lines), None, lines.splitlines(keepends=True), name)
    space = {"__name__": "__main__"}
    exec(compile(lines, name, "exec"), space)
    return space["f"]


def test_a_cell_of_a_notebook():
    f = function_in("/tmp/ipykernel_1/2.py", "k = 2\ndef f(x):\n    return x * k if x > 1 else x\n")
    assert transpile(f)(5) == 10
    assert transpile(f)(1) == 1


@pytest.mark.parametrize("now", ["def g(x):\n    return x\n", "def f(y, x):\n    pass\n", "x ("])
def test_a_file_that_changed(now):
    f = function_in(f"<changed {len(now)}>", "def f(x):\n    return x\n")
    name = f.__code__.co_filename
    linecache.cache[name] = (len(now), None, now.splitlines(keepends=True), name)
    with pytest.raises(SourceMissing, match="changed since it was imported"):
        source_of(f)


def test_arguments_are_counted_with_their_stars():
    assert source.arguments(Owner._Owner__private.__code__) == 5
    assert isinstance(transpile(Owner.Inner().method), types.MethodType)
