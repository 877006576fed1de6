"""Checks of 10_training_programs/reverse_iterations."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.control_flow import while_loop
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The derivative of a loop is a loop: the last iteration first",
    level="hard",
    minutes=60,
    before=("08_loops", "10_training_programs/append_backward"),
    slots={"control.reverse_iterations": "reverse_iterations"},
    hints=(
        "With three iterations, one after the other, in which order would the walk back pass "
        "them? What does each of them need to know, and where do the cotangents of a weight go "
        "that all three use?",
        "Count i down from `iterations`. Look at stacks[k] at i: these are the values before the "
        "iteration, so derivative(body, those and the constants, …) is its walk back. In the body "
        "of a loop Python's own lists are fine, if each iteration does the same to them.",
        "start = iterations, the ends that are there, a zero for each shared constant\n"
        "one iteration: i = i - 1; values = the stacks at i\n"
        "    found = derivative(body, values + constants, ends with those that arrived, wanted)\n"
        "    for what is carried: found + kept_ends at i; for constants: sum so far + found\n"
        "while_loop(i > 0, one iteration, start), without i",
    ),
    wrong={
        "the first iteration first": (
            "take(stack, i, axis=0) → take(stack, iterations - 1 - i, axis=0)"
        ),
        "one iteration too late": (
            (
                "i = i - 1 → values = [take(stack, (i < iterations).astype('int64') * i, axis=0) "
                "for stack in stacks]"
            ),
            "values = [take(stack, i, axis=0) for stack in stacks] → pass",
            (
                "[i, *carried, *(before + g for before, g in sums)] → [i - 1, *carried, "
                "*(before + g for before, g in sums)]"
            ),
        ),
        "one iteration too few": "i > 0 → i > 1",
        "the last iteration's values in every iteration": (
            "take(stack, i, axis=0) → take(stack, iterations - 1, axis=0)"
        ),
        "the cotangents of the end in every iteration": "after[k] = g → pass",
        "a weight gets what the first iteration says": "before + g → g",
        "a weight's sum begins with ones": (
            "zeros_like(constants[k]) → zeros_like(constants[k]) + 1"
        ),
        "constants counted from the first carried value": "len(stacks) + k → k",
        "the stacks' own cotangents forgotten": "g + take(kept_ends[k], i, axis=0) → g",
        "all constants asked for": (
            (
                "[len(stacks) + k for k in shared] → [len(stacks) + k for k in "
                "range(len(constants))]"
            ),
            "(zeros_like(constants[k]) for k in shared) → (zeros_like(c) for c in constants)",
        ),
        "values without a gradient taken along": "after[k] = g → after[moving.index(k)] = g",
        "the counter handed out": (
            "while_loop(lambda i, *_: i > 0, one_iteration, start)[1:] → while_loop(lambda i, *_: "
            "i > 0, one_iteration, start)"
        ),
    },
    unkillable={
        "sums = zip(cotangents[len(moving):], found[len(moving):], strict=True) → "
        "sums = zip(found[len(moving):], cotangents[len(moving):], strict=True)": (
            "a sum does not mind the order"
        ),
        "sums = zip(cotangents[len(moving):], found[len(moving):], strict=True) → "
        "sums = zip(cotangents[len(moving):], found[len(moving):], strict=False)": (
            "there are as many"
        ),
    },
)

F32, F64 = np.dtype("float32"), np.dtype("float64")


def program_of(yours, function, *specs):
    """The program of a function of tensors that want a gradient."""

    def taped(*xs):
        for x in xs:
            x.stop_gradient = x.spec.dtype.kind != "f"
        return function(*xs)

    with exercise.plugged(yours):
        return trace(taped, specs).program


def times(n, function, *carried):
    """`function`, n times, as a loop of the program."""
    start = [paddle.zeros([], "int64"), *carried]
    out = while_loop(lambda i, *_: i < n, lambda i, *xs: [i + 1, *function(*xs)], start)
    return out[1:]


NUMBER, COUNT = Spec((), F64), Spec((), np.dtype("int64"))


def run(program, *arrays):
    return Run(NUMPY)(program, [np.asarray(a) for a in arrays])


@exercise.example
def powers(yours):
    """x * w, n times: x wⁿ, whose derivatives are wⁿ and n x wⁿ⁻¹."""

    def function(x, w, n):
        (y,) = times(n, lambda y: [y * w], x)
        return paddle.grad(y, [x, w])

    program = program_of(yours, function, NUMBER, NUMBER, COUNT)
    for n in (3, 1, 0):
        expected = [1.5**n, n * 2.0 * 1.5 ** (n - 1)]
        expect(run(program, 2.0, 1.5, n), expected, given={"x": 2.0, "w": 1.5, "iterations": n})
    expected = [1.5**3, 3 * 2e-9 * 1.5**2]
    expect(run(program, 2e-9, 1.5, 3), expected, given={"x": 2e-9, "w": 1.5, "n": 3}, atol=0)
    single = Spec((), F32)
    found = run(program_of(yours, function, single, single, COUNT), F32.type(2), F32.type(1.5), 3)
    expect([str(a.dtype) for a in found], ["float32"] * 2, given="x and w are float32")


@exercise.example
def eight_carried_values(yours):
    """Each times w, in every iteration."""

    def function(x, w, n):
        return paddle.grad(sum(times(n, lambda *ys: [y * w for y in ys], *[x] * 8)), [x, w])

    found = run(program_of(yours, function, NUMBER, NUMBER, COUNT), 2.0, 1.5, 3)
    expect(found, [8 * 1.5**3, 8 * 3 * 2.0 * 1.5**2], given="8 x wⁿ, x = 2, w = 1.5, n = 3")


@exercise.example
def each_iteration_has_its_values(yours):
    """sin(x) · w, three times, against the chain rule by hand."""

    def function(x, w, n):
        (y,) = times(n, lambda y: [y.sin() * w], x)
        return paddle.grad(y, [x, w])

    x, w = 0.7, 1.3
    values = [x]
    for _ in range(3):
        values.append(np.sin(values[-1]) * w)
    down, of_w = 1.0, 0.0
    for v in reversed(values[:-1]):
        of_w, down = of_w + down * np.sin(v), down * np.cos(v) * w
    program = program_of(yours, function, NUMBER, NUMBER, COUNT)
    expect(run(program, x, w, 3), [down, of_w], given={"x": x, "w": w, "iterations": 3})


@exercise.example
def several_carried_values(yours):
    """a, b = b · w, a + v · b: two carried values, two constants, and an integer that counts."""

    def function(a, b, w, v, n):
        a, b, _ = times(n, lambda a, b, k: [b * w, a + v * b, k + 2], a, b,
                        paddle.ones([], "int64"))  # fmt: skip
        return paddle.grad(a * 3 + b, [a0, b0, w0, v0])

    def taped(*xs):
        nonlocal a0, b0, w0, v0
        a0, b0, w0, v0 = xs[:4]
        return function(*xs)

    a0 = b0 = w0 = v0 = None
    program = program_of(yours, taped, *[NUMBER] * 4, COUNT)

    def plain(a, b, w, v):
        for _ in range(4):
            a, b = b * w, a + v * b
        return a * 3 + b

    point = [0.5, -1.0, 1.2, 0.8]
    expected = []
    for k in range(4):
        up, down = ([x + s * (j == k) for j, x in enumerate(point)] for s in (1e-6, -1e-6))
        expected.append((plain(*up) - plain(*down)) / 2e-6)
    expect(run(program, *point, 4), expected, given={"a, b, w, v": point, "n": 4}, rtol=1e-7)


@exercise.example
def one_constant_of_two(yours):
    """y · w + c, where nobody asks for c's gradient: none is computed."""

    def function(x, c, w, n):
        (y,) = times(n, lambda y: [y * w + c.detach()], x)
        return paddle.grad(y, w)

    program = program_of(yours, function, *[NUMBER] * 3, COUNT)
    x, c, w = 2.0, 0.5, 1.5
    expect(run(program, x, c, w, 2), [2 * x * w + c], given="x w² + c w + c, by w")
    loops = [r for r in program.records if r.op.name == "while_loop"]
    carried = [r.attrs["carried"] for r in loops]
    expect(carried[-1], 3, given=str(program), why="values that are carried on the way back")


@exercise.example
def an_unused_result(yours):
    """Two values are carried; the second is not asked for: its cotangent is zero, not missing."""

    def function(x, z, n):
        y, _ = times(n, lambda a, b: [a * b, b * 2], x, z)
        return paddle.grad(y, [x, z])

    program = program_of(yours, function, NUMBER, NUMBER, COUNT)
    x, z = 3.0, 1.1
    expect(run(program, x, z, 3), [8 * z**3, 24 * x * z**2], given="x · z · 2z · 4z, by x and z")


@exercise.example
def second_order(yours):
    """x wⁿ twice by w, and by x and w: n (n - 1) x wⁿ⁻² and n wⁿ⁻¹."""

    def function(x, w, n):
        (y,) = times(n, lambda y: [y * w], x)
        (dw,) = paddle.grad(y, w, create_graph=True)
        return paddle.grad(dw, [w, x])

    program = program_of(yours, function, NUMBER, NUMBER, COUNT)
    for n in (4, 2):
        expected = [n * (n - 1) * 2.0 * 1.5 ** (n - 2), n * 1.5 ** (n - 1)]
        expect(run(program, 2.0, 1.5, n), expected, given={"x": 2.0, "w": 1.5, "iterations": n})


@exercise.example
def second_order_of_a_curve(yours):
    """sin(x), twice: the derivative's own loop takes from the stacks, and is differentiated."""

    def function(x, n):
        (y,) = times(n, lambda y: [y.sin()], x)
        (dx,) = paddle.grad(y, x, create_graph=True)
        return paddle.grad(dx, x)

    program = program_of(yours, function, NUMBER, COUNT)
    x, s, c = 0.7, np.sin(0.7), np.cos(0.7)
    expected = -np.sin(s) * c * c - np.cos(s) * s
    expect(run(program, x, 2), [expected], given="sin(sin(x)), twice by x, at 0.7")


BODIES = {
    "x * w": lambda x, w: x * w,
    "tanh(x) + w": lambda x, w: x.tanh() + w,
    "sin(x * w) + x": lambda x, w: (x * w).sin() + x,
    "w / (x * x + 1)": lambda x, w: w / (x * x + 1),
}


@exercise.property(
    examples=20,
    n=st.integers(0, 5),
    kind=st.sampled_from(sorted(BODIES)),
)
def as_unrolled(yours, n, kind):
    """The same iterations one after the other, on the eager tape."""
    body = BODIES[kind]
    point, weight = np.array([0.5, -1.2]), np.array([0.9, 1.4])

    def function(x, w, n):
        (y,) = times(n, lambda y: [body(y, w)], x)
        return paddle.grad((y * y).sum(), [x, w], allow_unused=True)

    vector = Spec((2,), F64)
    got = run(program_of(yours, function, vector, vector, COUNT), point, weight, n)
    x, w = (paddle.to_tensor(a, stop_gradient=False) for a in (point, weight))
    y = x
    for _ in range(n):
        y = body(y, w)
    found = paddle.grad((y * y).sum(), [x, w], allow_unused=True)
    expected = [np.zeros(2) if g is None else g for g in found]
    expect(got, expected, given={"body": kind, "iterations": n}, rtol=1e-9)


@exercise.example
def a_recurrent_network_learns(yours):
    """A cell applied as often as a tensor says, trained in one captured step."""
    with exercise.plugged(yours):
        paddle.seed(0)
        cell, last = nn.Linear(4, 4), nn.Linear(4, 1)
        adam = paddle.optimizer.Adam(0.03, parameters=[*cell.parameters(), *last.parameters()])

        @paddle.jit.to_static
        def step(x, target, n):
            h = x
            for _ in range(n):
                h = cell(h).tanh() + x
            loss = F.mse_loss(last(h), target)
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        x, n = paddle.randn([16, 4]), paddle.to_tensor(3)
        target = x[:, :1] * x[:, 1:2]
        losses = [step(x, target, n).item() for _ in range(40)]
    expect_that(losses[-1] < 0.5 * losses[0], "a smaller loss after 40 steps", got=losses[::13])
