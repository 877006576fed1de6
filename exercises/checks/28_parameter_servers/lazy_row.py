"""Checks of 28_parameter_servers/lazy_row."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.distributed.ps.placement import recipe_of
from minipaddle.distributed.ps.table import Table
from minipaddle.learn import Exercise, expect

exercise = Exercise(
    title="A lazy row: values that nobody has drawn yet",
    level="easy",
    minutes=15,
    slots={"ps.first_rows": "first_rows"},
    hints=(
        "Row 0 has the places 0 to width - 1. Where does row r begin?",
        "Broadcasting makes [n, width] of a column and a row: `ids[:, None]` is the column.",
        "draw(where each row begins, as a column, plus the numbers of the columns)",
    ),
    wrong={
        "rows overlap": "ids[:, None] * width → ids[:, None]",
        "column after column": "ids[:, None] * width + np.arange(width) → "
        "ids[:, None] + np.arange(width) * len(ids)",
        "the place in the list, not the number of the row": "ids[:, None] → "
        "np.arange(len(ids))[:, None]",
        "all columns alike": "np.arange(width) → 0 * np.arange(width)",
        "one place too far": "np.arange(width) → np.arange(1, width + 1)",
        "the width is forgotten in the stride": (
            "ids[:, None] * width → ids[:, None] * (width + 1)"
        ),
        "a place of the first row for all": "ids[:, None] * width → ids[:1, None] * width",
    },
)


class Stream:
    """Numbers by their place, exact in both dtypes; it counts its calls."""

    def __init__(self, dtype):
        self.dtype, self.asked = dtype, []

    def __call__(self, index):
        self.asked.append((index.shape, index.dtype.name))
        return (index * 7919 % 997 / 1024).astype(self.dtype)


def check(yours, ids, width, dtype="float64"):
    stream, before = Stream(dtype), ids.copy()
    got = yours.first_rows(ids, width, stream)
    last = max(ids.tolist(), default=0)
    if last < 10_000:  # draw the whole table
        expected = Stream(dtype)(np.arange((last + 1) * width)).reshape(last + 1, width)[before]
    else:
        rows = [[row * width + k for k in range(width)] for row in before.tolist()]
        expected = Stream(dtype)(np.array(rows, "int64").reshape(len(before), width))
    given = {"ids": before, "width": width}
    expect(got, expected, given=given, rtol=0, atol=0)
    expect(got.dtype.name, dtype, given=given, why="the dtype is that of draw")
    expect(stream.asked, [((len(before), width), "int64")], given=given, why="the calls of draw")
    expect(ids, before, given=given, why="the ids stay as they are")


@exercise.example
def in_the_task(yours):
    """Rows 2 and 0 of three columns, drawn by the identity."""
    got = yours.first_rows(np.array([2, 0]), 3, lambda index: index)
    expect(got, np.array([[6, 7, 8], [0, 1, 2]]))


@exercise.example
def one_none_and_far_away(yours):
    """One row, none, one twice, the last of 10⁸, many in every second place."""
    for ids in ([5], [], [3, 3, 1], [99_999_999, 0]):
        for width in (1, 4):
            for dtype in ("float32", "float64"):
                check(yours, np.array(ids, "int64"), width, dtype)
    check(yours, np.arange(240)[::-2], 3)


@exercise.property(ids=st.lists(st.integers(0, 60), max_size=8), width=st.integers(1, 6))
def the_whole_table_drawn_at_once(yours, ids, width):
    """Any rows of a table are what they are in the whole of it."""
    check(yours, np.array(ids, "int64"), width)


@exercise.example
def a_table_begins_as_an_embedding(yours):
    """On your rows a table on a server has the values of nn.Embedding with the same seed."""
    normal = paddle.nn.initializer.Normal(0.0, 0.5)
    paddle.seed(7)
    weight = paddle.nn.Embedding(40, 3, weight_attr=normal).weight.numpy()
    paddle.seed(7)
    table = Table({
        "rows": 40, "width": 3, "dtype": "float32", "recipe": recipe_of(normal, (40, 3)),
        "base": paddle.tensor.generator.GENERATOR.draw(), "factor": 1.0, "entry": None,
        "optimizer": {"kind": "SGD", "options": {}, "decay": None}, "mode": "async",
    })  # fmt: skip
    ids = np.array([39, 0, 7])
    with exercise.plugged(yours):
        expect(table.read(ids), weight[ids], rtol=1e-6, atol=1e-7)
        table.update(ids[:2], np.ones(2), np.ones((2, 3), "float32"), 0.5)
        expect(table.read(ids), weight[ids] - [[0.5], [0.5], [0.0]], rtol=1e-6, atol=1e-6)
