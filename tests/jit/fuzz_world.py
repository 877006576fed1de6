"""What the programs of the fuzzer find around them: captured tensors, classes, helpers."""

import contextlib
import random
from collections import OrderedDict, deque
from dataclasses import dataclass

import numpy as np

import minipaddle as paddle


class Kind:
    """What holds for all programs of a file."""

    dtype = "float64"
    open = False  # are the sizes of the inputs open?


def vary(seed: int) -> None:
    """Choose that by the file's seed."""
    Kind.dtype = "float32" if seed % 5 == 1 else "float64"
    Kind.open = seed % 5 == 2
    paddle.set_default_dtype(Kind.dtype)


def quiet(seed: int) -> bool:
    """Does a call stand in no_grad? One group of three in eight does."""
    return seed // 3 % 8 == 7


def mode(seed: int):
    """What a call stands in."""
    return paddle.no_grad() if quiet(seed) else contextlib.nullcontext()


def specs():
    """The `input_spec` of a program, or None."""
    if not Kind.open:
        return None
    shapes = {"x": ["columns"], "m": [2, "columns"], "s": []}
    specs = [paddle.static.InputSpec(d, Kind.dtype, name=n) for n, d in shapes.items()]
    return [*specs, paddle.static.InputSpec([], "int64", name="n")]


paddle_of = {"W": [0.5, -1.25, 0.75], "BIAS": 0.375, "STATE": [1.0, -0.5, 0.25]}


def captured(name: str):
    return paddle.to_tensor(paddle_of[name], dtype=Kind.dtype)


W, BIAS, STATE = map(captured, paddle_of)
W.stop_gradient = BIAS.stop_gradient = False
PARAMETERS = (W, BIAS)


class Box:
    """An object whose attributes programs read and write."""

    def __init__(self, value, count=0):
        self.value = value
        self.count = count

    def push(self, v):
        if v.sum() > self.value.sum():
            self.value = self.value + v
            self.count += 1
        else:
            self.value = self.value * 0.5
        return self.value

    @property
    def size(self):
        return self.count + 1 if self.value[0] > 0 else self.count

    @staticmethod
    def halved(v):
        return v * 0.5 if v.max() > 1 else v


def steps(v, n):
    """A generator."""
    for k in range(n):
        yield v * k


def power(v, n):
    """Recursion on a Python number."""
    if n <= 0:
        return v * 1.0
    return power(v, n - 1) * 0.5 + v


def clipped(v, low=-1.0, *, high=1.0):
    """Early returns on tensors."""
    if v.sum() < low:
        return v * 0.0 + low
    if v.sum() > high:
        return v * 0.25
    return v


def first_above(v, limit):
    """A return from inside a loop over a tensor."""
    for item in v:
        if item > limit:
            return item
    return v.sum()


@dataclass
class Pair:
    """A dataclass, given and returned."""

    first: object
    second: object = 1


def moved(pair, by):
    """A dataclass made on either side of a condition."""
    if pair.first.sum() > by:
        return Pair(pair.first - by, pair.second)
    pair = Pair(pair.first, pair.second)
    pair.first = pair.first + by
    return pair


class Gate:
    """A context manager that counts how often it was entered."""

    count = 0

    def __enter__(self):
        self.count += 1
        return self

    def __exit__(self, *exc):
        self.count -= 2
        return False


GATE, QUEUE, ARRAY, COUNTS = Gate(), deque(), np.zeros(3), OrderedDict()


def effects() -> list:
    """What programs left in Python's objects, as numbers."""
    counts = [number for pair in COUNTS.items() for number in pair]
    drawn = random.Random()
    drawn.setstate(random.getstate())
    return [float(x) for x in (GATE.count, *QUEUE, *ARRAY, *counts, drawn.random())]


ZERO = TOTAL = paddle.zeros([2], "float64")


def counted(v):
    """Writes a variable of the module."""
    global TOTAL
    TOTAL = TOTAL * 0.5 + (v.detach().sum() if isinstance(v, paddle.Tensor) else v)
    return TOTAL if not isinstance(v, paddle.Tensor) else v * 1.0


def slope(v, w):
    """A gradient that has a gradient."""
    with paddle.enable_grad():
        v = v * 1.0
        v.stop_gradient = False
        y = (v.tanh() * w).sum()
        return paddle.grad(y, [v], create_graph=True)[0]


def arguments(seed: int):
    """x, m, s, n, p, q, flag: tensors by the seed, Python values by its group of three."""
    draw, fixed = np.random.default_rng(seed), np.random.default_rng(seed // 3)
    x, m, s = (
        paddle.to_tensor(np.round(draw.normal(size=shape), 3), dtype=Kind.dtype)
        for shape in ((3,), (2, 3), ())
    )
    for each in (x, m, s):
        each.stop_gradient = False
    n = paddle.to_tensor(int(draw.integers(-1, 5)))
    p, q = int(fixed.integers(-2, 5)), float(fixed.integers(-8, 9)) / 4
    return x, m, s, n, p, q, bool(fixed.integers(2))


def reset(seed: int = 0) -> None:
    """The captured tensors without a past, in new memory; BIAS holds another value by the seed.

    The random numbers are those of the seed.
    """
    global TOTAL
    random.seed(seed)
    GATE.count = 0
    QUEUE.clear()
    ARRAY.fill(0)
    COUNTS.clear()
    COUNTS.update({0: 1, 1: 2})
    TOTAL = ZERO  # a program knows it by what it is, not by its name
    ZERO.array = paddle.zeros([2], "float64").array
    paddle.seed(seed)
    for name, x in (("W", W), ("BIAS", BIAS), ("STATE", STATE)):
        x.array = captured(name).array
        x.record = None
        x.clear_gradient(set_to_zero=False)
    BIAS.array = (captured("BIAS") * (1 - seed % 3)).array
    STATE.stop_gradient = True
