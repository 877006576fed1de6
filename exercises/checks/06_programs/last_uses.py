"""Checks of 06_programs/last_uses."""

import math
import tracemalloc

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Record, Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import INPUT, NUMBER, Program
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="When a value may be let go",
    level="medium",
    minutes=25,
    before=("06_programs/interpreter",),
    slots={"ir.last_uses": "last_uses"},
    hints=(
        "Somebody reads the program to you from its end. How do you know, when a value is named, "
        "that you hear of its last use?",
        "Walk from the last record to the first with a set of the values that are needed later; "
        "the results are in it from the start. A record's own value is one of those it names.",
        "needed = set of the results\n"
        "for k from the last number down to 0:\n"
        "    for each of record k and its inputs that is not in needed:\n"
        "        it ends at k; it is needed now",
    ),
    wrong={
        "letting go of the results too": "set(program.results) → set()",
        "letting go at the first use": (
            "reversed(range(len(program.records))) → range(len(program.records))"
        ),
        "forgetting the updates of states among the results": "program.results → program.outputs",
        "keeping what nobody takes": "(record, *record.inputs) → record.inputs",
        "keeping inputs and states to the end": (
            "set(program.results) → set(program.results) | set(program.given)"
        ),
        "looking at the first two inputs only": "record.inputs → record.inputs[:2]",
        "one record too early": "found.setdefault(k, []) → found.setdefault(k - 1, [])",
        "one record too late": "found.setdefault(k, []) → found.setdefault(k + 1, [])",
        "comparing every pair of records": (
            "value not in needed → value not in needed and not any(value in r.inputs for r in "
            "program.records[k + 1:])"
        ),
    },
)


@exercise.mistake("a value twice if it is taken twice")
def last_uses(program):
    needed, found = set(program.results), {}
    for k, record in reversed([*enumerate(program.records)]):
        found[k] = [value for value in (record, *record.inputs) if value not in needed]
        needed |= {record, *record.inputs}
    return {k: values for k, values in found.items() if values}


F32 = np.dtype("float32")
compared = [0]


class Node(Record):
    """A record with a name, of one number; it counts how often it is compared."""

    __slots__ = ("name",)

    def __init__(self, name, *inputs):
        super().__init__(OPS["add"] if inputs else INPUT, list(inputs), {}, (), F32)
        self.name = name

    def __eq__(self, other):
        compared[0] += 1
        return self is other

    def __hash__(self):
        return id(self) >> 4

    def __repr__(self):
        return self.name


def program(inputs, records, outputs):
    return Program("program", inputs, [], records, outputs)


def named(found):
    """A dict of names, in order; numbers do not count, nor do records where nothing ends."""
    return {
        k: sorted(getattr(r, "name", None) or repr(r) for r in values if r.op is not NUMBER)
        for k, values in found.items()
        if any(r.op is not NUMBER for r in values)
    }


def by_definition(p):
    """For each value the largest number of a record that takes it, or makes it."""
    found = {}
    for value in {*p.records, *(e for r in p.records for e in r.inputs)} - set(p.results):
        uses = [
            k for k, r in enumerate(p.records) if value is r or any(value is e for e in r.inputs)
        ]
        found.setdefault(max(uses), []).append(value)
    return found


def agree(yours, p):
    text = [f"{r!r} takes {r.inputs}" for r in p.records]
    given = {"records": text if len(text) < 20 else len(text), "results": p.results}
    expect(named(yours.last_uses(p)), named(by_definition(p)), given=given,
           why="these values end elsewhere")  # fmt: skip


@exercise.example
def the_small_program(yours):
    """v1 = tanh(x), v2 = add(v1, x), v3 = exp(v1), v4 = multiply(v2, v2)."""
    x = Node("x")
    v1 = Node("v1", x)
    v2, v3 = Node("v2", v1, x), Node("v3", v1)
    v4 = Node("v4", v2, v2)
    agree(yours, program([x], [v1, v2, v3, v4], [v4]))


@exercise.example
def results_are_never_let_go(yours):
    """A result that others take too; an input handed out again; nothing computed at all."""
    x, y = Node("x"), Node("y")
    v1 = Node("v1", x)
    v2 = Node("v2", v1, x, y)
    agree(yours, program([x, y], [v1, v2], [v1, x]))
    agree(yours, program([x], [], [x]))


@exercise.property(
    rows=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=1, max_size=8),
    out=st.lists(st.integers(0, 8), max_size=3),
    examples=60,
)
def any_program(yours, rows, out):
    """Record k takes two inputs and the records before it; some results are asked for."""
    values = [Node("x"), Node("y")]
    for k, row in enumerate(rows):
        values.append(Node(f"v{k + 1}", *(values[j % len(values)] for j in row)))
    agree(yours, program(values[:2], values[2:], [values[j % len(values)] for j in out]))


@exercise.example
def three_thousand_records(yours):
    """A long program is read about once, not once for every record."""
    values = [Node("x")]
    for k in range(3000):
        values.append(Node(f"v{k}", values[-1], values[0]))
    compared[0] = 0
    found = yours.last_uses(program(values[:1], values[1:], values[-1:]))
    measured = f"{compared[0]} comparisons of records"
    expect_that(compared[0] < 100_000, "a set finds a record without a search", got=measured)
    expect_that(len(found) == 2999 and values[0] in found[2999], "x ends with the last record")


def alive(p, ends):
    """How many values there are at most while the program runs."""
    now, most = set(p.given), 0
    for k, record in enumerate(p.records):
        now.add(record)
        most = max(most, len(now))
        now -= set(ends.get(k, ()))
    return most


@exercise.example
def no_more_alive_than_need_be(yours):
    """A training step of a network, traced: how many of its values are alive at once?"""
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1D(8), nn.Linear(8, 3))
    sgd = paddle.optimizer.Momentum(learning_rate=0.1, parameters=net.parameters())

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return [loss]

    specs = [Spec((16, 4), F32), Spec((16, 1), np.dtype("int64"))]
    p = trace(step, specs, names=("x", "y")).program
    ends = yours.last_uses(p)
    kept = [r for values in ends.values() for r in values if r in set(p.results)]
    expect(kept, [], why="results are let go", given="a training step")
    got, best = alive(p, ends), alive(p, by_definition(p))
    expect(got, best, why="more values are alive at once than need be", given="a training step")


@exercise.example
def the_memory_of_a_run(yours):
    """x tanh'd forty times, a megabyte each time: two or three are alive, not forty."""
    big = Spec((1 << 18,), F32)

    def forty(x):
        for _ in range(40):
            x = x.tanh()
        return [x]

    with exercise.plugged(yours):
        p, array = trace(forty, [big]).program, np.ones(big.shape, F32)
        Run(np)(p, [array])
        tracemalloc.start()
        (y,) = Run(np)(p, [array])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    expected = 1.0
    for _ in range(40):
        expected = math.tanh(expected)
    expect(float(y[0]), expected, rtol=1e-5, why="another value")
    measured = f"{peak / (1 << 20):.1f} MB at most"
    expect_that(peak < 6 << 20, "less than 6 MB at any time", given="arrays of 1 MB", got=measured)


@exercise.example
def a_network_learns_with_it(yours):
    """Twenty steps of a captured training, with states that are updated."""
    with exercise.plugged(yours):
        paddle.seed(0)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.BatchNorm1D(16), nn.Linear(16, 1))
        adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=net.parameters())
        x = paddle.randn([64, 2])
        y = x[:, :1] * x[:, 1:]

        @paddle.jit.to_static
        def step(x, y):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        losses = [step(x, y).item() for _ in range(40)]
    expect_that(
        losses[-1] < 0.3 * losses[0], "a third of the loss after 40 steps", got=losses[::10]
    )
