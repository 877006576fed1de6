"""Checks of 16_data_parallel/hoist_gradients."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.engine.passes.async_collectives import async_collectives, travels
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Where overlap breaks: gradients computed too late",
    level="hard",
    minutes=50,
    before=("11_passes/dead_code", "16_data_parallel/required_buckets"),
    slots={"async_collectives.hoist_gradients": "hoist_gradients"},
    hints=(
        "Which way must you walk to know, at each record, which averages need it? And when you "
        "place a record, which others may have become ready?",
        "Walk from the last record to the first for the goals: when you come to a record you know "
        "those of all its users. Then from the first to the last, placing.",
        "goals of an average: itself; of a result or an effect: 'something else'; of others: all "
        "of their users'\n"
        "place(record): note it; for each user in order: if urgent, not placed, inputs there: "
        "place(user)\n"
        "for each record in order: place it, if it is not placed yet",
    ),
    wrong={
        "the order as it was": "return order → return program.records",
        "everything is urgent": (
            "user in urgent and user not in placed and ready → user not in placed and ready"
        ),
        "users before their inputs": (
            "user in urgent and user not in placed and ready → user in urgent and user not in "
            "placed"
        ),
        "placed twice": (
            "user in urgent and user not in placed and ready → user in urgent and ready"
        ),
        "what leads to one gradient alone": (
            "0 < len(goals[record]) < 3 → 0 < len(goals[record]) < 2"
        ),
        "what leads to three": "0 < len(goals[record]) < 3 → 0 < len(goals[record]) < 4",
        "averages stay where they are": (
            "travels(record) or (0 < len(goals[record]) < 3 and None not in goals[record]) → not "
            "travels(record) and 0 < len(goals[record]) < 3 and (None not in goals[record])"
        ),
        "results are urgent too": (
            "record in results or has_effect(record) or None in {*_of(goals, users[record])} → "
            "has_effect(record) or None in {*_of(goals, users[record])}"
        ),
        "effects are urgent too": (
            "record in results or has_effect(record) or None in {*_of(goals, users[record])} → "
            "record in results or None in {*_of(goals, users[record])}"
        ),
        "what is given never comes": "value in placed or value not in users → value in placed",
        "not what came of the one just placed": (
            "place(user) → placed.add(user); order.append(user)"
        ),
        "what happens after an average counts": "{record} → {record, *_of(goals, users[record])}",
    },
)

LATE = """program p(g: float32[2], w: float32[2]) {
  v1 = multiply(g, w) : float32[2]
  v2 = multiply(v1, w) : float32[2]
  v3 = multiply(v2, w) : float32[2]
  v4 = tanh(v3) : float32[2]
  v5 = tanh(g) : float32[2]
  v6 = tanh(v1) : float32[2]
  v7 = tanh(v2) : float32[2]
  v8 = all_reduce(v4, op='avg', group=0, early=((8,), 8, 0,)) : float32[2]
  v9 = all_reduce(v7, op='avg', group=0, early=((9,), 8, 0,)) : float32[2]
  v10 = all_reduce(v6, op='avg', group=0, early=((10,), 8, 0,)) : float32[2]
  v11 = all_reduce(v5, op='avg', group=0, early=((11,), 8, 0,)) : float32[2]
  return v8, v9, v10, v11
}"""


def numbered(program, records):
    """Records by the numbers they have in the program's text."""
    number = {r: k for k, r in enumerate(program.records, 1)}
    return [number.get(r, 0) for r in records]


@exercise.example
def in_the_task(yours):
    """v1 leads to three averages; v2 to two: all after it comes at once."""
    program = parse(LATE)
    got = numbered(program, yours.hoist_gradients(program))
    expect(got, [1, 2, 3, 4, 8, 7, 9, 6, 10, 5, 11], given=LATE)
    expect(numbered(program, program.records), [*range(1, 12)], given="the program stays")


@exercise.example
def what_else_comes_of_it(yours):
    """A result, something printed, and a value for what happens after an average."""
    text = """program p(x: float32[2]) {
  v1 = exp(x) : float32[2]
  v2 = sin(v1) : float32[2]
  v3 = tanh(v1) : float32[2]
  v4 = show(v1, parts=(False,), sep=' ', end='') : bool[]
  v5 = add(v3, v3) : float32[2]
  v6 = all_reduce(v5, op='avg', group=0, early=((6,), 8, 0,)) : float32[2]
  v7 = add(v1, v2) : float32[2]
  v8 = all_reduce(v7, op='avg', group=0, early=((8,), 8, 0,)) : float32[2]
  v9 = multiply(v8, v6) : float32[2]
  v10 = cos(v1) : float32[2]
  v11 = all_reduce(v10, op='avg', group=0, early=((11,), 8, 0,)) : float32[2]
  return v2, v9, v11, v10
}"""
    program = parse(text)
    got = numbered(program, yours.hoist_gradients(program))
    expect(got, [1, 3, 5, 6, 2, 7, 8, 4, 9, 10, 11], given=text)


@exercise.example
def three_gradients_are_many(yours):
    """v3 leads to three averages: it stays after v2, though v1 is all it takes."""
    text = """program p(x: float32[2]) {
  v1 = exp(x) : float32[2]
  v2 = sin(x) : float32[2]
  v3 = tanh(v1) : float32[2]
  v4 = all_reduce(v3, op='avg', group=0, early=((4,), 8, 0,)) : float32[2]
  v5 = all_reduce(v3, op='avg', group=0, early=((5,), 8, 0,)) : float32[2]
  v6 = all_reduce(v3, op='avg', group=0, early=((6,), 8, 0,)) : float32[2]
  v7 = cos(v1) : float32[2]
  v8 = all_reduce(v7, op='avg', group=0, early=((8,), 8, 0,)) : float32[2]
  v9 = all_reduce(v7, op='avg', group=0, early=((9,), 8, 0,)) : float32[2]
  return v4, v5, v6, v8, v9, v2
}"""
    program = parse(text)
    got = numbered(program, yours.hoist_gradients(program))
    expect(got, [1, 7, 8, 9, 2, 3, 4, 5, 6], given=text)


@exercise.example
def each_once_and_effects_where_they_stand(yours):
    """v4 takes v1 and v3, which takes v1: it comes once. v5 prints: it stays after v2."""
    text = """program p(x: float32[2]) {
  v1 = exp(x) : float32[2]
  v2 = sin(x) : float32[2]
  v3 = tanh(v1) : float32[2]
  v4 = add(v1, v3) : float32[2]
  v5 = show(v1, parts=(False,), sep=' ', end='') : bool[]
  v6 = all_reduce(v4, op='avg', group=0, early=((6,), 8, 0,)) : float32[2]
  v7 = all_reduce(v5, op='avg', group=0, early=((7,), 1, 0,)) : bool[]
  return v6, v7, v2
}"""
    program = parse(text)
    got = numbered(program, yours.hoist_gradients(program))
    expect(got, [1, 3, 4, 6, 2, 5, 7], given=text)


@exercise.property(choices=st.lists(st.integers(0, 999), min_size=3, max_size=14))
def as_the_rules_say(yours, choices):
    """Random programs: each rule again, by brute force."""
    lines, names = [], ["x"]
    for k, c in enumerate(choices, 1):
        a, b = names[c % len(names)], names[c // 9 % len(names)]
        average = f"all_reduce({a}, op='avg', group=0, early=(({k},), 8, 0,))"
        say = (average, f"exp({a})", f"add({a}, {b})")[c // 3 % 3]
        lines.append(f"v{k} = {say} : float32[2]")
        names.append(f"v{k}")
    text = "program p(x: float32[2]) {\n" + "\n".join(lines) + f"\nreturn {names[-1]}\n}}"
    program = parse(text)
    records = program.records

    def goals(record):
        if travels(record):
            return {record}
        found = {"else"} if record in program.results else set()
        return found.union(*(goals(u) for u in records if record in u.inputs))

    urgent = {r for r in records if 0 < len(goals(r)) < 3 and "else" not in goals(r)}
    order = []

    def place(record):
        order.append(record)
        for user in records:
            there = all(v in order or v not in records for v in user.inputs)
            if record in user.inputs and user in urgent and there and user not in order:
                place(user)

    for record in records:
        if record not in order:
            place(record)
    expect(numbered(program, yours.hoist_gradients(program)), numbered(program, order), given=text)


@exercise.example
def the_pass_on_it(yours):
    """The first bucket leaves while there is something left to compute."""
    with exercise.plugged(yours):
        found = async_collectives(parse(LATE))
    names = [r.op.name for r in found.records]
    starts = [k for k, name in enumerate(names) if name == "start_all_reduce"]
    beside = [names[k:].count("tanh") + names[k:].count("multiply") for k in starts]
    expect(beside, [3, 2, 1, 0], given=LATE, why="what is computed after each start")


@exercise.example
def ranks_train_with_it(yours):
    """Two ranks, a whole step as a program: the weights of one process."""

    def rank():
        paddle.seed(1)
        layers = [paddle.nn.Linear(4, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 2)]
        net = paddle.DataParallel(paddle.nn.Sequential(*layers), comm_buffer_size=0)
        opt = paddle.optimizer.Momentum(0.1, parameters=net.parameters())

        def step(x):
            (net(x) ** 2).mean().backward()
            opt.step()
            opt.clear_grad()

        x = np.random.default_rng(0).standard_normal((4, 4), "float32")
        paddle.jit.to_static(step)(paddle.to_tensor(x[dist.get_rank() :: dist.get_world_size()]))
        return [p.numpy() for p in net.parameters()]

    (one,) = dist.spawn(rank, nprocs=1).results
    with exercise.plugged(yours):
        a, b = dist.spawn(rank, nprocs=2, timeout=20.0).results
    expect(a, one, given="one step of two layers", rtol=1e-5, atol=1e-6)
    same = all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
    expect_that(same, "the same weights on both ranks", got=(a, b))
