"""Checks of 07_rewriting/runtime_if."""

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.eager.tracer import trace
from minipaddle.learn import Exercise, expect, expect_gradients

exercise = Exercise(
    title="`if` at run time: it decides late",
    level="medium",
    minutes=35,
    before=("06_programs",),
    slots={"jit.runtime.if_else": "if_else"},
    hints=(
        "While a program is written both sides run, one after the other. What has the first one "
        "left behind when the second begins?",
        "Chapter 7, “The runtime decides late”, writes it for a page of its own; `Choice.trace` in "
        "minipaddle/engine/jit/branching.py is the engine's.",
        "a test with a value: one side, or none; return\n"
        "note what all variables hold\n"
        "a side: run it, note what the kept variables hold, put all back, return what was noted\n"
        "put the results of cond(test, one side, the other side) into the kept variables",
    ),
    wrong={
        "restoring only what is kept": "zip(every, before) → zip(kept, before)",
        "losing the results": "for variable, value in zip(kept, results): → results",
        "asking a tensor of a program for its value": "not is_static(test) → True",
        "losing the else": "side(else_) → side(None)",
        "exchanging the sides": (
            "cond(test, lambda: side(then), lambda: side(else_)) → cond(test, lambda: "
            "side(else_), lambda: side(then))"
        ),
        "a missing else that is called": "if block is not None: → block()",
        "handing on also what is dropped": "live_out → [*live_out, *local]",
        "not restoring after a side": "zip(every, before) → []",
        "running both sides of a Python condition": "then() → then(); else_ and else_()",
        "noting the values before the side has run": (
            "after = [variable.get() for variable in kept] → after = early",
            "if block is not None: → early = [v.get() for v in kept]; if block is not None:",
        ),
    },
    unkillable={
        f"if_else: right only for {kind}": "a condition has one element"
        for kind in ("small arrays", "arrays that are not empty")
    },
)  # fmt: skip


@exercise.example
def a_python_condition(yours):
    """The side that counts is called once, the other never; it returns nothing."""
    seen = []
    for test in (True, False, 1, 0, "", [0], paddle.to_tensor([float("inf")]), paddle.zeros([1])):
        seen.clear()
        got = yours.if_else(test, lambda: seen.append("then"), lambda: seen.append("else"))
        expect(seen, ["then" if test else "else"], given={"test": test})
        expect(got, None, given={"test": test})
        seen.clear()
        yours.if_else(test, lambda: seen.append("then"), None)
        expect(seen, ["then"] if test else [], given={"test": test, "else_": None})


@exercise.example
def both_sides_from_the_same_start(yours):
    """The example of the task: `else_` must not see what `then` has done."""
    seen = []

    def program(x):
        y = t = x

        def then():
            nonlocal y, t
            seen.append("then")
            y = x * 2
            t = 7

        def else_():
            nonlocal y, t
            seen.append("else")
            seen.append(t)
            y = y - 1

        yours.if_else(x.sum() > 0, then, else_, live_out=("y",), local=("t",))
        seen.append(t)
        start.append(x)
        return [y]

    start = []
    trace(program, [paddle.zeros([2]).spec])
    expect([s for s in seen if isinstance(s, str)], ["then", "else"], given="x of a program")
    same = [s is start[0] for s in seen if not isinstance(s, str)]
    expect(same, [True, True], given="t in else_, and t after the if: what it was before")


def with_else(x):
    y = x
    if x.sum() > 0:
        y = x * 2
    else:
        y = y - 1
    return y


def without_else(x):
    if x.sum() > 0:
        x = x * 3
    return x


def temporaries(x):
    if x.sum() > 0:
        t = x * 2
        y = t.sum()
    else:
        t = paddle.concat([x, x])
        y = t.mean()
    return y


def numbers(x):
    scale, shift, axis = 1.0, 2.0, 0
    if x.sum() > 0:
        scale = 3.0
    if x.max() > 1:
        shift = shift + scale
        axis = 0
    return (x * scale + shift).sum(axis=axis)


def nested(x):
    s = x.sum()
    y = x
    if s > 0:
        t = y + 1
        if s > 3:
            y = t * 2
        else:
            t = t * 3
        y = y + t
    elif s < -3:
        y = -y
    return y, s


def many(x):
    a = b = c = d = e = f = g = x
    if x.sum() > 0:
        a, b, c, d, e, f, g = x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7
    return paddle.concat([a, b, c, d, e, f, g])


def swapped(x):
    a, b = x, x + 1
    if x.sum() > 0:
        a, b = b, a
    return a - 2 * b


def python_outside(x, flag=False):
    if flag:
        return x.no_such_thing
    if not flag:
        x = x + 1
        if x.sum() > 1:
            x = x + 1
    return x


FUNCTIONS = (with_else, without_else, temporaries, numbers, nested, many, swapped, python_outside)
NUMBERS = st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5, 1.5, 4.0])


@exercise.property(
    function=st.sampled_from(FUNCTIONS), x=st.lists(NUMBERS, min_size=2, max_size=2), examples=50
)
def programs_give_what_python_gives(yours, function, x):
    """Functions converted by the engine, run by your if_else."""
    expected = function(paddle.to_tensor(x))
    with exercise.plugged(yours):
        got = paddle.jit.to_static(function)(paddle.to_tensor(x))
    expect(got, expected, given={"function": function.__name__, "x": x})


@exercise.example
def one_program_for_both_ways(yours):
    """A program made with one input takes the other way with another: both sides are in it."""
    with exercise.plugged(yours):
        step = paddle.jit.to_static(with_else)
        for x in ([1.0, 1.0], [-1.0, -1.0], [2.0, 1.0], [-3.0, 1.0]):
            expect(step(paddle.to_tensor(x)), with_else(paddle.to_tensor(x)), given={"x": x})


@exercise.example
def gradients_of_both_sides(yours):
    """Backward through a program with a branch, against central differences."""
    with exercise.plugged(yours):
        for x in ([1.0, 0.5], [-1.0, -0.5]):
            array = paddle.to_tensor(x, dtype="float64").numpy()
            expect_gradients(paddle.jit.to_static(with_else), [array])


@exercise.example
def a_network_trains(yours):
    """A loss that is a square where it is small and a root where it is large."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())

        def loss_of(x, net=net):
            loss = F.mse_loss(net(x), x * x)
            if loss > 0.1:
                loss = 0.3 * loss.sqrt()
            return loss

        with exercise.plugged(yours):
            step = paddle.jit.to_static(loss_of) if static else loss_of
            for _ in range(30):
                loss = step(x)
                loss.backward()
                adam.step()
                adam.clear_grad()
        losses.append(loss.item())
    expect(losses[1], losses[0], given="30 steps, the last loss", rtol=1e-3)
