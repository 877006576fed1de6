"""Checks of 19_less_memory/segments."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.distributed.fleet.recompute import (
    Segment,
    recompute,
    recompute_sequential,
)
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Recompute in segments: keep the inputs of a few",
    level="easy",
    minutes=25,
    before=("14_memory/recompute",),
    slots={"fleet.run_segments": "run_segments"},
    hints=(
        "Seven functions in three segments: at which numbers do they begin? Which of the three "
        "does the backward need first?",
        "What is called with one list of arguments the first time, and with one value ever after? "
        "A tuple of one element is a list of arguments, too.",
        "size = len(functions) // n; the last segment begins at size · (n - 1)\n"
        "for each segment before it:\n"
        "    args = (again(Segment(its functions), *args),)\n"
        "return Segment(the others)(*args)",
    ),
    wrong={
        "nothing is computed again": (
            "again(Segment(functions[start:start + size]), *args) → "
            "Segment(functions[start:start + size])(*args)"
        ),
        "the last segment as well": (
            "Segment(functions[last:])(*args) → again(Segment(functions[last:]), *args)"
        ),
        "the rest forgotten": "functions[last:] → functions[last:last + size]",
        "segments of one function more": "functions[start:start + size] → "
                                         "functions[start:start + size + 1]",
        "rounded up": "len(functions) // n → -(-len(functions) // n)",
        "one segment too many": "size * (n - 1) → size * n",
        "the first segment again and again": (
            "functions[start:start + size] → functions[:size]"
        ),
        "the first argument alone": (
            "args = (again(Segment(functions[start:start + size]), *args),) → "
            "args = (again(Segment(functions[start:start + size]), args[0]),)"
        ),
    },
)  # fmt: skip


@exercise.mistake("each function for itself")
def run_segments(functions, n, args, again):
    for function in functions[:-1]:
        args = (again(Segment([function]), *args),)
    return functions[-1](*args)


@exercise.mistake("a lambda that looks up its segment when it is called again")
def run_segments(functions, n, args, again):  # noqa: F811
    size = len(functions) // n
    for k in range(n - 1):
        args = (again(lambda *x: Segment(functions[k * size : (k + 1) * size])(*x), *args),)  # noqa: B023
    k = n - 1
    return Segment(functions[k * size :])(*args)


@exercise.mistake("a function that knows no layers: statistics change twice")
def run_segments(functions, n, args, again):  # noqa: F811
    size = len(functions) // n
    for k in range(n - 1):
        some = functions[k * size : (k + 1) * size]
        args = (again(lambda *x, some=some: Segment(some)(*x), *args),)
    return Segment(functions[(n - 1) * size :])(*args)


@exercise.mistake("the rest in front")
def run_segments(functions, n, args, again):  # noqa: F811
    size = len(functions) // n
    first = len(functions) - size * (n - 1)
    parts = [functions[:first]]
    parts += [functions[k : k + size] for k in range(first, len(functions), size)]
    for part in parts[:-1]:
        args = (again(Segment(part), *args),)
    return Segment(parts[-1])(*args)


def called(yours, count: int, n: int):
    """(the parts that were called by `again`, the numbers called in all, the result)."""
    calls, parts = [], []

    def numbered(k):
        return lambda *xs: calls.append(k) or (*xs, k)[-2:] if k else calls.append(0) or (*xs, 0)

    def again(function, *args):
        begun = len(calls)
        y = function(*args)
        parts.append(calls[begun:])
        return y

    functions = [numbered(k) for k in range(count)]
    found = yours.run_segments([*functions], n, ("a", "b"), again)
    return parts, calls, found


@exercise.example
def seven_in_three(yours):
    """0 1 and 2 3 are computed again, 4 5 6 are not; all are called once, in order."""
    parts, calls, found = called(yours, 7, 3)
    expect(parts, [[0, 1], [2, 3]], given="7 functions, n = 3", why="what `again` was given")
    expect(calls, [*range(7)], given="7 functions, n = 3", why="the order of the calls")
    expect(found[-1], 6, given="7 functions, n = 3", why="who made the result")


@exercise.example
def two_arguments(yours):
    """The first function takes two arguments, also where it is a segment alone."""
    for n in (1, 2, 3):
        parts, _, _ = called(yours, 3, n)
        expect(parts, [[[]], [[0]], [[0], [1]]][n - 1] if n > 1 else [], given={"n": n})
    seen = []

    def first(*args):
        seen.append(args)
        return sum(args)

    got = yours.run_segments([first, lambda x: x + 1], 2, (2, 3), lambda f, *args: f(*args))
    expect((got, seen), (6, [(2, 3)]), given="a sum of two arguments, then one more")


exercise.holds(
    lambda yours, x, y: yours.run_segments(
        [np.add, np.tanh, np.negative, np.tanh], 3, (x, y), lambda f, *args: f(*args)
    ),
    lambda x, y: np.tanh(-np.tanh(x + y)),
    [(3, 4), (3, 4)],
    large=[(40, 30), (40, 30)],
    empty=[(0, 4), (0, 4)],
    infinite=(np.inf, -np.inf),
)


@exercise.property(count=st.integers(1, 12), seed=st.integers(0, 99))
def any_segments(yours, count, seed):
    """Equal segments, the last one with the rest."""
    n = 1 + seed % count
    parts, calls, _ = called(yours, count, n)
    each = count // n
    expected = [[*range(k * each, k * each + each)] for k in range(n - 1)]
    expect(parts, expected, given={"functions": count, "n": n})
    expect(calls, [*range(count)], given={"functions": count, "n": n})


def chain():
    """Layers with random numbers, and with statistics."""
    made = []
    for _ in range(3):
        made += [nn.Linear(4, 4), nn.BatchNorm1D(4), nn.Dropout(0.3)]
    return nn.Sequential(*made)


def train(way, static: bool):
    paddle.seed(5)
    net = chain()
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(8, 4)).astype("float32"))
    sgd = paddle.optimizer.SGD(0.05, parameters=net.parameters())

    def step(x):
        loss = (way(net, x) ** 2).mean()
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return loss

    step = paddle.jit.to_static(step) if static else step
    losses = [float(step(x)) for _ in range(3)]
    return losses, [x.numpy() for x in net.state_dict().values()]


@exercise.example
def a_network_trains_on_it(yours):
    """Batch norms and dropout, eagerly and as a program: the numbers of the plain chain."""
    for static in (False, True):
        losses, state = train(lambda net, x: net(x), static)
        with exercise.plugged(yours):
            for n in (2, 4):
                segments = lambda net, x, n=n: recompute_sequential({"segments": n}, net, x)
                got, own = train(segments, static)
                given = {"segments": n, "captured": static}
                expect(got, losses, given=given, rtol=1e-5)
                for a, b in zip(own, state, strict=True):
                    expect(a, b, given=given, rtol=1e-4, atol=1e-6, why="weights and statistics")


@exercise.example
def what_is_computed_twice(yours):
    """In the backward each segment is computed once more, the last of them first."""
    calls = []

    def counted(k):
        return lambda x: calls.append(k) or paddle.sin(x)

    x = paddle.ones([2], "float32")
    x.stop_gradient = False
    y = yours.run_segments([counted(k) for k in range(7)], 3, (x,), recompute)
    y.sum().backward()
    expect(calls, [*range(7), 2, 3, 0, 1], given="7 functions, n = 3, and a backward")
    want = np.ones(2)
    slope = np.ones(2)
    for _ in range(7):
        slope, want = slope * np.cos(want), np.sin(want)
    expect(x.grad.numpy(), slope, given="seven sines", rtol=1e-5)
    expect_that(not y.stop_gradient, "a result with a past")
