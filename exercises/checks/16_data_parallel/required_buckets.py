"""Checks of 16_data_parallel/required_buckets."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.engine.passes.async_collectives import Bucket, async_collectives, travels
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The pass: what must wait for a bucket, and what need not",
    level="hard",
    minutes=40,
    before=("11_passes", "16_data_parallel/buckets"),
    slots={"async_collectives.required_buckets": "required_buckets"},
    hints=(
        "Go through the records in their order. When you come to one, what do you know of its "
        "inputs already? What of an input that is given to the program?",
        "An average plays two parts: as a record it requires a bucket or none, as an input it is "
        "in its own bucket. Which of the two does a record need that takes the average?",
        "for each record: required = the largest, over its inputs, of\n"
        "    the number of its bucket if it is an average, else what it requires (-1 if given)\n"
        "if it has an effect: no less than the effects before it, which now require this bucket",
    ),
    wrong={
        "nothing waits": "required[record] = own → required[record] = -1",
        "only direct users of an average wait": (
            "number[value] if value in number else required.get(value, -1) → number.get(value, -1)"
        ),
        "an average waits for its own bucket": "own = -1 → own = number.get(record, -1)",
        "an average as an input is there without its bucket": (
            "number[value] if value in number else required.get(value, -1) → "
            "required.get(value, -1)"
        ),
        "the first bucket instead of the last": (
            "own = max(own, number[value] if value in number else required.get(value, -1)) → needs "
            "= number[value] if value in number else required.get(value, -1); own = needs if own < "
            "0 else min(own, needs) if needs >= 0 else own"
        ),
        "effects in any order": "has_effect(record) → False",
        "an effect that does not hold back the next": (
            "effects = own = max(own, effects) → own = max(own, effects)"
        ),
        "an effect one bucket before the last one": (
            "effects = own = max(own, effects) → effects = max(own, effects); own = effects - 1"
        ),
        "what is given requires bucket 0": "required.get(value, -1) → required.get(value, 0)",
    },
    unkillable={
        "own = max(own, number[value] if value in number else required.get(value, -1)) → "
        "own = max(own, number[value] if value in number else required.get(value, -2))": (
            "own is -1 before"
        ),
        "required, effects = ({}, -1) → required, effects = ({}, -2)": "no number is less than -1",
    },
)

CHAIN = """program p(x: float32[2]) {
  v1 = all_reduce(x, op='avg', group=0, early=((1,), 8, 25,)) : float32[2]
  v2 = exp(x) : float32[2]
  v3 = multiply(v1, v2) : float32[2]
  v4 = all_reduce(v3, op='avg', group=0, early=((4,), 8, 25,)) : float32[2]
  v5 = tanh(v4) : float32[2]
  return v5
}"""
SHOWN = """program p(x: float32[2]) {
  v1 = all_reduce(x, op='avg', group=0, early=((1,), 8, 25,)) : float32[2]
  v2 = show(x, parts=(False,), sep=' ', end='') : bool[]
  v3 = show(v1, parts=(False,), sep=' ', end='') : bool[]
  v4 = exp(x) : float32[2]
  v5 = show(v4, parts=(False,), sep=' ', end='') : bool[]
  v6 = logical_not(v5) : bool[]
  v7 = tanh(v4) : float32[2]
  return v1, v6, v7
}"""


def alone(program):
    """Each average in a bucket of its own."""
    return [Bucket(k, [r]) for k, r in enumerate(filter(travels, program.records))]


@exercise.example
def in_the_task(yours):
    """The second gradient is made of the first average."""
    program = parse(CHAIN)
    found = yours.required_buckets(program, alone(program))
    expect([found[r] for r in program.records], [-1, -1, 0, 0, 1], given=CHAIN)
    expect(len(found), 5, given=CHAIN, why="what is given requires no bucket")


@exercise.example
def effects_keep_their_order(yours):
    """v3 shows an average; v5 has to come after it, and v6 takes what v5 gives."""
    program = parse(SHOWN)
    found = yours.required_buckets(program, alone(program))
    expect([found[r] for r in program.records], [-1, -1, 0, -1, 0, 0, -1], given=SHOWN)


@exercise.example
def several_in_one_bucket(yours):
    """Both gradients travel in bucket 0, another one in bucket 1."""
    text = """program p(x: float32[2]) {
  v1 = exp(x) : float32[2]
  v2 = all_reduce(x, op='avg', group=0, early=((2,), 8, 25,)) : float32[2]
  v3 = all_reduce(v1, op='avg', group=0, early=((3,), 8, 25,)) : float32[2]
  v4 = all_reduce(v1, op='avg', group=0, early=((4,), 8, 25,)) : float32[2]
  v5 = add(v2, 1.0) : float32[2]
  v6 = add(v3, v4) : float32[2]
  v7 = add(v6, v5) : float32[2]
  return v7
}"""
    program = parse(text)
    a, b, c = program.records[1:4]
    found = yours.required_buckets(program, [Bucket(0, [a, b]), Bucket(1, [c])])
    expect([found[r] for r in program.records], [-1, -1, -1, -1, 0, 1, 1], given=text)


@exercise.example
def nothing_to_take(yours):
    """A record without inputs, and one that takes a number, need no bucket."""
    text = """program p(x: float32[2]) {
  v1 = full(shape=(2,), value=1.0, dtype=float32) : float32[2]
  v2 = multiply(v1, 2.0) : float32[2]
  return v2
}"""
    program = parse(text)
    found = yours.required_buckets(program, [])
    expect([found[r] for r in program.records], [-1, -1], given=text)


@exercise.property(choices=st.lists(st.integers(0, 99), min_size=3, max_size=14))
def as_a_walk_back_says(yours, choices):
    """Random programs: from each record back over all its inputs, up to averages."""
    lines, names, kinds = [], ["x"], []
    for k, c in enumerate(choices, 1):
        a, b = names[c % len(names)], names[c // 7 % len(names)]
        kind = c % 3
        kinds.append(kind)
        average = f"all_reduce({a}, op='avg', group=0, early=(({k},), 8, 25,))"
        say = (average, f"exp({a})", f"add({a}, {b})")[kind]
        lines.append(f"v{k} = {say} : float32[2]")
        names.append(f"v{k}")
    text = "program p(x: float32[2]) {\n" + "\n".join(lines) + f"\nreturn {names[-1]}\n}}"
    program = parse(text)
    buckets = alone(program)
    number = {bucket.members[0]: bucket.number for bucket in buckets}

    def needs(record):
        found, todo = {-1}, [*record.inputs]
        while todo:
            value = todo.pop()
            if value in number:
                found.add(number[value])
            else:
                todo += value.inputs or ()
        return max(found)

    got = yours.required_buckets(program, buckets)
    expect([got[r] for r in program.records], [*map(needs, program.records)], given=text)


@exercise.example
def the_pass_on_it(yours):
    """What needs no average stands between a bucket's leaving and its fetching."""
    with exercise.plugged(yours):
        found = async_collectives(parse(SHOWN))
    names = [r.op.name for r in found.records]
    expected = ["start_all_reduce", "show", "exp", "tanh", "finish_all_reduce", "item", "show"]
    expect(names, [*expected, "show", "logical_not"], given=SHOWN)


@exercise.example
def ranks_train_with_it(yours):
    """Two ranks, a step as a program with the gradients' norm clipped: the weights of one."""

    def rank():
        paddle.seed(1)
        net = paddle.DataParallel(paddle.nn.Linear(4, 3), comm_buffer_size=0)
        clip = paddle.nn.ClipGradByGlobalNorm(0.1)
        opt = paddle.optimizer.SGD(0.1, parameters=net.parameters(), grad_clip=clip)

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
    expect(a, one, given="one step of Linear(4, 3)", rtol=1e-5, atol=1e-6)
    same = all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
    expect_that(same, "the same weights on both ranks", got=(a, b))
