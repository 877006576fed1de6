"""Checks of 28_parameter_servers/apply_push."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.distributed.ps.client import Client
from minipaddle.distributed.ps.table import Table, describe
from minipaddle.distributed.ps.threads import Threads
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Apply asynchronously: a step for the rows that were pushed",
    level="medium",
    minutes=20,
    slots={"ps.apply": "apply"},
    hints=(
        "What is `table.arrays[0][at]` if `at` is an array of places: a view or a copy?",
        "Ask for the places before you look at `table.arrays`. Read the rows of all arrays, call "
        "the rule once, and write all that it returns.",
        "at = the places\nold = the rows at these places, of each array\n"
        "new = the rule of gradients, lr and old\nput new[k] at these places of array k",
    ),
    wrong={
        "the states are forgotten": "range(len(new)) → range(1)",
        "the values are forgotten": "range(len(new)) → range(1, len(new))",
        "the first places, not those of the rows": "table.arrays[k][at] = new[k] → "
        "table.arrays[k][:len(at)] = new[k]",
        "the step is added to the values": "table.arrays[k][at] = new[k] → "
        "table.arrays[k][at] += new[k]",
        "two steps": "new = table.rule(gradients, lr, *old) → "
        "new = table.rule(gradients, lr, *table.rule(gradients, lr, *old))",
        "climbing": "table.rule(gradients, lr, *old) → table.rule(-gradients, lr, *old)",
        "the learning rate of the start": "table.rule(gradients, lr, *old) → "
        "table.rule(gradients, 0.1, *old)",
        "a copy that nobody sees": "table.arrays[k][at] = new[k] → "
        "table.arrays[k][at][...] = new[k]",
    },
)


@exercise.mistake("the arrays from before the rows were made")
def apply(table, ids, gradients, lr):
    arrays = table.arrays
    at = table.places(ids)
    new = table.rule(gradients, lr, *[array[at] for array in arrays])
    for k in range(len(new)):
        arrays[k][at] = new[k]


@exercise.mistake("ids taken for places")
def apply(table, ids, gradients, lr):  # noqa: F811
    table.places(ids)
    new = table.rule(gradients, lr, *[array[ids] for array in table.arrays])
    for k in range(len(new)):
        table.arrays[k][ids] = new[k]


def config(kind="SGD", **options) -> dict:
    optimizer = getattr(paddle.optimizer, kind)
    like = optimizer(0.1, parameters=[paddle.create_parameter([1], "float32")], **options)
    return {
        "rows": 1000, "width": 2, "dtype": "float64", "recipe": ["constant", 1.0], "base": 0,
        "optimizer": describe(like, ""), "factor": 1.0, "entry": None, "mode": "async",
    }  # fmt: skip


def adagrad(steps, rows: int):
    """Values and sums after steps (ids, gradients, lr), row by row."""
    values, sums = np.ones((rows, 2)), np.zeros((rows, 2))
    for ids, gradients, lr in steps:
        for row, g in zip(ids, gradients, strict=True):
            sums[row] += g * g
            values[row] -= lr * g / (np.sqrt(sums[row]) + 1e-6)
    return values, sums


@exercise.example
def plain_descent(yours):
    """Rows 5 and 3 of ones, with gradients 1 and 2 at a rate of 0.5."""
    table = Table(config())
    got = yours.apply(table, np.array([5, 3]), np.array([[1.0, 1.0], [2.0, 2.0]]), 0.5)
    expect(got, None, given="what apply returns")
    expect(table.read(np.array([3, 4, 5])), np.array([[0.0] * 2, [1.0] * 2, [0.5] * 2]))
    expect_that(len(table) == 2, "two rows that exist", got=len(table))


@exercise.example
def none_infinite_and_in_pieces(yours):
    """No rows, every second of arrays, backwards, and a gradient that is infinite."""
    table = Table(config())
    yours.apply(table, np.zeros(0, "int64"), np.zeros((0, 2)), 0.5)
    expect_that(len(table) == 0, "no rows", got=len(table))
    ids, gradients = np.arange(9, 3, -1)[::-2], np.arange(12.0).reshape(3, 4)[:, ::2]
    yours.apply(table, ids, gradients, 0.5)
    expect(table.read(np.array([4, 6, 8])), np.array([[1.0, 0.0], [-1.0, -2.0], [-3.0, -4.0]]))
    yours.apply(table, np.array([5, 4]), np.array([[np.inf, 1.0], [0.0, 0.0]]), 0.5)
    expect(table.read(np.array([4, 5])), np.array([[1.0, 0.0], [-np.inf, 0.5]]))


@exercise.property(
    steps=st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True),
            st.integers(0, 99),
            st.sampled_from([0.1, 0.7]),
        ),
        min_size=1,
        max_size=6,
    )
)
def adagrad_row_by_row(yours, steps):
    """Values and states of each row, after pushes of different rows at different rates."""
    table = Table(config("Adagrad"))
    made = [
        (ids, np.random.default_rng(seed).standard_normal((len(ids), 2)), lr)
        for ids, seed, lr in steps
    ]
    for ids, gradients, lr in made:
        given = np.array(ids), gradients.copy()
        yours.apply(table, *given, lr)
        expect(given, (np.array(ids), gradients), given=made, why="the arguments stay")
    values, sums = adagrad(made, 10)
    expect(table.read(np.arange(10)), values, given=made, rtol=1e-9, atol=1e-12)
    came = np.array(sorted({row for ids, *_ in made for row in ids}))
    expect(table.arrays[1][table.find(came)], sums[came], given=made, rtol=1e-9, atol=1e-12)


@exercise.example
def many_new_rows(yours):
    """A push that makes the arrays grow while other rows are there."""
    table = Table(config("Momentum", momentum=0.5))
    for lr, ids in ((1.0, np.array([7])), (1.0, np.arange(400)), (0.5, np.array([7, 399]))):
        yours.apply(table, ids, np.ones((len(ids), 2)), lr)
    expect(table.read(np.array([7, 8, 399]))[:, 0], np.array([1 - 1 - 1.5 - 0.875, 0.0, -0.75]))


@exercise.example
def two_workers_in_turn(yours):
    """Pushes of two workers to three servers are steps one after the other."""
    with exercise.plugged(yours):
        carrier = Threads(3, 2)
        clients = [Client(carrier, k, 2) for k in range(2)]
        for client in clients:
            client.create("t", config("Adagrad"))
        steps, rng = [], np.random.default_rng(1)
        for k in range(6):
            ids = rng.permutation(10)[: 4 + k % 2]
            steps.append((ids, rng.standard_normal((len(ids), 2)), 0.3))
            clients[k % 2].push("t", *steps[-1])
        got = clients[0].pull("t", np.arange(10))
    expect(got, adagrad(steps, 10)[0], given=steps, rtol=1e-9, atol=1e-12)
