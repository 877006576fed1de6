"""Checks of 09_to_static/cache_key."""

import math
from collections import namedtuple

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core import slots
from minipaddle.engine.core.dispatch import current
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="A cache key: what must be equal for a program to serve again",
    level="medium",
    minutes=40,
    before=("07_rewriting",),
    slots={
        "jit.cache_key": "cache_key",
        "jit.cache_constant": "constant",
        "jit.cache_settings": "settings",
    },
    hints=(
        "Two calls must not share a program if the function can tell them apart. Take any two: "
        "what could the function do to find out which of them it is in?",
        "Chapter 9, “Too coarse, too fine”, goes through the mistakes. The engine's three "
        "functions stand in minipaddle/engine/jit/cache.py.",
        "values: constant(x) for each leaf whose index is not among the places\n"
        "a floating number: its type; itself, or one nan for all nans; its sign by copysign\n"
        "a tensor, a class with an __eq__ of its own, or if hash(x) raises TypeError: type(x), "
        "Itself(x)\n"
        "anything else: type(x), x",
    ),
    wrong={
        "shape is all that counts of a tensor": "specs → ((s, '', '') for s, *_ in specs)",
        "tensors that are not in the key at all": "tuple(specs) → ()",
        "not saying which arguments are tensors": "tuple(places) → ()",
        "not saying how the arguments are nested": "structure → ''",
        "leaving out what is no tensor": "tuple(values) → ()",
        "taking 1, 1.0 and True for the same": (
            (
                "(type(x), value, math.copysign(1.0, value)) → (object, value, "
                "math.copysign(1.0, value))"
            ),
            "(type(x), x) → (object, x)",
        ),
        "0.0 and -0.0 being the same": (
            "(type(x), value, math.copysign(1.0, value)) → (type(x), value)"
        ),
        "a nan that is never found again": "math.nan if math.isnan(x) else x → x",
        "looking at the sign of Python's floats only": (
            "isinstance(x, Real) and (not isinstance(x, int)) → type(x) is float"
        ),
        "giving up on what has no hash": "try: → pass",
        "a new program for every new object": "(type(x), x) → (type(x), Itself(x))",
        "a new program for every tensor": (
            "[constant(x) for k, x in enumerate(leaves) if k not in places] → [constant(x) for "
            "k, x in enumerate(leaves)]"
        ),
        "forgetting that gradients may be recorded": "current.top.recording → True",
        "forgetting the default dtype": "paddle.get_default_dtype() → None",
        "forgetting what is plugged in": "slots.epoch → 0",
        "comparing tensors by what is in them": (
            "if isinstance(x, paddle.Tensor) or type(type(x).__eq__) is FunctionType: → "
            "if isinstance(x, paddle.Tensor): return type(x), str(x.tolist())"
        ),
        "trusting what a class takes for equal": (
            "isinstance(x, paddle.Tensor) or type(type(x).__eq__) is FunctionType → "
            "isinstance(x, paddle.Tensor)"
        ),
        "all sets being the same": "hash(x) → if isinstance(x, set): return type(x), None",
    },
    unkillable={
        "constant: always float64": "it holds every float32, and the type is in the key",
        "cache_key: always float64": "likewise",
        "return (type(x), value, math.copysign(1.0, value)) → "
        "return (type(x), value, math.copysign(2.0, value))": "the sign counts, not the size",
    },
)  # fmt: skip


class Scale:
    """All are equal, and each is another."""

    def __init__(self, by):
        self.by = by

    def __eq__(self, other):
        return isinstance(other, Scale)

    def __hash__(self):
        return 1


def first_equal(yours, values) -> list[int]:
    """For each value the number of the first one whose constant is the same."""
    keys = [yours.constant(x) for x in values]
    for x, key in zip(values, keys, strict=True):
        hash(key)
        expect(key[0] is type(x), True, given={"x": x, "asked": "the type comes first"})
    return [next(j for j, key in enumerate(keys) if key == keys[k]) for k in range(len(keys))]


@exercise.example
def numbers_and_texts(yours):
    """Python's == takes 1, 1.0 and True for the same; a function does not have to."""
    text = "sa"
    values = [1, True, 1.0, np.float32(1), 1, 1.0, 2.5, "same", text + "me", None, (), 1 << 70,
              np.float32(1), np.int64(1), np.float64(1), -1.0, -2.5]  # fmt: skip
    expected = [0, 1, 2, 3, 0, 2, 6, 7, 7, 9, 10, 11, 3, 13, 14, 15, 16]
    expect(first_equal(yours, values), expected, given={"values": values})


@exercise.example
def zeros_and_nans(yours):
    """1/0.0 and 1/-0.0 are not the same."""
    nan = math.inf - math.inf
    values = [0.0, -0.0, 0.0, -0.0, np.float32(0), np.float32(-0.0), math.nan, nan, 0, math.inf,
              np.float32(nan), np.float32(math.nan), -math.inf]  # fmt: skip
    assert nan is not math.nan
    expected = [0, 1, 0, 1, 4, 5, 6, 6, 8, 9, 10, 10, 12]
    expect(first_equal(yours, values), expected, given={"values": values})


@exercise.example
def numbers_that_are_close(yours):
    """Neighbours are two numbers, and so are small ones; and long tuples are told apart."""
    below = [2.0, *(2.0 - k * 2.0**-52 for k in range(1, 5))]
    values = [*below, *map(np.float64, below), 1e-30, 2e-30, np.float32(1e-30), np.float32(2e-30),
              (*range(8),), (*range(7), 8)]  # fmt: skip
    expect(first_equal(yours, values), [*range(len(values))], given={"values": values})
    keys = [yours.cache_key([x], "one", [], []) for x in values]
    expect_that(len({*keys}) == len(values), "a key for each", given={"values": values})


@exercise.example
def what_stands_for_itself(yours):
    """Tensors and sets: the same object is one key, an equal object another."""
    a, b, s, t = paddle.ones([2]), paddle.ones([2]), {1}, {1}
    expect(first_equal(yours, [a, b, a, s, t, s, set()]), [0, 1, 0, 3, 4, 3, 6],
           given="two tensors of ones, two sets")  # fmt: skip
    expect([yours.constant(x)[1].value is x for x in (a, s)], [True, True], given="Itself(x)")
    p, q = Scale(1), Scale(2)
    expect(first_equal(yours, [p, q, p, Scale(1)]), [0, 1, 0, 3],
           given="objects of a class for which all of them are equal")  # fmt: skip
    others = [paddle.ones([200]), paddle.ones([0]), paddle.full([2], math.inf)]
    expect(first_equal(yours, others * 2), [0, 1, 2] * 2, given="large, empty, infinite tensors")
    expect(a, np.ones(2, "float32"), given="the first tensor, afterwards")


@exercise.example
def the_parts_of_a_key(yours):
    """One call, f(x, 2, [y, "a"]), part by part."""
    x, y = paddle.ones([2]), paddle.zeros([3], "int64")
    specs = [((2,), "float32", True), ((3,), "int64", True)]
    key = yours.cache_key([x, 2, y, "a"], "nested", [0, 2], specs)
    given = {"leaves": "[x, 2, y, 'a']", "places": [0, 2]}
    expect(key.structure, "nested", given=given)
    expect(tuple(key.places), (0, 2), given=given)
    expect(type(key.specs) is tuple and list(key.specs) == specs, True, given=given)
    expect([value for _, value, *_ in key.values], [2, "a"], given=given)
    expect([kind is wanted for (kind, *_), wanted in zip(key.values, (int, str), strict=True)],
           [True, True], given=given)  # fmt: skip
    again = yours.cache_key([y, 2, x, "".join("a")], "nested", [0, 2], specs)
    expect(key == again and hash(key) == hash(again), True, given="other tensors, the same specs")
    expect(yours.cache_key([], "nothing", [], []).values, (), given="no arguments")
    others = [paddle.ones([200]), paddle.ones([0]), paddle.full([2], math.inf)]
    rest = [0.5, *range(5)]
    nine = yours.cache_key([*others, *rest], "nine", [0, 1, 2], specs)
    same = nine.values == yours.cache_key(rest, "six", [], []).values
    expect_that(same, "values that do not depend on the tensors", given="nine leaves", got=nine)
    expect((x, y), (np.ones(2, "float32"), np.zeros(3, "int64")), given="the leaves, afterwards")


@exercise.example
def the_settings(yours):
    """Gradients recorded or not, the default dtype, and what is plugged in."""
    found = yours.settings()
    expect(len(found), 3, given="settings()")
    expect(found[0], current.top.recording)
    with paddle.no_grad():
        expect(yours.settings()[0], False, given="in no_grad")
    with slots.plugged("ops.tanh.vjp", lambda g, out: g):
        other = yours.settings()
    expect_that(found != other, "a key of its own for what is plugged in", got=other)
    expect(found[:2], other[:2], given="another plug-in")
    paddle.set_default_dtype("float64")
    try:
        expect(yours.settings()[1] == found[1], False, given="another default dtype")
    finally:
        paddle.set_default_dtype("float32")
    expect(yours.settings(), (*found[:2], slots.epoch), given="all as it was")


Pair = namedtuple("Pair", "a b")


def weighed(a, b=1.0, mode="sum"):
    """What comes out depends on all that a key must know."""
    if isinstance(a, dict):
        a = a["x"] if "x" in a else -a["y"]
    if isinstance(a, Pair):
        a, b = a.b, a.a
    if isinstance(a, list | tuple):
        a = sum(a)
    kind = {bool: 0.25, int: 0.5, float: 0.75}.get(type(b), 0)
    if isinstance(b, set):
        b = len(b)
    y = a - b + kind
    if type(mode) is float:
        return y * (math.copysign(1.0, mode) if mode == mode else 3.0)
    return y.sum() if mode == "sum" else y + paddle.zeros([1]).sum()


X, Y, Z = paddle.to_tensor([3.0, 5.0]), paddle.to_tensor([4.0]), paddle.to_tensor([7, 8])
S, T = {1}, {1, 2}
CALLS = [
    lambda f: f(X), lambda f: f(X + 1), lambda f: f(Y), lambda f: f(Z), lambda f: f(X, 2),
    lambda f: f(2, X), lambda f: f(X, 1), lambda f: f(X, True), lambda f: f(X, 1.0),
    lambda f: f([X, X]), lambda f: f((X, X)), lambda f: f([X, 1]), lambda f: f({"x": X}),
    lambda f: f({"y": X}), lambda f: f(Pair(2, X)), lambda f: f(X, mode="no"),
    lambda f: f(X, mode="".join("no")), lambda f: f(X, mode=0.0), lambda f: f(X, mode=-0.0),
    lambda f: f(X, mode=math.nan), lambda f: f(X, mode=math.inf - math.inf), lambda f: f(X, S),
    lambda f: f(X, T), lambda f: f(X + 1, T), lambda f: f(Z, 1.0, "no"),
]  # fmt: skip
SAME = {1: 0, 16: 15, 20: 19, 23: 22}
"""Of two calls the second must find the program of the first."""


@exercise.property(order=st.lists(st.sampled_from(range(len(CALLS))), max_size=8), examples=15)
def calls_in_any_order(yours, order):
    """The real to_static with your key: right numbers, and no program written twice."""
    with exercise.plugged(yours):
        static = paddle.jit.to_static(weighed)
        for k in order:
            expect(CALLS[k](static), CALLS[k](weighed), given={"calls": order, "call": k})
        programs = len({SAME.get(k, k) for k in order})
        expect(len(static.program_cache), programs, given={"calls": order, "asked": "programs"})


@exercise.example
def every_call_once(yours):
    """All calls, nine for one function, forwards and backwards."""
    with exercise.plugged(yours):
        for start in range(0, len(CALLS), 9):
            part = [*range(start, min(start + 9, len(CALLS)))]
            static = paddle.jit.to_static(weighed)
            for k in [*part, *reversed(part)]:
                expect(CALLS[k](static), CALLS[k](weighed), given={"call": k})
            programs = len({SAME.get(k, k) for k in part})
            expect(len(static.program_cache), programs, given={"calls": part, "asked": "programs"})


@exercise.example
def settings_that_change(yours):
    """no_grad and the default dtype between two calls, and gradients after it."""

    def made(x):
        return (x * x).sum() + paddle.ones([2]).sum()

    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    with exercise.plugged(yours):
        static = paddle.jit.to_static(made)
        with paddle.no_grad():
            expect(static(x), 7.0)
        static(x).backward()
        expect_that(x.grad is not None, "a gradient, after a first call in no_grad", got=x.grad)
        expect(x.grad, [2.0, 4.0], given="x = [1, 2]")
        paddle.set_default_dtype("float64")
        try:
            expect(str(static(x).dtype), str(made(x).dtype), given="the default dtype changed")
        finally:
            paddle.set_default_dtype("float32")
        static(x)
        expect(len(static.program_cache), 3, given="4 calls with 3 different settings")


@exercise.example
def a_network_trains(yours):
    """Training and testing in turn: the same losses as in eager mode, and two programs."""
    losses = []
    for convert in (lambda f: f, paddle.jit.to_static):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())
        with exercise.plugged(yours):
            step = convert(lambda x, y, scale=1.0, net=net: F.mse_loss(net(x), y) * scale)
            for _ in range(8):
                net.train()
                step(x, x * x).backward()
                adam.step()
                adam.clear_grad()
                net.eval()
                with paddle.no_grad():
                    losses.append(step(x, x * x).item())
        if convert is paddle.jit.to_static:
            expect(len(step.program_cache), 2, given="training, and testing")
    expect(losses[8:], losses[:8], given="eight losses", rtol=1e-4)
