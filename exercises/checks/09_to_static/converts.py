"""Checks of 09_to_static/converts."""

import functools
import json
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent
from types import FunctionType, MethodType, ModuleType

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.jit import ignore
from minipaddle.engine.jit.transpile import transpile
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="What is converted, and what is only called",
    level="hard",
    minutes=45,
    before=("07_rewriting",),
    slots={"jit.converts": "converts", "jit.runtime.call": "call"},
    hints=(
        "Why would you not simply convert everything that has a source? And why not only what "
        "stands in the file of the function that is converted?",
        "Chapter 9, “What is converted”. The engine's are `converts` in "
        "minipaddle/engine/jit/ignore.py and `call` in minipaddle/engine/jit/calling.py.",
        "converts: False if marked, converted, async, or its module is ignored\n"
        "    of this package: is it in OPEN?\n"
        "    of Python's library: False\n"
        "    not installed, or installed and using this package\n"
        "call: by type(function); what stayed the same is given back as it is",
    ),
    wrong={
        "overlooking not_to_static": (
            "getattr(function, MARK, False) or '_jst' in code.co_freevars → '_jst' in "
            "code.co_freevars"
        ),
        "converting what has been converted": (
            "getattr(function, MARK, False) or '_jst' in code.co_freevars → getattr(function, "
            "MARK, False)"
        ),
        "converting coroutines": "if code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR): → pass",
        "converting the modules to be ignored": "if _in_one_of(module, ignored): → pass",
        "ignoring modules whose names begin alike": "name + '.' → name",
        "ignoring a module, but not those of its package": (
            "module == name or module.startswith(name + '.') → module == name"
        ),
        "converting all of this package": "_in_one_of(module, OPEN) → True",
        "leaving the layers' own calls alone": "_in_one_of(module, OPEN) → False",
        "looking for the whole name in Python's library": "module.split('.')[0] → module",
        "converting Python's library": "if module.split('.')[0] in sys.stdlib_module_names: → pass",
        "leaving every installed library alone": (
            "not installed(code.co_filename) or uses_us(module) → not installed(code.co_filename)"
        ),
        "converting every library": "not installed(code.co_filename) or uses_us(module) → True",
        "losing the object of a method": "MethodType(inner, function.__self__) → inner",
        "forgetting the methods": "inner = call(function.__func__) → return function",
        "losing what a partial has been given": (
            "partial(call(function.func), *function.args, **function.keywords) → "
            "call(function.func)"
        ),
        "objects that can be called": "convert_function(inner) → inner",
        "a marked object": (
            "type(inner) is FunctionType and (not getattr(function, MARK, False)) → "
            "type(inner) is FunctionType"
        ),
        "classes": "constructing(function) → function",
    },
)  # fmt: skip


# ---- functions from everywhere ---------------------------------------------------------------


def made_in(module, filename="model.py", text="def f(x):\n    return x + 1"):
    """A function of a module of that name, in a file of that name."""
    space = {} if module is NOWHERE else {"__name__": module}
    exec(compile(text, filename, "exec"), space)
    return next(x for x in space.values() if isinstance(x, FunctionType))


NOWHERE = object()
LIBRARY = str(Path(sysconfig.get_path("purelib")) / "library" / "model.py")


def mine(x):
    return x * 2 if x.sum() > 0 else x


@paddle.jit.not_to_static
def marked(x):
    return x * 2 if x else x


@functools.wraps(marked)
def around_marked(x):
    return x


async def later(x):
    return x


async def one_by_one(x):
    yield x


def generator(x):
    yield x


@exercise.example
def functions_from_everywhere(yours):
    """Yours, Python's, this package's, a library's; marked, converted, async."""
    coming = "async def f(x):\n    return x"
    cases = {
        "a function of this file": (mine, True), "marked": (marked, False),
        "marked through functools.wraps": (around_marked, False),
        "converted": (transpile(mine), False), "async": (later, False),
        "async with a yield": (one_by_one, False), "with a yield": (generator, True),
        "json.dumps": (json.dumps, False), "textwrap.dedent": (dedent, False),
        "of __main__": (made_in("__main__"), True), "of no module": (made_in(NOWHERE), True),
        "of the module None": (made_in(None), True), "of your package": (made_in("a.b"), True),
        "of xml.dom, Python's": (made_in("xml.dom.more"), False),
        "of xmlish, yours": (made_in("xmlish"), True), "of my.json": (made_in("my.json"), True),
        "paddle.mean": (paddle.mean, False), "of minipaddle itself": (made_in("minipaddle"), False),
        "of minipaddle_models": (made_in("minipaddle_models"), True),
        "Layer.__call__": (nn.Layer.__call__, True),
        "of nn.layering": (made_in("minipaddle.nn.layering"), False),
        "installed": (made_in("library", LIBRARY), False),
        "installed, async": (made_in("library", LIBRARY, coming), False),
    }  # fmt: skip
    for what, (function, expected) in cases.items():
        expect(bool(yours.converts(function)), expected, given={"a function": what})


class using_us:
    """While the block runs an installed module `library` uses this package, or does not."""

    def __init__(self, yes: bool):
        self.module = ModuleType("library")
        self.module.tool = paddle if yes else json

    def __enter__(self):
        sys.modules["library"] = self.module
        ignore.uses_us.cache_clear()

    def __exit__(self, *exc):
        del sys.modules["library"]
        ignore.uses_us.cache_clear()


@exercise.example
def libraries(yours):
    """An installed library of models is converted, another is not."""
    function = made_in("library", LIBRARY)
    for yes in (True, False):
        with using_us(yes):
            given = {"an installed module that uses this package": yes}
            expect(bool(yours.converts(function)), yes, given=given)


class ignoring:
    """While the block runs these modules are ignored."""

    def __init__(self, *names):
        self.names = {*names} - ignore.ignored

    def __enter__(self):
        ignore.ignored.update(self.names)

    def __exit__(self, *exc):
        ignore.ignored.difference_update(self.names)


@exercise.property(
    name=st.sampled_from(["a", "a.b", "a.b.c", "ab", "b.a", "a_b", "b", ""]),
    names=st.sets(st.sampled_from(["a", "a.b", "b", "c"]), max_size=2),
)
def ignored_modules(yours, name, names):
    """A module, and those of its package."""
    parts = name.split(".")
    around = {".".join(parts[: k + 1]) for k in range(len(parts))}
    with ignoring(*names):
        got = bool(yours.converts(made_in(name)))
    expect(got, not (around & names), given={"module": name, "ignored": sorted(names)})


class Scale:
    """An object that can be called; its class has an `__init__` with a condition."""

    def __init__(self, x):
        self.by = 2.0
        if x.sum() > 0:
            self.by = 3.0

    def __call__(self, x):
        if x.sum() > 1:
            return x * self.by
        return x

    def method(self, x):
        return x - self.by if x.sum() > 0 else x

    @classmethod
    def of_class(cls, x):
        return -x if x.sum() > 0 else x

    @property
    def twice(self):
        return self.by * 2


class Silent:
    @paddle.jit.not_to_static
    def __call__(self, x):
        return x


def jst(function) -> bool:
    """Is a function converted?"""
    return "_jst" in function.__code__.co_freevars


@exercise.example
def what_is_called_instead(yours):
    """Functions, methods, classes, partials, objects, and what cannot be converted."""
    scale, values = Scale(paddle.ones([1])), [1, 2]
    same = {
        "json.dumps": json.dumps, "marked": marked, "paddle.matmul": paddle.matmul, "int": int,
        "'a'.upper": "a".upper, "a method of Python's": json.JSONEncoder().encode,
        "an object without __call__": 3, "None": None, "a callable in C": functools.lru_cache(mine),
        "an object whose __call__ is marked": Silent(),
    }  # fmt: skip
    with exercise.plugged(yours):
        for what, x in same.items():
            got = yours.call(x)
            expect_that(got is x or what in ("int", "paddle.matmul") or got == x, "the same",
                        given={"function": what}, got=got)  # fmt: skip
        encode = same["a method of Python's"]
        expect(yours.call(encode) is encode, True, given="the very same method")
        expect(yours.call(values.append) == values.append, True, given="values.append")
        expect(jst(yours.call(mine)), True, given="a function")
        found = yours.call(scale.method)
        expect((type(found) is MethodType, found.__self__ is scale, jst(found.__func__)),
               (True, True, True), given="a method")  # fmt: skip
        found = yours.call(Scale.of_class)
        expect((found.__self__ is Scale, jst(found.__func__)), (True, True), given="a class method")
        found = yours.call(scale)
        expect((found.__self__ is scale, jst(found.__func__)), (True, True), given="an object")
        quiet = Scale(paddle.ones([1]))
        setattr(quiet, ignore.MARK, True)
        expect(yours.call(quiet) is quiet, True, given="an object that is marked")
        part = yours.call(functools.partial(mine, 1, y=2))
        expect((part.args, part.keywords, jst(part.func)), ((1,), {"y": 2}, True), given="partial")
        expect(yours.call(MethodType(len, [1, 2]))(), 2, given="a method that is a builtin")
        made = yours.call(Scale)
        expect(type(made(paddle.ones([1]))) is Scale and made is not Scale, True, given="a class")
        sums = yours.call(sum)
        expect(sums([1, 2]), 3, given="sum")


class Gate(nn.Layer):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x):
        if x.mean() > 0:
            return self.net(x)
        return self.net(-x) * 2


def everything(x):
    y = mine(x) + Scale(x)(x)
    y = y + functools.partial(weighed, by=3.0)(x) + Scale(x).method(x)
    y = y + sum([chosen(x) for chosen in (mine, Scale.of_class)])
    return y + max(y.sum(), x.sum())


def weighed(x, by):
    while x.sum() < by:
        x = x + 1
    return x


@exercise.example
def in_programs(yours):
    """The real to_static with your call: every callee has a condition on a tensor."""
    with exercise.plugged(yours):
        static = paddle.jit.to_static(everything)
        for x in ([1.0, 2.0], [-1.0, -2.0], [0.25, 0.25]):
            x = paddle.to_tensor(x)
            expect(static(x), everything(x), given={"x": x})
        expect(len(static.program_cache), 1, given="programs")


@exercise.example
def networks(yours):
    """A layer called by a layer, with a condition in it; trained."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        net = nn.Sequential(Gate(), nn.Linear(2, 2))
        sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        with exercise.plugged(yours):
            forward = paddle.jit.to_static(net.forward) if static else net.forward
            for k in range(4):
                x = paddle.arange(12, dtype="float32").reshape([3, 4]).sin() * (-1) ** k
                loss = F.cross_entropy(forward(x), paddle.arange(3) % 2)
                loss.backward()
                sgd.step()
                sgd.clear_grad()
                losses.append(loss.item())
    expect(losses[4:], losses[:4], given="four losses", rtol=1e-5)
