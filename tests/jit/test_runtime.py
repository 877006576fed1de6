"""The runtime where examples do not reach: unknown sizes, effects, what is called as it is."""

# ruff: noqa: B007

import functools
import json
import re
import sys
import types
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core import dim
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tensor import wrap
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.jit import ignore, tree
from minipaddle.engine.jit.calling import call
from minipaddle.engine.jit.transpile import transpile
from minipaddle.jit.dy2static.utils import Dygraph2StaticException


def run(function, *arrays, unknown=False):
    """The results of a function's program; with `unknown` the first sizes are symbols."""
    arrays = [np.asarray(a) for a in arrays]
    shapes = [(dim.symbol("n", a.shape[0], True), *a.shape[1:]) if unknown and a.ndim else a.shape
              for a in arrays]  # fmt: skip
    specs = [Spec(shape, a.dtype) for shape, a in zip(shapes, arrays)]
    leaves = []

    def program(*inputs):
        found, _ = tree.flatten(transpile(function)(*inputs))
        leaves[:] = found
        return found

    found = trace(program, specs)
    states = [s.storage.read() for s in found.program.states]
    values = Run(np)(found.program, [*arrays, *states])
    out = [x if k is None else wrap(values[k]).tolist() for x, k in zip(leaves, found.places)]
    return out[0] if len(out) == 1 else out


F = np.float32
M = np.arange(6, dtype=F).reshape(3, 2)


# ---- sizes that nobody knows yet ---------------------------------------------------------------


def rows(x):
    s = x[0] * 0
    for row in x:
        s = s * 2 + row
    return s


def numbered(x):
    s = 0.0
    for k, row in enumerate(x, 1):
        s = s + k * row.sum()
    return s


def pairs(x, y):
    s = 0.0
    for a, b in zip(x, reversed(y)):
        s = s + (a * b).sum()
    return s


def with_range(x):
    s = 0.0
    for k in range(x.shape[0]):
        s = s + x[k].sum() * (k + 1)
    return s


def with_break(x):
    s = 0.0
    for row in x:
        if row.sum() > 4:
            break
        s = s + row.sum()
    else:
        s = s - 1
    return s


def with_length(x):
    return x.sum() * len(x), sum(x), len(range(len(x)))


@pytest.mark.parametrize(
    ("function", "arrays", "expected"),
    [
        (rows, [M], rows(M).tolist()),
        (numbered, [M], 1 * 1 + 2 * 5 + 3 * 9),
        (pairs, [M, M], pairs(M, M)),
        (with_range, [M], 1 * 1 + 2 * 5 + 3 * 9),
        (with_break, [M], 1.0),
        (with_break, [M * 0], -1.0),
    ],
)
def test_loops_over_unknown_sizes(function, arrays, expected):
    assert run(function, *arrays, unknown=True) == pytest.approx(expected)


def test_lengths_that_are_unknown():
    def f(x):
        return x * len(x), sum(x)

    assert run(f, M, unknown=True) == [(M * 3).tolist(), M.sum(0).tolist()]


@pytest.mark.parametrize("convert", [list, tuple, iter])
def test_a_sequence_of_the_program_is_no_list(convert):
    def f(n):
        return convert(range(n))

    with pytest.raises(Dygraph2StaticException, match=r"range\(\) of a tensor cannot become"):
        run(f, np.int64(3))


def test_len_of_a_range():
    def f(n):
        return len(range(0, n, 2)), len(range(n))

    assert run(f, np.int64(5)) == [3, 5]


# ---- lists indexed by tensors, other builtins ----------------------------------------------------


def test_a_list_that_a_tensor_cannot_index():
    def f(i):
        return [1, "a"][i]

    with pytest.raises(Dygraph2StaticException, match="not all alike"):
        run(f, np.int64(0))

    def numbers(i):
        return [10, 20, 30][i]

    assert run(numbers, np.int64(-1)) == 30


def test_enumerate_with_a_tensor_as_start():
    def f(n):
        s = n * 0
        for k, v in enumerate([5, 6], n):
            s = s + k * v
        return s

    assert run(f, np.int64(2)) == 2 * 5 + 3 * 6


def test_casts_of_many_elements_say_so():
    for cast in (int, float, bool):
        with pytest.raises(Exception, match="2 elements"):
            run(lambda x, cast=cast: cast(x), np.ones(2, F))


def test_casts_of_sizes_and_other_things():
    def f(x):
        return x * int(x.shape[0]), int("7"), bool([]), float(2)

    assert run(f, np.ones(2, F), unknown=True)[1:] == [7, False, 2.0]


def test_list_methods_with_tensors():
    def f(x):
        items = [x, x + 1]
        return items.index(x), items[1]

    assert run(f, np.ones(1, F)) == [0, [2.0]]


def test_printing_to_a_file(tmp_path):
    def f(x):
        with open(tmp_path / "text", "w") as file:
            print("a", 1, file=file)
        return x

    run(f, np.ones(1, F))
    assert (tmp_path / "text").read_text() == "a 1\n"


# ---- effects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "x", "says"),
    [
        (lambda x: raises(x, ValueError("negative")), -1.0, "negative"),
        (lambda x: raises(x, KeyError()), -1.0, "^\n"),
        (lambda x: raises(x, json.JSONDecodeError("m", "d", 0)), -1.0, "m: line 1 column 1"),
        (lambda x: asserts(x), -1.0, "not above"),
    ],
)
def test_what_is_raised_when_the_program_runs(function, x, says):
    assert run(function, F(2.0)) == 3.0
    with pytest.raises(Exception, match=says):
        run(function, F(x))


def raises(x, error):
    if x < 0:
        raise error
    return x + 1


def asserts(x):
    assert x > 0, "not above"
    return x + 1


def test_a_mistake_in_a_branch_is_no_raise():
    def f(x):
        if x > 0:
            return x.nonsense
        return x

    with pytest.raises(AttributeError, match="nonsense"):
        run(f, F(1.0))


# ---- what loops refuse -----------------------------------------------------------------------


def deletes(n, x):
    y = x
    for i in range(n):
        x = x + y
        if n.shape == []:
            del y
    return x, y


def grows(n, x):
    out = []
    for i in range(n):
        out.append([x, "text"])
    return out


def text(n, x):
    mode = "a"
    for i in range(n):
        mode = mode + "b"
    return mode


def to_none(n, x):
    y = x
    for i in range(n):
        y = None
    return y


def to_shape(n, x):
    y = x.sum()
    for i in range(n):
        y = x
    return y


@pytest.mark.parametrize("function", [deletes, grows, text, to_none, to_shape])
def test_a_loop_keeps_kinds(function):
    with pytest.raises(
        Dygraph2StaticException, match="not the same kind of value after an iteration"
    ):
        run(function, np.int64(3), np.ones(2, F))


def test_what_a_loop_leaves_alone():
    def f(n, x):
        box = {"k": 1, "s": "text", "x": x}
        for i in range(n):
            box["x"] = box["x"] + box["k"]
        return box["k"], box["s"], box["x"]

    assert run(f, np.int64(3), np.zeros(1, F)) == [1, "text", [3.0]]


def test_numbers_in_a_dict_that_change():
    def f(n):
        box = {"k": 1}
        for i in range(n):
            box["k"] = box["k"] * 2
        return box["k"]

    assert run(f, np.int64(5)) == 32


def test_dtypes_are_promoted():
    def f(n):
        k = n
        for i in range(n):
            k = k + 0.5
        return k

    assert run(f, np.int64(3)) == 4.5


# ---- what is called as it is -----------------------------------------------------------------


@paddle.jit.not_to_static
def left_alone(x):
    return 1 if x else 2


def test_not_to_static():
    assert call(left_alone) is left_alone
    assert paddle.jit.not_to_static()(left_alone) is left_alone
    assert call(test_not_to_static) is not test_not_to_static


def test_ignored_modules(monkeypatch):
    monkeypatch.setattr(ignore, "ignored", set())
    assert call(raises) is not raises
    paddle.jit.ignore_module([sys.modules[__name__]])
    assert call(raises) is raises
    with pytest.raises(TypeError, match="ignore_module was given 'json'"):
        paddle.jit.ignore_module("json")


class Plain:
    pass


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Strange(metaclass=Meta):
    def __init__(self, x):
        self.x = x


class Chooses:
    def __new__(cls, x):
        return x if x > 1 else super().__new__(cls)

    def __init__(self, x):
        self.x = x


Point = namedtuple("Point", "x y")


@dataclass
class Data:
    x: int


def test_what_is_not_converted():
    async def later():
        pass

    for f in (json.dumps, paddle.matmul, np.sum, bytes, Plain, Strange, Point, Data, later,
              "a".upper, functools.cmp_to_key, np.ones(2).sum, 3):  # fmt: skip
        assert call(f) == f, f
    assert call(Chooses)(5) == 5
    assert call(Chooses)(0).x == 0
    assert call(functools.partial(raises, error=None))(1) == 2


def test_methods_and_callables():
    class Caller:
        def __call__(self, x):
            return x if x > 1 else self

        def method(self):
            return self

    c = Caller()
    assert call(c)(5) == 5
    assert call(c)(0) is c
    assert call(c.method)() is c
    assert call(c.method).__func__ is not Caller.method
    c.upper = "a".upper
    assert call(types.MethodType(len, [1, 2]))() == 2


def test_functions_without_source_are_called():
    space = {"__name__": "__main__"}
    exec("def f(x):\n    return x + 1", space)
    assert call(space["f"]) is space["f"]


def test_installed_code(monkeypatch):
    path = str(ignore.Path(ignore.sysconfig.get_path("purelib")) / "library" / "model.py")
    space = {"__name__": "library_of_models"}
    exec(compile("def f(x):\n    return x + 1", path, "exec"), space)
    f = space["f"]
    assert not ignore.converts(f)
    module = types.ModuleType("library_of_models")
    module.paddle = paddle
    monkeypatch.setitem(sys.modules, "library_of_models", module)
    ignore.uses_us.cache_clear()
    assert ignore.converts(f)
    ignore.uses_us.cache_clear()


# ---- trees ---------------------------------------------------------------------------------------


class Listing(list):
    pass


class Pair(tuple):
    __slots__ = ()


def test_trees():
    value = {"a": [1, (2, None)], "p": Point(3, Data(4)), "l": Listing([5]), "t": Pair([6])}
    leaves, structure = tree.flatten(value)
    assert leaves == [1, 2, None, 3, 4, 5, 6]
    new = tree.unflatten(structure, [x and x * 10 for x in leaves])
    assert new == {"a": [10, (20, None)], "p": Point(30, Data(40)), "l": [50], "t": (60,)}
    assert [type(x) for x in new.values()] == [list, Point, Listing, Pair]
    assert tree.paths(structure) == [
        "['a'][0]", "['a'][1][0]", "['a'][1][1]", "['p'].x", "['p'].y.x", "['l'][0]", "['t'][0]",
    ]  # fmt: skip
    text = tree.describe(structure)
    assert text.startswith("{'a': [*, (*, *)], 'p': Point(x=*, y=Data(x=*))")
    assert tree.describe(tree.flatten((1,))[1]) == "(*,)"
    assert structure == tree.flatten(value)[1]
    assert structure != tree.flatten({**value, "z": 1})[1]
    assert re.match("Listing", text.partition("'l': ")[2])
