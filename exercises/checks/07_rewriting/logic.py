"""Checks of 07_rewriting/logic."""

from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.program import regions
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="`and` and `or` that decide late",
    level="medium",
    minutes=25,
    before=("07_rewriting/runtime_if",),
    slots={"jit.runtime.and_": "and_", "jit.runtime.or_": "or_"},
    hints=(
        "If the left operand has no value yet, when will it be known whether the right one counts, "
        "and where must its evaluation stand so that it happens only then?",
        "Look at `folded` in minipaddle/engine/jit/truth.py: a loop where you may call "
        "yourself with the operands that are left.",
        "no operand is left: left itself\n"
        "left is a tensor of a program: choose by truth(left); one branch gives the truth of the\n"
        "    rest, evaluated inside it, the other the truth of left\n"
        "else: left decides, or the same with the next operand, evaluated now",
    ),
    wrong={
        "evaluating the right side always": (
            "and_(): if is_static(left): → value = right(); right = lambda: value; if "
            "is_static(left):"
        ),
        "or going on where it should stop": (
            "choose(truth(left), lambda: truth(left), lambda: truth(or_(right(), *rest))) → "
            "choose(truth(left), lambda: truth(or_(right(), *rest)), lambda: truth(left))"
        ),
        "the truth of Python's values instead of the values": (
            "and_(right(), *rest) if left else left → bool(and_(right(), *rest)) if left else "
            "False"
        ),
        "operands after the second forgotten": (
            "left if left else or_(right(), *rest) → left if left else right()"
        ),
        "asking a tensor of a program for its value": "and_(): is_static(left) → False",
        "both sides evaluated, combined by an operator": (
            "choose(truth(left), lambda: truth(and_(right(), *rest)), lambda: truth(left)) → "
            "truth(left).logical_and(truth(and_(right(), *rest)))"
        ),
        "a value in one branch, a truth in the other": (
            "truth(or_(right(), *rest)) → or_(right(), *rest)"
        ),
        "False for `and`, True for `or`, whatever decided": (
            "left if left else or_(right(), *rest) → True if left else or_(right(), *rest)"
        ),
    },
    unkillable={
        f"{name}: right only for {kind}": "a condition has one element"
        for name in ("and_", "or_")
        for kind in ("small arrays", "arrays that are not empty")
    },
)  # fmt: skip


def run(yours, name, values):
    """Your function on operands that note their evaluation: the result, and how many."""
    asked = []

    def operand(value):
        def evaluate():
            asked.append(value)
            return value

        return evaluate

    first, *rest = values
    return getattr(yours, name)(first, *map(operand, rest)), len(asked)


@exercise.property(
    values=st.lists(
        st.sampled_from([0, 1, 2, "", "a", None, True, False, 0.5]), min_size=1, max_size=4
    )
)
def as_python_does(yours, values):
    """Values of Python: the first that decides, itself, and no evaluation after it."""
    for name, decides in (("and_", lambda x: not x), ("or_", bool)):
        place = next((k for k, x in enumerate(values) if decides(x)), len(values) - 1)
        found, asked = run(yours, name, values)
        given = {name: values}
        expect_that(found is values[place], f"{values[place]!r}", given=given, got=found)
        expect(asked, place, given=given, why="how many operands were evaluated after the first")


@exercise.example
def tensors_with_a_value(yours):
    """An eager tensor is asked like a value of Python, and is the result itself."""
    yes, no = paddle.to_tensor([2.0]), paddle.to_tensor([0.0], dtype="float64")
    endless = paddle.to_tensor([float("inf")], dtype="float64")
    for name, values, place in (
        ("and_", [no, yes], 0),
        ("and_", [yes, no], 1),
        ("and_", [yes, yes], 1),
        ("and_", [endless, yes], 1),
        ("or_", [endless, yes], 0),
        ("or_", [no, yes], 1),
    ):
        found, asked = run(yours, name, values)
        expect_that(
            found is values[place], f"operand {place} itself", given={name: values}, got=found
        )
        expect(asked, place, given={name: values}, why="how many were evaluated after the first")


def both(x, y):
    if x > 0 and y > 0:
        x = x + 100
    return x + y


def either(x, y):
    if x > 0 or y > 0:
        x = x + 100
    return x + y


def four(x, y):
    if x > 0 and y > 0 and x > y and x + y > 3:
        x = x + 100
    if x < 0 or y < 0 or x < y or x + y < 2:
        x = x + 1000
    return x


def mixed(x, y):
    for n in (0, 3):
        if n and x > 0:
            x = x + 10
        if x > 0 and n:
            x = x + 100
        if n or y > 0:
            x = x + 1000
        if y > 0 or n:
            x = x + 10000
        if (x + y and n) or y - 1:
            x = x + 5
    return x


def counted(x, y):
    calls = paddle.zeros([1])

    def asked(value, step):
        calls.add_(paddle.full([1], step))
        return value

    if x > 0 and asked(y, 1.0) > 0 and asked(x, 10.0) > 1:
        x = x + 1
    if x > 0 or asked(y, 100.0) > 0 or asked(y, 1000.0) > -1:
        x = x + 1
    return x, calls


SIGNS = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 4.0])


@exercise.property(
    function=st.sampled_from([both, either, four, mixed, counted]), x=SIGNS, y=SIGNS, examples=50
)
def programs_give_what_python_gives(yours, function, x, y):
    """In a program, an operand that does not count leaves no trace: nothing is counted."""
    expected = function(paddle.to_tensor([x]), paddle.to_tensor([y]))
    with exercise.plugged(yours):
        got = paddle.jit.to_static(function)(paddle.to_tensor([x]), paddle.to_tensor([y]))
    expect(got, expected, given={"function": function.__name__, "x": x, "y": y})


def comparisons(program) -> int:
    """How often a program, and what is inside it, compares."""
    inside = (p for record in program.records for p in regions(record).values())
    return sum(r.op.name == "greater_than" for r in program.records) + sum(map(comparisons, inside))


@exercise.example
def once_each(yours):
    """While the program is written, each operand is evaluated once, in its own branch."""
    for name in ("and_", "or_"):

        def program(x, name=name):
            return [getattr(yours, name)(x > 0, lambda: x > 1, lambda: x > 2)]

        found = trace(program, [paddle.zeros([1]).spec]).program
        outside = sum(r.op.name == "greater_than" for r in found.records)
        given = {"operands": f"x > 0, x > 1, x > 2 of {name}"}
        expect(comparisons(found), 3, given=given, why="comparisons in the program")
        expect(outside, 1, given=given, why="comparisons outside of its branches")


@exercise.example
def a_decision_taken_while_the_program_is_written(yours):
    """0 and x: nothing about x enters the program."""
    for name, first in (("and_", 0), ("or_", 5)):
        found = []

        def program(x, name=name, first=first, found=found):
            found.append(getattr(yours, name)(first, lambda: x > 0))
            return [x]

        records = trace(program, [paddle.zeros([1]).spec]).program.records
        expect(found, [first], given={name: [first, "x > 0"]})
        expect(len(records), 0, given={name: [first, "x > 0"]}, why="operators in the program")


@exercise.example
def a_network_learns_while_it_must(yours):
    """A step that is skipped when the loss is small or no number, captured as one program."""
    ends = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())

        def loss_of(x, net=net):
            error = (net(x) - x * x).square()
            loss = error.mean()
            if (loss < 0.02 and error.max() < 0.1) or loss.isnan():
                loss = loss * 0
            return loss

        with exercise.plugged(yours):
            step = paddle.jit.to_static(loss_of) if static else loss_of
            for _ in range(30):
                loss = step(x)
                loss.backward()
                adam.step()
                adam.clear_grad()
        ends.append([loss.item(), *net[0].bias.numpy().tolist()])
    expect(ends[1], ends[0], given="30 steps: the last loss, and the first bias", rtol=1e-3)
